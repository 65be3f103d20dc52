"""tupelo.aio: what ends many things at once, cut at every await, ends them all the same (T5)."""

import asyncio
import math
import os

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio.batteries import Pool, Queue, Service, call


async def nothing_is_left(space):
    await asyncio.to_thread(space.wait_none, REST, timeout=60)
    while in_hands(space):  # noqa: ASYNC110 - nothing tells of that
        await asyncio.sleep(0.01)


async def threads_have_ended():
    """What a task that was cut has left to a thread is done; no more can be given to one."""
    await asyncio.get_running_loop().shutdown_default_executor()


def is_there(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_pool_whose_begin_is_cut_leaves_neither_workers_nor_tuples_t5(space, exception, served):
    async def main(at):
        pool = Pool(space.url, workers=1)
        cut = Cut(pool.__aenter__(), at, exception, served=served)
        result = await outcome(cut)
        assert (result is exception) == cut.was_reached
        if not cut.was_reached:
            assert await pool.submit(math.isqrt, 16) == 4
            await pool.__aexit__(None, None, None)
        await threads_have_ended()
        space.wait_none(REST, timeout=0)
        assert in_hands(space) == {}
        return cut.was_reached

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_pool_whose_end_is_cut_leaves_neither_workers_nor_tuples_t5(space, exception, served):
    async def main(at):
        pool = Pool(space.url, workers=1)
        async with asyncio.TaskGroup() as tasks:
            await pool.__aenter__()
            pids = pool.pids()
            root = await begun(outcome(pool.submit(math.isqrt, 16)))
            cut = Cut(pool.__aexit__(None, None, None), at, exception, served=served)
            end = tasks.create_task(outcome(cut))
        assert await end is (exception if cut.was_reached else None)
        # What was submitted has its answer, or has failed with the pool.
        assert await root in {4, ts.RemoteError}
        assert cut.was_reached or await root == 4
        await nothing_is_left(space)
        while any(map(is_there, pids)):  # noqa: ASYNC110 - nobody else may wait for them
            await asyncio.sleep(0.01)
        return cut.was_reached

    assert at_every_await(main) == 1


@pytest.mark.parametrize("turns", range(8))
def test_a_service_whose_run_is_cancelled_answers_no_more_and_loses_no_request_t5_k2(space, turns):
    """After so many turns of the loop: before it runs, while it waits, or in the middle."""

    async def squared(number):
        await asyncio.sleep(0)
        return number**2

    async def main():
        async with aio.connect(space.url) as shared:
            running = asyncio.create_task(Service(shared, "square", squared, concurrency=2).run())
            asking = [asyncio.create_task(call(shared, "square", n, timeout=60)) for n in range(4)]
            for _ in range(turns):
                await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            other = Service(shared, "square", squared)
            taken_over = asyncio.create_task(other.run())
            assert await asyncio.gather(*asking) == [0, 1, 4, 9]
            await other.stop()
            await taken_over
            await nothing_is_left(space)

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("served", [False, True])
def test_who_is_cut_while_it_waits_for_the_end_of_a_queue_is_in_nobodys_way_t5(
    space, exception, served
):
    async def main(at):
        async with aio.connect(space.url) as shared:
            mail = Queue[int](shared, "mail")
            await mail.put(1)
            cut = Cut(mail.join(), at, exception, served=served)
            joining = await begun(outcome(cut))
            async with mail.get() as item:
                assert item == 1
            assert await joining is (exception if cut.was_reached else None)
            await nothing_is_left(space)
            await mail.join(timeout=0)
        return cut.was_reached

    assert at_every_await(main) == 1


@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("on", ["processes", "threads"])
def test_who_is_cut_while_its_own_processes_compute_leaves_no_tuple_t5(
    space, on, exception, served
):
    on = "threads" if space.url.startswith("mem:") else on  # no other process sees it

    async def main(at):
        async with aio.connect(space.url) as shared:
            cut = Cut(
                shared.eval("root", ts.call(math.isqrt, 16), on=on), at, exception, served=served
            )
            result = await outcome(cut)
            assert result == (exception if cut.was_reached else ("root", 4))
            # A task that had begun may still put it.
            assert await shared.eval("root", ts.call(math.isqrt, 25), on=on) == ("root", 5)
            # That of a task that had begun may come later. The mark of the pool is claimed.
            async with asyncio.timeout(60):
                while space.count(REST):
                    await shared.take_all("root", int)
        return cut.was_reached

    assert at_every_await(main) > 0
