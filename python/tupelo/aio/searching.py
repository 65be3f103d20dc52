"""Finding a tuple that is in one of several spaces, for asyncio: as `tupelo.searching`.

The native `Search` does everything that does not wait: it orders the spaces, joins the wait queue
and picks up. Only the waiting is the event loop's: it uses the notifiers that the loop has in the
spaces.
"""

from __future__ import annotations

import asyncio

from tupelo import _native, searching
from tupelo._native import Found
from tupelo.aio.loop_notifier import wait_for_any
from tupelo.aio.space import Space
from tupelo.errors import SpaceRemoved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, Literal, TypeVar

    from tupelo._native import SearchWaiter, Seconds, VisitOrder

    R = TypeVar("R")

__all__ = ["Found", "Search", "search"]


class Search:
    """Several spaces of `tupelo.aio`, to find tuples that are in one; see `tupelo.Search`.

    >>> import asyncio
    >>> from tupelo import aio
    >>> async def main():
    ...     async with aio.connect("mem://near") as near, aio.connect("mem://far") as far:
    ...         search = aio.Search([near, far], order="success factor")
    ...         later = asyncio.create_task(search.take("border", int, timeout=5))
    ...         await far.put("border", 7)
    ...         return (await later).tuple
    >>> asyncio.run(main())
    ('border', 7)
    """

    def __init__(self, spaces: Iterable[Space], *, order: VisitOrder = "round robin") -> None:
        """Prepare to search; nothing happens in the spaces."""
        self._spaces: list[Space] = searching.checked(spaces, Space)
        used = [space._pinned() for space in self._spaces]
        native = _native.Search([space._space for space in used], order, self._spaces)
        self._current = Searched(native, used)

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces, in the order of the list that was given."""
        return tuple(self._spaces)

    def __repr__(self) -> str:
        """Show where it looks."""
        return f"<aio.Search {', '.join(space.url for space in self._spaces)}>"

    async def take(
        self, *template: Any, timeout: Seconds | None = None, **fields: Any
    ) -> Found[Any]:
        """Take a match from one of the spaces, waiting for one in all of them."""
        searched, found = await self._find("take", template, timeout, fields)
        return await searched.settled(found)

    async def read(
        self, *template: Any, timeout: Seconds | None = None, **fields: Any
    ) -> Found[Any]:
        """Copy a match from one of the spaces, waiting for one in all of them."""
        _, found = await self._find("read", template, timeout, fields)
        return found

    async def try_take(self, *template: Any, **fields: Any) -> Found[Any] | None:
        """Take a match from one of the spaces, or return None at once."""

        async def look(searched: Searched) -> Found[Any] | None:
            return searched.native.try_take(*template, **fields)

        searched, found = await self._again(look)
        return None if found is None else await searched.settled(found)

    async def try_read(self, *template: Any, **fields: Any) -> Found[Any] | None:
        """Copy a match from one of the spaces, or return None at once."""

        async def look(searched: Searched) -> Found[Any] | None:
            return searched.native.try_read(*template, **fields)

        _, found = await self._again(look)
        return found

    async def _find(
        self,
        want: Literal["take", "read"],
        template: tuple[Any, ...],
        timeout: Seconds | None,
        fields: dict[str, Any],
    ) -> tuple[Searched, Found[Any]]:
        """Look for a match in all spaces, and wait for one."""
        seconds = _native.seconds("timeout", timeout)
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds

        async def find(searched: Searched) -> Found[Any]:
            native = searched.native
            look = native.try_take if want == "take" else native.try_read
            found = look(*template, **fields)
            if found is None and seconds != 0:
                found = await searched.served(native.waiter(want, *template, **fields), deadline)
            if found is None:
                raise native.timed_out(want, seconds or 0.0, *template, **fields)
            return found

        return await self._again(find)

    async def _again(self, search: Callable[[Searched], Awaitable[R]]) -> tuple[Searched, R]:
        """Search in the spaces of the moment, until none of them is removed meanwhile.

        One that was removed then had no part in it. Return where it was searched, too.
        """
        while True:
            searched = self._searched()
            try:
                return searched, await search(searched)
            except SpaceRemoved:
                each = zip(self._spaces, searched.spaces, strict=True)
                go_on = [_native.renewed(one.blocking, used.blocking) for one, used in each]
                if not any(go_on):
                    raise

    def _searched(self) -> Searched:
        """Return the search in the spaces that the connections lead to by now."""
        searched = self._current
        used = [space._pinned() for space in self._spaces]
        if used != searched.spaces:
            native = searched.native.in_place([space._space for space in used])
            searched = self._current = Searched(native, used)
        return searched


class Searched:
    """A search in the spaces of a moment."""

    def __init__(self, native: _native.Search, spaces: list[Space]) -> None:
        """Note the search, and its spaces."""
        self.native = native
        self.spaces = spaces

    async def served(self, waiter: SearchWaiter, deadline: float | None) -> Found[Any] | None:
        """Wait for a tuple that is handed to a waiter; None if the time runs out."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                found = waiter.finish_now()
                if found is not None:
                    return found
                left = None if deadline is None else deadline - loop.time()
                if left is not None and left <= 0:
                    # What comes between the two looks has come in time, too.
                    waiter.end_wait()
                    return waiter.finish_now()
                notifiers = [space._waiting.notifier(loop) for space in self.spaces]
                rings = waiter.ring([notifier.native for notifier in notifiers])
                await wait_for_any([(notifiers[place], number) for place, number in rings], left)
        finally:
            # A tuple that was handed over in the meantime goes back to its place (rule T5).
            waiter.cancel()

    async def settled(self, found: Found[Any]) -> Found[Any]:
        """Return a find when the disk knows that it was taken."""
        space: Any = found.space  # that of asyncio, which was given
        await self.spaces[self.native.spaces.index(space)]._waiting.settled()
        return found


async def search(
    spaces: Iterable[Space],
    *template: Any,
    timeout: Seconds | None = None,
    want: Literal["take", "read"] = "take",
    **fields: Any,
) -> Found[Any]:
    """Take a match from one of several spaces, waiting for one in all; see `tupelo.search`."""
    # First: the value of a keyword may be meant for a field of the class that goes by its name.
    _native.require_clear(*template)
    if want not in ("take", "read"):
        message = f"want is {want!r}: give 'take' or 'read'"
        raise ValueError(message)
    searcher = Search(spaces)
    find = searcher.take if want == "take" else searcher.read
    return await find(*template, timeout=timeout, **fields)
