"""Values that many change: `Counter` and `Register`.

Each is one tuple. A change replaces it in one step by `try_swap`, provided it is still the tuple
that was read. Otherwise another process was faster, and the change is done again with the new
tuple. No process ever holds the value, so a process that dies or stops has changed it or has not,
and blocks no other.

The tuples:

* `("tupelo.counter", name, value)`, an int. No such tuple: 0.
* `("tupelo.register", name, version, value)`: each change adds 1 to the version, an int that begins
  with 1. If there is no such tuple, the value is the caller's own default.
"""

from __future__ import annotations

import copy
from typing import Generic, TypeVar, cast

from tupelo.batteries import checks
from tupelo.batteries.core.replacing import put_first, replaced
from tupelo.batteries.verbs import awaited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tupelo.batteries.verbs import Verbs

__all__ = ["Counter", "Register"]

T = TypeVar("T")

COUNTER = "tupelo.counter"
REGISTER = "tupelo.register"
STATES = (COUNTER, REGISTER)
"""Tags of tuples that stay for later users: `tupelo check` does not ask who took them."""


class Counter:
    """A number that many tasks and processes add to; see `tupelo.batteries.Counter`.

    >>> import asyncio
    >>> from tupelo import aio
    >>> from tupelo.aio.batteries import Counter
    >>> async def main():
    ...     async with aio.connect("mem://counted") as space:
    ...         hits = Counter(space, "hits")
    ...         await hits.add(2)
    ...         return await hits.get()
    >>> asyncio.run(main())
    2
    """

    def __init__(self, space: Verbs, name: str) -> None:
        """Make an object of the counter; nothing happens in the space."""
        self._space = awaited(space)
        self.name = checks.text("name", name)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return f"<Counter {self.name!r} in {self._space.url}>"

    async def get(self) -> int:
        """Return the value."""
        found = await self._space.try_read(COUNTER, self.name, int)
        return 0 if found is None else cast("int", found[2])

    async def add(self, amount: int = 1) -> int:
        """Add to the value; return the new one."""
        amount = checks.integer("amount", amount)
        old = await self._replace(lambda old: old + amount)
        return old + amount

    async def reset(self, value: int = 0) -> int:
        """Set the value; return the old one."""
        value = checks.integer("value", value)
        return await self._replace(lambda _: value)

    async def _replace(self, new: Callable[[int], int]) -> int:
        """Put `new` of the value in its place; return the old one."""
        space, name = self._space, self.name
        while True:
            found = await space.try_read(COUNTER, name, int)
            if found is None:
                absent = (COUNTER, name, int)
                if await put_first(space, COUNTER, name, new(0), unless=absent):
                    return 0
                continue
            old: int = found[2]
            if await replaced(space, COUNTER, name, old, to=(COUNTER, name, new(old))):
                return old


class Register(Generic[T]):
    """A value that many tasks and processes change; see `tupelo.batteries.Register`.

    >>> import asyncio
    >>> from tupelo import aio
    >>> from tupelo.aio.batteries import Register
    >>> async def main():
    ...     async with aio.connect("mem://registered") as space:
    ...         best = Register(space, "best", default=float("inf"))
    ...         await best.update(lambda old: min(old, 0.3))
    ...         return await best.get()
    >>> asyncio.run(main())
    0.3
    """

    def __init__(self, space: Verbs, name: str, *, default: T) -> None:
        """Make an object of the register; nothing happens in the space."""
        self._space = awaited(space)
        self.name = checks.text("name", name)
        self._default = default

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return f"<Register {self.name!r} in {self._space.url}>"

    async def get(self) -> T:
        """Return the value, or the default if it was never set."""
        return (await self._read())[1]

    async def set(self, value: T) -> None:
        """Replace the value."""
        await self.update(lambda _: value)

    async def update(self, change: Callable[[T], T]) -> T:
        """Replace the value by `change` of it, in one step; return the new one.

        `change` is called again if another process was faster.
        """
        space, name = self._space, self.name
        while True:
            version, old = await self._read()
            new = change(old)
            if version is None:
                first = (REGISTER, name, 1, new)
                if await put_first(space, *first, unless=(REGISTER, name, int, ...)):
                    return new
                continue
            changed = (REGISTER, name, version + 1, new)
            if await replaced(space, REGISTER, name, version, ..., to=changed):
                return new

    async def _read(self) -> tuple[int | None, T]:
        """Return the version, None if there is none, and the value."""
        found = await self._space.try_read(REGISTER, self.name, int, ...)
        # A copy: later changes of the caller to it are not in the register.
        return (None, copy.deepcopy(self._default)) if found is None else (found[2], found[3])
