"""Whose permit a block gives back that has no name for it: `with lock:`.

One object may be shared by tasks and threads. Each gives back its own: the permit of another one
may be in use, or was released before the end of its block.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tupelo.batteries.core.locks import Permit

__all__ = ["Entered"]


class Entered:
    """The permits of the blocks that have been entered with one object, and have not ended."""

    def __init__(self) -> None:
        """Begin with none."""
        # One list, in which each step is one that no thread can come between: what another one
        # notes at the same time is never stored over.
        self._permits: list[tuple[object, Permit]] = []

    def push(self, permit: Permit) -> None:
        """Note what a block begins with."""
        self._permits.append((current(), permit))

    def newest(self) -> Permit:
        """Return what the block that ends has begun with. It stays until it is forgotten."""
        me, permits = current(), self._permits[::-1]
        for owner, permit in permits:
            if owner == me:
                return permit
        # A block that another task or thread has begun, as that of an asynchronous generator.
        return permits[0][1]

    def forget(self, permit: Permit) -> None:
        """Forget what a block has begun with, if it is there."""
        for noted in self._permits.copy():
            if noted[1] is permit:
                with suppress(ValueError):  # another thread has forgotten it by now
                    self._permits.remove(noted)


def current() -> object:
    """Return who runs this: a task of asyncio, or else a thread."""
    # Not imported for blocking programs: where a task runs, it has been.
    asyncio = sys.modules.get("asyncio")
    try:
        task: object = asyncio.current_task()  # type: ignore[union-attr]
    except (AttributeError, RuntimeError):  # it is not there, or not yet; no loop runs here
        task = None
    return threading.get_ident() if task is None else task
