"""tupelo.aio: who is cut while others work for it leaves no task that waits, and no answer (T5)."""

import asyncio
import math
from contextlib import contextmanager
from threading import Thread

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio.batteries import Pool, worker
from tupelo.tasks.crew import Terms

QUEUE = "math:isqrt"


def submits(shared):
    return worker(shared.url)(math.isqrt).submit(16)


async def evaluates(shared):
    return (await shared.eval("root", ts.call(math.isqrt, 16), on="workers"))[1]


CALLS = [submits, evaluates]


@contextmanager
def served(space):
    """Serve the queue in a thread until the block ends."""
    serving = Thread(target=Terms(QUEUE).server(space).serve)
    serving.start()
    try:
        yield
    finally:
        space.put("tupelo.end", QUEUE)
        serving.join()


async def no_tuple_is_left(space):
    space.take_all("root", int)
    # Of a task that had begun the answer is taken when it comes.
    await asyncio.to_thread(space.wait_none, REST, timeout=60)


async def nothing_is_left(space):
    await no_tuple_is_left(space)
    # Nobody waits for answers any more.
    while in_hands(space):  # noqa: ASYNC110 - nothing tells of that
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("call", CALLS)
def test_a_task_that_nobody_has_begun_is_withdrawn_by_who_is_cut_t5(shm, call, exception):
    async def main(at):
        async with aio.connect(shm.url) as shared:
            cut = Cut(call(shared), at, exception, served=False)
            waiting = await begun(outcome(cut))
            if not cut.was_reached:
                waiting.cancel()
            assert await waiting in {exception, asyncio.CancelledError}
            assert shm.count(REST) == 0
            await nothing_is_left(shm)
        return cut.was_reached

    assert at_every_await(main) > 0


@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("call", CALLS)
def test_the_answer_to_who_was_cut_is_left_to_nobody_t5(shm, call, exception):
    async def main(at):
        async with aio.connect(shm.url) as shared:
            cut = Cut(call(shared), at, exception, served=True)
            result = await outcome(cut)
            assert result == (exception if cut.was_reached else 4)
            await no_tuple_is_left(shm)
        return cut.was_reached

    with served(shm):
        assert at_every_await(main) > 0
    asyncio.run(asyncio.wait_for(nothing_is_left(shm), 60))


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_pool_goes_on_after_a_fault_at_every_await_of_its_tasks_t5(space, exception, served):
    async def main(at):
        async with Pool(space.url, workers=1) as pool:
            cut = Cut(pool.submit(math.isqrt, 16), at, exception, served=served)
            assert await outcome(cut) == (exception if cut.was_reached else 4)
            roots = pool.map(math.isqrt, [1, 4, 9])
            cut_too = Cut(anext(roots), at, exception, served=served)
            assert await outcome(cut_too) == (exception if cut_too.was_reached else 1)
            await roots.aclose()
            assert await pool.submit(math.isqrt, 25) == 5
            assert pool.failures == []
        await nothing_is_left(space)
        return cut.was_reached or cut_too.was_reached

    assert at_every_await(main) > 0
