"""Pool.map over values that come slowly: they go out as they come, and so do their results."""

import asyncio
import math
import time

import pytest

from tupelo import REST
from tupelo.aio.batteries import Pool as AioPool
from tupelo.batteries import Pool
from tupelo.batteries.core.pool import BATCH


@pytest.fixture
def slow_values(space):
    """Return squares that come slowly, and the list of those that have come.

    None comes before those that were given out are answered.
    """
    given = []

    def values():
        for number in range(5 * BATCH):
            time.sleep(0.02)  # so it is slow
            space.wait_none("tupelo.task", REST, timeout=60)
            given.append(number)
            yield number * number

    return values(), given


def test_the_first_result_is_there_before_all_values_are(space, slow_values):
    values, given = slow_values
    with Pool(space.url, workers=2) as pool:
        results = pool.map(math.isqrt, values)
        assert len(given) < BATCH
        assert [next(results) for _ in range(10)] == list(range(10))
        assert len(given) < BATCH
        results.close()


def test_asyncio_has_the_first_result_before_all_values_are_there(space, slow_values):
    values, given = slow_values
    turns = []

    async def turning():
        while True:
            await asyncio.sleep(0)
            turns.append(len(given))

    async def main():
        async with AioPool(space.url, workers=2) as pool:
            other = asyncio.create_task(turning())
            results = pool.map(math.isqrt, values)
            assert [await anext(results) for _ in range(10)] == list(range(10))
            assert len(given) < BATCH
            # Other tasks have a turn between two values.
            assert len(set(turns)) > 5
            other.cancel()
            await results.aclose()

    asyncio.run(main())


def test_values_that_became_slow_and_quick_again_lose_nothing(space):
    def values():
        for number in range(3000):
            if 1000 <= number < 1010:
                time.sleep(0.02)
            yield number * number

    with Pool(space.url, workers=2) as pool:
        assert list(pool.map(math.isqrt, values())) == list(range(3000))
        assert sorted(pool.map(math.isqrt, values(), as_completed=True)) == list(range(3000))
