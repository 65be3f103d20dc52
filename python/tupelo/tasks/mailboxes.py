"""The mailboxes of a pool from which the caller takes the answers itself: one per `map`.

An answer that is never taken must not stay: the pool may live for weeks.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count

from tupelo.errors import SpaceFull, Timeout
from tupelo.tasks import protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tupelo._native import Space, Template

__all__ = ["Mailboxes"]


class Mailboxes:
    """The mailboxes of one queue."""

    def __init__(self, space: Space, queue: str) -> None:
        """Begin with none."""
        self._space = space
        self._queue = queue
        self._pid = os.getpid()
        self._numbers = count()
        self._open: dict[str, Callable[[], None]] = {}
        self._abandoned: set[str] = set()
        """Mailboxes that may still get answers."""

    def open(self, at_end: Callable[[], None]) -> str:
        """Make up the name of another one. `at_end` is for `end`."""
        self._sweep()
        name = f"{self._queue}/{next(self._numbers)}"
        self._open[name] = at_end
        return name

    def close(self, name: str) -> None:
        """Note that there will be no more answers, and that all were taken."""
        self._open.pop(name, None)

    def abandon(self, name: str) -> None:
        """Take back the tasks that no worker has begun, and remove the unwanted answers.

        Answers to tasks that are being worked on are removed when the next mailbox is opened. If
        this mailbox is not open any more, as when its pool has ended, there is nothing to do. The
        same holds in a fork's copy: tasks and answers belong to the parent.
        """
        if self._pid == os.getpid() and self._open.pop(name, None) is not None:
            self._abandoned.add(name)
            self._sweep()

    def end(self) -> None:
        """Have the remaining answers taken: call the `at_end` of each open mailbox.

        Raises:
            RemoteError: there are tasks that no worker will do, and why.
        """
        for at_end in list(self._open.values()):
            at_end()

    def forget(self) -> None:
        """Note that all their tuples are gone."""
        self._open.clear()
        self._abandoned.clear()

    def put_nobody(self) -> None:
        """Tell the callers that wait for answers that no worker is left to give them.

        Without room for that they learn it a bit later: they look now and then.
        """
        for name in list(self._open):
            with suppress(SpaceFull):
                self._space.put(
                    protocol.ANSWER, name, protocol.NOBODY, protocol.FAILED, {}, timeout=0
                )

    def _sweep(self) -> None:
        """Remove the answers of abandoned mailboxes, and forget mailboxes without open tasks."""
        for name in list(self._abandoned):
            self._remove(protocol.tasks_from(name))
            is_over = not self._is_worked_for(name)
            self._remove(protocol.answer_to(name))
            if is_over:
                self._abandoned.discard(name)

    def _remove(self, template: Template[Any]) -> None:
        self._space.discard(template)

    def _is_worked_for(self, name: str) -> bool:
        """Whether there is a task, also one that a worker holds (rule O9)."""
        try:
            self._space.wait_none(protocol.tasks_from(name), timeout=0)
        except Timeout:
            return True
        return False
