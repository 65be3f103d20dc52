"""A space whose waiting verbs are awaited.

What does not wait takes about a microsecond, and is the verb of the synchronous space. What waits
is said once here: in line for a tuple (`take`, `read`), or until an attempt succeeds that is worth
another try when something was put or removed (`take_many`, `swap`, `wait_none`, `consume`).
"""

from __future__ import annotations

import asyncio
import weakref

from tupelo import _native
from tupelo.aio.loop_bell import LoopBell
from tupelo.consuming import SIGN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from typing import Any, Literal, Self, TypeVar

    from tupelo._native import Explanation, Order, Seconds

    R = TypeVar("R")

__all__ = ["Space"]

SCAN_BATCH = 256
"""Tuples that a scan returns before other tasks get their turn."""


class Space:
    """A connection to a space, for the tasks of event loops. Made by `tupelo.aio.connect`."""

    def __init__(self, space: _native.Space) -> None:
        """Wrap a synchronous connection."""
        self._space = space
        self._bells: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBell]
        self._bells = weakref.WeakKeyDictionary()

    @property
    def url(self) -> str:
        """Where the space is, as given to `connect`."""
        return self._space.url

    @property
    def name(self) -> str:
        """The name of the space."""
        return self._space.name

    def __repr__(self) -> str:
        """Show where it is."""
        return f"<aio.Space {self.url}>"

    async def __aenter__(self) -> Self:
        """Do nothing more: the space is open."""
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """End the connection. Calls that wait, and later calls, raise `SpaceClosed`."""
        self._space.close()
        for bell in self._bells.values():
            bell.close()
        self._bells.clear()

    # What does not wait.

    async def put(self, *fields: Any) -> None:
        """Store a tuple."""
        self._space.put(*fields)

    async def put_all(self, tuples: Iterable[tuple[Any, ...]], /) -> int:
        """Store all tuples together, or none."""
        return self._space.put_all(tuples)

    async def put_if_absent(self, *fields: Any, unless: tuple[Any, ...]) -> bool:
        """Store a tuple unless something matches `unless`; return whether it did."""
        return self._space.put_if_absent(*fields, unless=unless)

    async def try_take(self, *template: Any, order: Order = "fifo") -> tuple[Any, ...] | None:
        """Take a match, or return None at once."""
        taken: tuple[Any, ...] | None = self._space.try_take(*template, order=order)
        return taken

    async def try_read(self, *template: Any, order: Order = "fifo") -> tuple[Any, ...] | None:
        """Copy a match, or return None at once."""
        found: tuple[Any, ...] | None = self._space.try_read(*template, order=order)
        return found

    async def take_all(self, *template: Any, limit: int | None = None) -> list[tuple[Any, ...]]:
        """Take the matches of one moment."""
        return self._space.take_all(*template, limit=limit)

    async def read_all(self, *template: Any, limit: int | None = None) -> list[tuple[Any, ...]]:
        """Copy the matches of one moment."""
        return self._space.read_all(*template, limit=limit)

    async def try_swap(self, *template: Any, to: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Replace a match and return it, or return None at once."""
        swapped: tuple[Any, ...] | None = self._space.try_swap(*template, to=to)
        return swapped

    async def count(self, *template: Any) -> int:
        """Count the matches of one moment."""
        return self._space.count(*template)

    async def finish(self, *template: Any) -> None:
        """End every `consume` of an equal template once nothing matches any more."""
        self._space.finish(*template)

    async def move_to(self, other: Space, /, *template: Any) -> int:
        """Move all matches into another space; return how many."""
        return self._space.move_to(other._space, *template)

    async def copy_to(self, other: Space, /, *template: Any) -> int:
        """Copy all matches into another space; return how many."""
        return self._space.copy_to(other._space, *template)

    async def stat(self) -> dict[str, Any]:
        """Return what is in the space."""
        return self._space.stat()

    async def explain(self, *template: Any) -> Explanation:
        """Return why nothing matches."""
        return self._space.explain(*template)

    # What waits.

    async def take(
        self, *template: Any, timeout: Seconds | None = None, order: Order = "fifo"
    ) -> tuple[Any, ...]:
        """Take a match, waiting for one."""
        seconds = _native.seconds("timeout", timeout)
        taken = self._space.try_take(*template, order=order)
        return await self._in_line("take", template, seconds) if taken is None else taken

    async def read(
        self, *template: Any, timeout: Seconds | None = None, order: Order = "fifo"
    ) -> tuple[Any, ...]:
        """Copy a match, waiting for one."""
        seconds = _native.seconds("timeout", timeout)
        found = self._space.try_read(*template, order=order)
        return await self._in_line("read", template, seconds) if found is None else found

    async def take_many(
        self,
        *template: Any,
        n: int,
        at_least: int | None = None,
        timeout: Seconds | None = None,
    ) -> list[tuple[Any, ...]]:
        """Take `n` matches together, or at least `at_least`, waiting for them."""

        def attempt() -> list[tuple[Any, ...]]:
            return self._space.take_many(*template, n=n, at_least=at_least, timeout=0)

        return await self._until(attempt, "put", template, timeout)

    async def swap(
        self, *template: Any, to: tuple[Any, ...], timeout: Seconds | None = None
    ) -> tuple[Any, ...]:
        """Replace a match and return it, waiting for one."""

        def attempt() -> tuple[Any, ...]:
            swapped: tuple[Any, ...] = self._space.swap(*template, to=to, timeout=0)
            return swapped

        return await self._until(attempt, "put", template, timeout)

    async def wait_none(self, *template: Any, timeout: Seconds | None = None) -> None:
        """Wait until nothing matches, and nobody holds a match."""

        def attempt() -> None:
            self._space.wait_none(*template, timeout=0)

        await self._until(attempt, "removal", template, timeout)

    async def scan(self, *template: Any) -> AsyncIterator[tuple[Any, ...]]:
        """Go through all matches, lazily and in no particular order."""
        for number, found in enumerate(self._space.scan(*template), start=1):
            yield found
            if number % SCAN_BATCH == 0:
                await asyncio.sleep(0)

    async def consume(
        self, *template: Any, idle: Seconds | None = None
    ) -> AsyncIterator[tuple[Any, ...]]:
        """Take one match after the other until `finish` was called and none is left."""
        idle_s = _native.seconds("idle", idle)
        mark = (SIGN, str(_native.like(*template)))
        while True:
            taken = self._space.try_take(*template)
            if taken is None:
                taken = await self._next(template, mark, idle_s)
                if taken is None:
                    return
            yield taken

    async def _in_line(
        self, verb: Literal["take", "read"], template: tuple[Any, ...], seconds: float | None
    ) -> tuple[Any, ...]:
        """Get in line for a match, and wait for it."""
        place = _native.waiter(self._space, verb, *template)
        try:
            found = await self._served(place, seconds)
        finally:
            # What was handed over in the meantime goes back to its place (rule T5).
            place.cancel()
        if found is None:
            raise _native.timed_out(self._space, verb, seconds or 0.0, *template)
        return found

    async def _served(self, place: _native.Waiter, seconds: float | None) -> tuple[Any, ...] | None:
        """Wait for what is handed to a place in line; None if the time runs out."""
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        while True:
            found = place.finish_now()
            if found is not None:
                return found
            left = None if deadline is None else deadline - loop.time()
            if left is not None and left <= 0:
                return None
            await self._bell(loop).wait(place, seconds=left)

    async def _until(
        self,
        attempt: Callable[[], R],
        on: Literal["put", "removal"],
        template: tuple[Any, ...],
        timeout: Seconds | None,
    ) -> R:
        """Try again whenever a match was put or removed, until it succeeds or the time runs out."""
        seconds = _native.seconds("timeout", timeout)
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        try:
            return attempt()
        except TimeoutError:
            if seconds == 0:
                raise
        # Watching begins before the next attempt, so that nothing in between is missed.
        watch = _native.waiter(self._space, on, *template)
        try:
            while True:
                try:
                    return attempt()
                except TimeoutError:
                    left = None if deadline is None else deadline - loop.time()
                    if left is not None and left <= 0:
                        raise
                await self._bell(loop).wait(watch, seconds=left)
        finally:
            watch.cancel()

    async def _next(
        self, template: tuple[Any, ...], mark: tuple[Any, ...], idle_s: float | None
    ) -> tuple[Any, ...] | None:
        """Wait for a match and return it, or None at the end of a `consume`."""
        loop = asyncio.get_running_loop()
        deadline = None if idle_s is None else loop.time() + idle_s
        place = _native.waiter(self._space, "take", *template)
        # Watching begins before the first look, so that nothing slips through in between.
        finished = _native.waiter(self._space, "put", *mark)
        removals = _native.waiter(self._space, "removal", *template)
        try:
            while True:
                found = place.finish_now()
                if found is not None:
                    return found
                left = None if deadline is None else deadline - loop.time()
                if (left is not None and left <= 0) or self._is_over(template, mark):
                    return None
                await self._bell(loop).wait(place, finished, removals, seconds=left)
        finally:
            for waiter in (place, finished, removals):
                waiter.cancel()

    def _is_over(self, template: tuple[Any, ...], mark: tuple[Any, ...]) -> bool:
        """Return whether the mark of `finish` is there, and nothing matches or is held."""
        if self._space.try_read(*mark) is None:
            return False
        try:
            self._space.wait_none(*template, timeout=0)
        except TimeoutError:
            return False
        return True

    def _bell(self, loop: asyncio.AbstractEventLoop) -> LoopBell:
        bell = self._bells.get(loop)
        if bell is None:
            bell = self._bells[loop] = LoopBell(self._space, loop)
        return bell
