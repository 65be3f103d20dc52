"""tupelo.aio.batteries: who is cut while it waits for a lock or a barrier never was there (T5)."""

import asyncio

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome

from tupelo import REST, aio
from tupelo.aio.batteries import Barrier, BrokenBarrier, Lock, RWLock, Semaphore


def table(space, readers):
    return RWLock(space, "a", readers=readers)


WAITS = {
    "lock": (lambda space: Lock(space, "a"),) * 2,
    "semaphore": (lambda space: Semaphore(space, "a", n=1),) * 2,
    "writer behind a writer": (lambda space: table(space, 3).writer,) * 2,
    "writer behind a reader": (
        lambda space: table(space, 3).reader,
        lambda space: table(space, 3).writer,
    ),
    "reader behind a writer": (
        lambda space: table(space, 3).writer,
        lambda space: table(space, 3).reader,
    ),
    "reader behind the last one": (lambda space: table(space, 1).reader,) * 2,
}
"""Who holds it, and who waits for that one."""


async def acquires(one):
    permit = await one.acquire()
    try:
        await asyncio.sleep(0)
    finally:
        await permit.release()


async def acquires_in_time(one):
    permit = await one.acquire(timeout=60)
    try:
        await asyncio.sleep(0)
    finally:
        await permit.release()


async def enters(one):
    async with one:
        await asyncio.sleep(0)


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("use", [acquires, acquires_in_time, enters])
@pytest.mark.parametrize("pair", WAITS)
def test_a_fault_at_every_await_leaves_it_free_for_the_next_t5(space, pair, use, exception, served):
    holder, waiter = WAITS[pair]

    async def main(at):
        async with aio.connect(space.url) as shared:
            await (await holder(shared).acquire()).release()
            whole = sorted(await shared.read_all(REST))
            held = await holder(shared).acquire()
            cut = Cut(use(waiter(shared)), at, exception, served=served)
            call = await begun(outcome(cut))
            behind = await begun(waiter(shared).acquire(timeout=60))
            await held.release()
            was_cut = await call is exception
            assert cut.was_reached == was_cut
            del call, cut  # with the permit that it may have
            await (await behind).release()
            assert in_hands(space) == {}
            assert sorted(await shared.read_all(REST)) == whole
            for make in (holder, waiter):
                await (await make(shared).try_acquire()).release()
        return was_cut

    assert at_every_await(main) > 1


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_fault_at_every_await_leaves_a_barrier_whole_t5(space, exception, served):
    """A party that is cut has not come; or all had, and the others have passed."""

    async def main(at):
        async with aio.connect(space.url) as shared:
            one, two = (Barrier(shared, "a", parties=2, party=name) for name in ("one", "two"))
            cut = Cut(one.wait(), at, exception, served=served)
            call = await begun(outcome(cut))
            other = await begun(two.wait(timeout=60))
            result = await call
            was_cut = result is exception
            assert cut.was_reached == was_cut
            if was_cut and not served:
                assert await shared.count("tupelo.barrier", "a", 2, 0, 1, ["two"], []) == 1
                assert [await one.wait(timeout=60), await other] == [1, 0]
            else:
                assert await other == 1
                assert was_cut or result == 0
            assert in_hands(space) == {}
            again = one.wait(timeout=60), two.wait(timeout=60)
            assert await asyncio.gather(*again) == [0, 1]
            left = await shared.take_all(REST)
            assert left == [("tupelo.barrier", "a", 2, 2, 0, [], ["one", "two"])]
        return was_cut

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
def test_a_fault_while_a_barrier_is_reset_leaves_the_new_round_whole_t5(space, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            one, two = (Barrier(shared, "a", parties=2, party=name) for name in ("one", "two"))
            cut = Cut(one.wait(), at, served=served)
            call = await begun(outcome(cut))
            await two.reset()
            result = await call
            assert result in (asyncio.CancelledError, BrokenBarrier)
            assert in_hands(space) == {}
            again = one.wait(timeout=60), two.wait(timeout=60)
            assert await asyncio.gather(*again) == [0, 1]
            await shared.take_all(REST)
        return result is asyncio.CancelledError

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
def test_a_fault_while_a_barrier_breaks_leaves_it_broken_t5(space, served):
    """Others may have been told so: it is not for who leaves it to mend it."""

    async def main(at):
        async with aio.connect(space.url) as shared:
            one, two = (Barrier(shared, "a", parties=3, party=name) for name in ("one", "two"))
            cut = Cut(one.wait(), at, served=served)
            call = await begun(outcome(cut))
            for party in (two, two):
                with pytest.raises(BrokenBarrier):
                    await party.wait(timeout=0)
            result = await call
            assert result in (asyncio.CancelledError, BrokenBarrier)
            with pytest.raises(BrokenBarrier) as caught:
                await one.wait(timeout=60)
            had_left = result is asyncio.CancelledError and not served
            assert caught.value.arrived == (("two",) if had_left else ("one", "two"))
            assert in_hands(space) == {}
            await shared.take_all(REST)
        return result is asyncio.CancelledError

    assert at_every_await(main) == 1
