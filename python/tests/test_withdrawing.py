"""Who withdraws a task or a call has no use for it: what its class raises is nobody's news."""

import asyncio
import sys
from pathlib import Path

import pytest
from refusing import Refusing

from tupelo import REST, aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Pool

sys.path.insert(0, str(Path(__file__).parent))
import calls


@pytest.fixture
def refuse(monkeypatch):
    """Return a function after which no entry can be made."""
    return lambda: monkeypatch.setattr(Refusing, "is_allowed", False)


def test_a_future_whose_argument_can_not_be_made_any_more_is_cancelled(new_url, refuse):
    url = new_url("mem")
    with Pool(url, workers=1) as pool:
        space = pool._pool.space  # noqa: SLF001 - where it works
        busy = pool.submit(calls.wait_for, url, "word")
        space.take("began", "word", int)
        future = pool.submit(calls.double, Refusing(1))
        refuse()
        assert future.cancel()
        assert future.cancelled()
        space.put("go on", "word")
        assert busy.result(60) == "word"


def test_a_map_whose_values_can_not_be_made_any_more_is_given_up(new_url, refuse):
    url = new_url("mem")
    with Pool(url, workers=1) as pool:
        space = pool._pool.space  # noqa: SLF001 - where it works
        results = pool.map(calls.wait_for, [url, url, url], ["one", "two", Refusing(1)])
        space.put("go on", "one")
        assert next(results) == "one"
        space.take("began", "two", int)
        refuse()
        results.close()
        space.put("go on", "two")


def test_a_task_of_asyncio_whose_argument_can_not_be_made_any_more_is_cancelled(new_url, refuse):
    url = new_url("mem")

    async def main():
        async with awaited.Pool(url, workers=1) as pool, aio.connect(url) as space:
            busy = asyncio.create_task(pool.submit(calls.wait_for, url, "word"))
            await space.take("began", "word", int)
            task = asyncio.create_task(pool.submit(calls.double, Refusing(1)))
            await space.read("tupelo.task", REST, timeout=60)
            refuse()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await space.put("go on", "word")
            assert await busy == "word"

    asyncio.run(main())


@pytest.mark.parametrize("is_answered", [False, True])
def test_a_call_whose_tuples_can_not_be_made_any_more_is_cancelled(space, refuse, is_answered):
    async def main():
        async with aio.connect(space.url) as shared:
            task = asyncio.create_task(awaited.call(shared, "service", Refusing(1)))
            _, _, box, number, _ = await shared.read("tupelo.request", "service", str, int, list)
            if is_answered:
                space.take("tupelo.request", REST)
                space.put("tupelo.answer", box, number, "done", Refusing(1))
            refuse()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert space.count(REST) == 0

    asyncio.run(main())
