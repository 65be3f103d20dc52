"""What is written of a call: a line for its template, its find, or its put.

The native module makes the words of a tuple and stores the lines, at once. So the operations of a
killed process are in its record, but not its open claims and transactions.

A program never fails because it is recorded: an operation that cannot be written down is reported
once on standard error, and left out.
"""

from __future__ import annotations

import json
from contextlib import suppress
from contextvars import ContextVar
from functools import partial

from tupelo._native import record_line, record_problem, record_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Note: TypeAlias = Callable[[str, str], None]
    """Takes the verb of a line, and the JSON of all that is particular of this operation."""

__all__ = ["RUNNING", "Call", "SearchCall", "note_of", "running", "without_harm"]

# fmt: off
OF_THE_VERB = frozenset({
    "after", "at_least", "buffer", "buffer_bytes", "idle", "keep", "lease", "limit", "max_attempts",
    "n", "on", "order", "resume", "sync", "timeout", "to", "ttl", "unless",
})
# fmt: on
"""Keywords that are the verb's own. The others belong to the template."""

RUNNING: ContextVar[Call | None] = ContextVar("RUNNING", default=None)
"""The call whose parts run: they are not recorded again."""


def note_of(space: Any) -> Note:
    """Return what writes down an operation in a space."""
    return partial(record_line, space.url)


class Call:
    """One call of a verb, and where it is written down."""

    __slots__ = ("_template", "arguments", "note", "options", "target", "verb")

    def __init__(
        self,
        note: Note,
        target: Any,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
        verb: str = "",
    ) -> None:
        """Note the call; nothing is written yet."""
        self.note = note
        self.target = target
        self.arguments = arguments
        self.options = options
        self.verb = verb
        self._template: tuple[str, str] | None = None

    def asked(self, **more: Any) -> str:
        """What stands in a line for the template of the call; `more` is encoded behind it."""
        if self._template is None:
            fields = {
                name: value
                for name, value in self.options.items()
                if name not in OF_THE_VERB and not (name == "where" and value is None)
            }
            self._template = record_words(self.arguments, fields)
        kinds, template = self._template
        return f'"kinds": {kinds}, "template": {template}{_encoded(more)}'

    def waits(self, **more: Any) -> None:
        """Record that the call may wait: a call that never ends can be seen so."""
        with without_harm(), suppress(TypeError, ValueError):  # which the verb raises, too
            self.note("waits", self.asked(**more))

    def found(self, verb: str, fields: Any, **more: Any) -> None:
        """Record the find; None for nothing."""
        with without_harm():
            found = "null" if fields is None else _words(fields)[1]
            self.note(verb, f'{self.asked(**more)}, "tuple": {found}')

    def put(self, fields: Any) -> None:
        """Record a tuple that it has put."""
        with without_harm():
            kinds, put = _words(fields)
            lease = self.options.get("lease")
            terms = _encoded({} if lease is None else {"lease": lease})
            self.note("put", f'"kinds": {kinds}, "tuple": {put}{terms}')


class SearchCall(Call):
    """A call that asks several spaces: nothing is missing in one if the tuple is in another."""

    def waits(self, **_: Any) -> None:
        """As `Call.waits`: one line stands for all of the spaces."""
        super().waits(spaces=self._urls())

    def found(self, verb: str, fields: Any, **_: Any) -> None:
        """As `Call.found`, in the space of the find; None for nothing in any."""
        if fields is None:
            super().found(verb, None, spaces=self._urls())
        else:
            self.note = note_of(fields.space)
            super().found(verb, fields.tuple)

    def _urls(self) -> list[str]:
        return [space.url for space in self.target.spaces]


def _words(fields: Any) -> tuple[str, str]:
    """A tuple's kinds and words; an entry stands alone."""
    return record_words(fields if type(fields) is tuple else (fields,), {})


def _encoded(more: dict[str, Any]) -> str:
    return f", {json.dumps(more)[1:-1]}" if more else ""


class running:  # noqa: N801 - a context manager, which no generator is as fast as
    """A block in which a call runs."""

    def __init__(self, call: Call | None) -> None:
        """Note the call."""
        self._call = call

    def __enter__(self) -> None:
        """Begin."""
        self._token = RUNNING.set(self._call)

    def __exit__(self, *_: object) -> None:
        """End; a coroutine that is collected ends in another context, which knows nothing of it."""
        with suppress(ValueError):
            RUNNING.reset(self._token)


class without_harm:  # noqa: N801 - as `running`
    """Keep what goes wrong in writing down from the program: the operation has taken effect."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        """Whatever it is, it is not the program's."""
        if not isinstance(error, Exception):
            return False
        record_problem(f"an operation is not in the record: {error!r}")
        return True
