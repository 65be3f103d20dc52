"""Threads and tasks that share an object over a space that was removed: all go on in the next."""

import asyncio

import pytest
from test_reconnecting import Result

import tupelo as ts
from tupelo import aio
from tupelo.aio import batteries as aio_batteries
from tupelo.batteries import Barrier, Lock, Queue, RWLock, Semaphore

ROUNDS = 10
"""Who is told first, and who renews the connection, is another one each time."""


async def until_waiting(space, number):
    while (await space.stat())["waiters"] < number:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0)


LOCKS = pytest.mark.parametrize(
    ("of", "holders"),
    [
        (lambda all_, space: all_.Lock(space, "index"), 1),
        (lambda all_, space: all_.Semaphore(space, "gpu", n=2), 2),
        (lambda all_, space: all_.RWLock(space, "table", readers=2).reader, 2),
        (lambda all_, space: all_.RWLock(space, "table", readers=2).writer, 1),
    ],
    ids=["lock", "semaphore", "reader", "writer"],
)


class Blocking:
    """The batteries of blocking programs, under the names of those of asyncio."""

    Lock, Semaphore, RWLock = Lock, Semaphore, RWLock


@pytest.mark.parametrize("scheme", ["mem", "shm", "unix"])
@LOCKS
def test_a_lock_that_threads_share_begins_anew_for_each_of_them_c4(
    lasting, eventually, scheme, of, holders
):
    space = lasting(scheme)
    shared = of(Blocking, space)
    for _ in range(ROUNDS):
        held = [shared.acquire(timeout=60) for _ in range(holders)]
        results = [Result(lambda: shared.acquire(timeout=60).release()) for _ in range(3)]
        eventually(lambda: space.stat()["waiters"] == 3)
        ts.remove(space.url)
        for result in results:
            result.get()
        for permit in held:
            with pytest.raises(ts.SpaceRemoved):
                permit.release()


def test_a_barrier_that_threads_share_begins_anew_for_each_of_them_c4(lasting, eventually):
    space = lasting("shm")
    shared = Barrier(space, "epoch", parties=4)
    for _ in range(ROUNDS):
        parties = [Result(lambda: shared.wait(timeout=60)) for _ in range(3)]
        eventually(lambda: space.stat()["waiters"] == 3)
        ts.remove(space.url)
        places = [Barrier(space, "epoch", parties=4).wait(timeout=60)]
        assert sorted(places + [party.get() for party in parties]) == [0, 1, 2, 3]


def test_a_bounded_queue_that_threads_share_has_its_room_once_c4(lasting, eventually):
    space = lasting("shm")
    shared = Queue(space, "mail", maxsize=3)
    for _ in range(ROUNDS):
        for item in range(3):
            shared.put(item)
        results = [Result(lambda: shared.put("later", timeout=60)) for _ in range(3)]
        eventually(lambda: space.stat()["waiters"] == 3)
        ts.remove(space.url)
        for result in results:
            result.get()
        with pytest.raises(ts.Timeout):
            shared.put("too many", timeout=0)
        for _ in range(3):
            with shared.get(timeout=60) as item:
                assert item == "later"


@LOCKS
def test_a_lock_that_tasks_share_begins_anew_for_each_of_them_c4(new_url, of, holders):
    url = new_url("shm")

    async def main():
        async with aio.connect(url, size="64M", on_removed="reconnect") as space:
            shared = of(aio_batteries, space)
            held = [await shared.permit(timeout=60) for _ in range(holders)]

            async def hold():
                permit = await shared.permit(timeout=60)
                await permit.release()

            tasks = [asyncio.ensure_future(hold()) for _ in range(3)]
            await until_waiting(space, len(tasks))
            ts.remove(url)
            await asyncio.gather(*tasks)
            for permit in held:
                with pytest.raises(ts.SpaceRemoved):
                    await permit.release()

    asyncio.run(main())


def test_a_barrier_and_a_queue_that_tasks_share_begin_anew_for_each_of_them_c4(new_url):
    url = new_url("shm")

    async def main():
        async with aio.connect(url, size="64M", on_removed="reconnect") as space:
            barrier = aio_batteries.Barrier(space, "epoch", parties=4)
            queue = aio_batteries.Queue(space, "mail", maxsize=3)
            for item in range(3):
                await queue.put(item)
            parties = [asyncio.ensure_future(barrier.wait(timeout=60)) for _ in range(3)]
            puts = [asyncio.ensure_future(queue.put("later", timeout=60)) for _ in range(3)]
            await until_waiting(space, len(parties) + len(puts))
            ts.remove(url)
            await asyncio.gather(*puts)
            with pytest.raises(ts.Timeout):
                await queue.put("too many", timeout=0)
            assert await barrier.wait(timeout=60) in range(4)
            assert len(set(await asyncio.gather(*parties))) == 3

    asyncio.run(main())


def test_a_party_that_is_cancelled_when_its_space_was_removed_does_not_go_on_c4(new_url):
    url = new_url("shm")

    async def main():
        async with aio.connect(url, size="64M", on_removed="reconnect") as space:
            barrier = aio_batteries.Barrier(space, "epoch", parties=2)
            late = asyncio.ensure_future(barrier.wait(timeout=60))
            await until_waiting(space, 1)
            ts.remove(url)
            late.cancel()
            with pytest.raises(asyncio.CancelledError):
                await late
            assert await space.count(ts.REST) == 0

    asyncio.run(main())
