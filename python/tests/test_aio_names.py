"""`import tupelo.aio as ts`: every name of `tupelo`, with a twin for what waits."""

import asyncio

import pytest

import tupelo as ts
from tupelo import aio

TWINS = {
    "Claim": "its verbs are awaited",
    "Lease": "its verbs are awaited",
    "Search": "its verbs are awaited",
    "Space": "its verbs are awaited",
    "Subscription": "it is gone through with async for",
    "Transaction": "its verbs are awaited",
    "TransactionSpace": "its verbs are awaited",
    "connect": "it gives the space whose verbs are awaited",
    "search": "it is awaited",
}
"""The names that are not the same object, and why."""

NO_TWINS = {
    "read_future": "a task of read is a future",
    "take_future": "a task of take is a future",
}
"""The verbs of a space that its twin has not, and why."""


def test_every_name_is_there_too():
    assert sorted(aio.__all__) == sorted(ts.__all__)
    assert len(set(aio.__all__)) == len(aio.__all__)


@pytest.mark.parametrize("name", ts.__all__)
def test_a_name_is_the_same_unless_it_has_to_be_awaited(name):
    is_same = getattr(aio, name) is getattr(ts, name)
    assert is_same == (name not in TWINS), TWINS.get(name)


@pytest.mark.parametrize("name", NO_TWINS)
def test_who_asks_for_a_future_is_told_to_make_a_task(space, name):
    async def main():
        async with aio.connect(space.url) as shared:
            verb = name.removesuffix("_future")
            problem = rf"no attribute '{name}': use asyncio.create_task\(space.{verb}\(...\)\)"
            with pytest.raises(AttributeError, match=problem):
                getattr(shared, name)
            assert not hasattr(shared, "never")
            later = asyncio.create_task(getattr(shared, verb)("answer", int))
            await shared.put("answer", 42)
            assert await later == ("answer", 42)

    asyncio.run(main())
