"""What goes on after the call that made it: claims and transactions.

Operations under a claim or in a transaction are recorded when they have happened. A tuple that went
back was only read. A put is not recorded if the claim or transaction never completed.
"""

from __future__ import annotations

import os
from weakref import WeakKeyDictionary

from tupelo.errors import Aborted, ClaimLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    from tupelo.recording.calls import Note

__all__ = ["HISTORIES", "NOTES", "Undecided"]

HISTORIES: MutableMapping[Any, Any] = WeakKeyDictionary()
"""The history of each claim and transaction, and the call of each subscription."""
NOTES: MutableMapping[Any, Note] = WeakKeyDictionary()
"""What notes the verbs of a claim, and of a space as a transaction sees it."""
ENDS = {"done": True, "commit": True, "abort": False}
"""Whether the method that ends it completes it."""


class Undecided:
    """The lines of a claim or a transaction that has not ended."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lines: list[tuple[Note, str, str]] = []
        self._pid = os.getpid()

    def note_for(self, outside: Note) -> Note:
        """Return what notes an operation in a space, which `outside` writes down at the end."""

        def note(verb: str, text: str) -> None:
            if verb == "waits":  # which may be the last that is heard of it
                outside(verb, text)
            else:
                self._lines.append((outside, verb, text))

        return note

    def told(self, method: str, arguments: tuple[Any, ...], raised: BaseException | None) -> None:
        """Note the return of a method, or what it has raised.

        What is neither lost nor at the end of its block goes on: another call may try again.
        """
        if method == "__exit__":
            self.end(is_done=raised is None and arguments[1] is None)
        elif isinstance(raised, (ClaimLost, Aborted)):
            self.end(is_done=False)
        elif raised is None and method == "_discard_puts":
            self._lines = [line for line in self._lines if line[1] != "put"]
        elif raised is None:
            self.end(is_done=ENDS[method])

    def end(self, *, is_done: bool) -> None:
        """Write down what has happened, once."""
        lines, self._lines = self._lines, []
        for note, verb, text in lines:
            if is_done or verb != "put":
                note(verb if is_done or verb != "take" else "read", text)

    def __del__(self) -> None:
        """What is forgotten is aborted. The copy of a fork is not this process's."""
        if self._pid == os.getpid():
            self.end(is_done=False)
