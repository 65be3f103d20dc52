"""What one object of a lock holds, for each thread or task: for `release`, and for `with lock:`.

Tasks and threads may share one object. Each gives back its own permit: the permit of another may be
in use. A block gives back the permit that it began with, and `release` a permit that was acquired
without a block. If there is none, `release` gives back that of the block, which acquires another
one later: a condition lets others in like that.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tupelo.batteries.core.locks import Permit

__all__ = ["Holding", "Holdings"]


class Holding:
    """What one block, or one call of `acquire`, has begun with."""

    __slots__ = ("is_block", "owner", "permit")

    def __init__(self, permit: Permit, *, is_block: bool) -> None:
        """Note it for the task or thread that runs this."""
        self.owner = current()
        self.permit: Permit | None = permit
        """None: its block was told to release it, and has not acquired again."""
        self.is_block = is_block

    def is_held(self) -> bool:
        """Whether there is something to give back."""
        permit = self.permit  # another thread may release it meanwhile
        return permit is not None and permit.is_held


class Holdings:
    """The permits of one object, until they are given back. They stay as long as this does."""

    def __init__(self) -> None:
        """Begin with none."""
        # One list, in which no thread can come between the parts of a step: a permit that another
        # thread notes at the same time is never overwritten.
        self._holdings: list[Holding] = []

    def push(self, permit: Permit, *, is_block: bool = False) -> None:
        """Note a permit: from now on an explicit release ends it, and not the garbage collector."""
        permit.is_kept_by(self)
        holding = Holding(permit, is_block=is_block)
        waits = None if is_block else self._newest(lambda one: one.permit is None, is_own=True)
        if waits is None:
            self._holdings.append(holding)
        else:
            waits.permit = permit

    def newest(self) -> Holding | None:
        """Return what `release` is to give back; None if nothing is held."""
        # Another's, if there is no other: as of a task that was made for the wait alone.
        for is_own in (True, False):
            found = self._newest(lambda one: one.is_held() and not one.is_block, is_own=is_own)
            found = found or self._newest(Holding.is_held, is_own=is_own)
            if found is not None:
                return found
        return None

    def block(self) -> Holding | None:
        """Return the permit that the ending block began with. It stays until it is forgotten."""
        # That of another, for a block that another task or thread has begun, as that of an
        # asynchronous generator.
        own = self._newest(lambda one: one.is_block, is_own=True)
        return own or self._newest(lambda one: one.is_block, is_own=False)

    def forget(self, holding: Holding | None) -> None:
        """Forget a permit that has ended, if it is still in the list."""
        with suppress(ValueError):  # another thread has forgotten it by now
            self._holdings.remove(holding)  # type: ignore[arg-type]

    def forget_permit(self, permit: Permit) -> None:
        """Forget a permit that is given back; a block is noted until its end."""
        for noted in self._holdings.copy():
            if noted.permit is permit and not noted.is_block:
                self.forget(noted)

    def withdraw(self, permit: Permit) -> None:
        """Undo a push that may have happened: the block did not begin."""
        for noted in self._holdings.copy():
            if noted.permit is permit:
                self.forget(noted)

    def _newest(self, fits: Callable[[Holding], bool], *, is_own: bool) -> Holding | None:
        me = current() if is_own else None
        for noted in self._holdings[::-1]:
            if (not is_own or noted.owner == me) and fits(noted):
                return noted
        return None


def current() -> object:
    """Return the runner of this code: a task of asyncio, or else a thread."""
    # Not imported for blocking programs: a running task has imported asyncio already.
    asyncio = sys.modules.get("asyncio")
    try:
        task: object = asyncio.current_task()  # type: ignore[union-attr]
    except (AttributeError, RuntimeError):  # it is not there, or not yet; no loop runs here
        task = None
    return threading.get_ident() if task is None else task
