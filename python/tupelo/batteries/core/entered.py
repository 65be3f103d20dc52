"""Whose permit a block gives back that has no name for it: `with lock:`.

One object may be shared by tasks and threads. Each gives back its own: the permit of another one
may be in use, or was released before the end of its block.
"""

from __future__ import annotations

import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tupelo.batteries.core.locks import Permit

__all__ = ["Entered"]


class Entered:
    """The permits of the blocks that have been entered with one object, and have not ended."""

    def __init__(self) -> None:
        """Begin with none."""
        self._permits: dict[object, list[Permit]] = {}

    def push(self, permit: Permit) -> None:
        """Note what a block begins with."""
        self._permits.setdefault(current(), []).append(permit)

    def newest(self) -> Permit:
        """Return what the block that ends has begun with. It stays until it is forgotten."""
        owner = current()
        if owner not in self._permits:
            # A block that another task or thread has begun, as that of an asynchronous generator.
            owner = list(self._permits)[-1]
        return self._permits[owner][-1]

    def forget(self, permit: Permit) -> None:
        """Forget what a block has begun with, if it is there."""
        for owner, permits in list(self._permits.items()):
            others = [other for other in permits if other is not permit]
            if others:
                self._permits[owner] = others
            elif len(others) < len(permits):
                del self._permits[owner]


def current() -> object:
    """Return who runs this: a task of asyncio, or else a thread."""
    # Not imported for blocking programs: where a task runs, it has been.
    asyncio = sys.modules.get("asyncio")
    try:
        task: object = asyncio.current_task()  # type: ignore[union-attr]
    except (AttributeError, RuntimeError):  # it is not there, or not yet; no loop runs here
        task = None
    return threading.get_ident() if task is None else task
