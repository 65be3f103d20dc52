"""What type checkers infer of the batteries; run by mypy and basedpyright, never executed."""

from typing import assert_type

import tupelo as ts
from tupelo import aio, batteries
from tupelo.aio import batteries as awaited


def values(space: ts.Space) -> None:
    """A register has the type of its default."""
    hits = batteries.Counter(space, "hits")
    hits += 1
    assert_type(hits, batteries.Counter)
    assert_type(hits.value, int)
    best = batteries.Register(space, "best", default=float("inf"))
    assert_type(best, batteries.Register[float])
    assert_type(best.update(lambda old: min(old, 3.5)), float)
    names = batteries.Register[str | None](space, "name", default=None)
    assert_type(names.value, str | None)


async def awaited_values(space: aio.Space) -> None:
    """The same for asyncio."""
    assert_type(await awaited.Counter(space, "hits").add(), int)
    best = awaited.Register(space, "best", default=float("inf"))
    assert_type(best, awaited.Register[float])
    assert_type(await best.get(), float)
