"""Full spaces: what becomes of a put for which there is no room (B1)."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import calls
import pytest

import tupelo as ts
from tupelo import REST, aio, batteries
from tupelo.aio import batteries as awaited


def full(url, when_full, tuples_max=1):
    """Open a space of ("n", number) from 0 on, as many as fit."""
    space = ts.connect(url, tuples_max=tuples_max, when_full=when_full)
    space.put_all(("n", number) for number in range(tuples_max))
    return space


def test_a_policy_is_chosen_at_creation_and_shown(url):
    with full(url, "drop-oldest", 2) as space:
        space.put("n", 2)
        with ts.connect(url) as other:  # a space keeps its policy
            other.put("n", 3)
            stat = other.stat()
        assert (stat["tuples_max"], stat["when_full"], stat["dropped"]) == (2, "drop-oldest", 2)
        assert space.read_all("n", int) == [("n", 2), ("n", 3)]


def test_a_space_without_limits_says_so(space):
    stat = space.stat()
    assert (stat["tuples_max"], stat["when_full"], stat["dropped"]) == (None, "error", 0)


@pytest.mark.parametrize("policy", ["drop", "", "Error"])
def test_an_unknown_policy_is_refused(policy, new_url):
    with pytest.raises(ValueError, match="give 'error', 'wait' or 'drop-oldest'"):
        ts.connect(new_url("mem"), when_full=policy)
    with pytest.raises(TypeError, match="when_full has the type int"):
        ts.connect(new_url("mem"), when_full=7)


PUTS = {
    "put": lambda space, **options: space.put("n", 7, **options),
    "put on terms": lambda space, **options: space.put("n", 7, lease=60, **options),
    "put_all": lambda space, **options: space.put_all([("n", 7)], **options),
    "put_if_absent": lambda space, **options: space.put_if_absent("n", 7, **options),
}


@pytest.mark.parametrize("verb", PUTS)
def test_a_put_with_a_timeout_waits_for_room_whatever_the_policy(url, verb, eventually):
    with full(url, "error") as space, ThreadPoolExecutor(1) as pool:
        for options in ({}, {"timeout": None}, {"timeout": 0}, {"timeout": 0.01}):
            with pytest.raises(ts.SpaceFull):
                PUTS[verb](space, **options)
        assert space.stat()["waiters"] == 0
        put = pool.submit(PUTS[verb], space, timeout=60)
        eventually(lambda: space.stat()["waiting_for_room"] == 1)
        assert space.take("n", int) == ("n", 0)
        put.result()
        assert space.take("n", int) == ("n", 7)


@pytest.mark.parametrize("verb", PUTS)
def test_in_a_space_whose_puts_wait_they_wait_for_ever_by_default(url, verb, eventually):
    with full(url, "wait") as space, ThreadPoolExecutor(1) as pool:
        with pytest.raises(ts.SpaceFull):
            PUTS[verb](space, timeout=0)
        put = pool.submit(PUTS[verb], space)
        eventually(lambda: space.stat()["waiting_for_room"] == 1)
        assert space.take("n", int) == ("n", 0)
        put.result()
        assert space.take("n", int) == ("n", 7)


def test_the_end_of_a_claim_waits_for_room_for_what_it_puts(url, eventually):
    with full(url, "wait", 2) as space, ThreadPoolExecutor(1) as pool:

        def work():
            claim = space.claim("n", int)
            with claim:
                claim.put("result", 1)
                claim.put("result", 2)
                with pytest.raises(ts.SpaceFull):
                    claim.done(timeout=0)
                assert not claim.settled
            assert claim.settled

        done = pool.submit(work)
        eventually(lambda: space.stat()["waiting_for_room"] == 1)
        assert space.take("n", int) == ("n", 1)
        done.result()
        assert space.take_all("result", int) == [("result", 1), ("result", 2)]


def test_what_never_fits_is_refused_at_once(url):
    with full(url, "wait", 2) as space:
        with pytest.raises(ts.SpaceFull, match="3 tuples at once are over the 2") as caught:
            space.put_all([("n", 1)] * 3)
        assert not caught.value.may_pass
        with pytest.raises(ts.SpaceFull) as caught:
            space.put("n", 1, timeout=0)
        assert caught.value.may_pass


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C be heard, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_put_that_waits_and_stores_nothing(url):
    with full(url, "wait") as space:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            space.put("n", 1)
        timer.join()
        assert space.read_all(REST) == [("n", 0)]
        assert space.stat()["waiters"] == 0


WAITS = """
import sys, tupelo as ts
with ts.connect(sys.argv[1]) as space:
    space.put("n", 1)
"""


def test_who_is_killed_in_line_for_room_leaves_nothing_behind(shm_url, eventually):
    with full(shm_url, "wait") as space, ThreadPoolExecutor(1) as pool:
        first = subprocess.Popen([sys.executable, "-c", WAITS, shm_url])
        eventually(lambda: space.stat()["waiting_for_room"] == 1)
        second = pool.submit(space.put, "n", 2)
        eventually(lambda: space.stat()["waiting_for_room"] == 2)
        first.kill()
        first.wait()
        assert space.take("n", int) == ("n", 0)
        second.result()
        assert space.take_all(REST) == [("n", 2)]


def test_tasks_wait_for_room_in_the_order_in_which_they_came(url):
    async def main():
        async with aio.connect(url) as shared:
            puts = []
            for number in range(1, 6):
                puts.append(asyncio.create_task(shared.put("n", number)))
                await asyncio.sleep(0)
            assert (await shared.stat())["waiting_for_room"] == 5
            puts.pop(2).cancel()
            await asyncio.sleep(0)
            order = [(await shared.take("n", int))[1] for _ in range(5)]
            await asyncio.gather(*puts)
            return order

    with full(url, "wait") as space:
        assert asyncio.run(main()) == [0, 1, 2, 4, 5]
        assert space.stat()["waiters"] == 0


def test_the_puts_of_tasks_wait_as_the_synchronous_ones_do(url):
    async def main():
        async with aio.connect(url) as shared:
            for put in (
                shared.put("n", 1, timeout=0),
                shared.put("n", 1, timeout=0.01),
                shared.put_all([("n", 1)], timeout=0.01),
                shared.put_if_absent("x", timeout=0.01),
                shared.put_all([("n", 1)] * 9),
            ):
                with pytest.raises(ts.SpaceFull):
                    await put
            all_of_them = asyncio.create_task(shared.put_all(("m", n) for n in range(2)))
            await asyncio.sleep(0)
            await shared.take_all("n", int)
            assert await all_of_them == 2
            claim = shared.claim("m", int)
            async with claim:
                await claim.put("result", 1)
                await claim.put("result", 2)
                with pytest.raises(ts.SpaceFull):
                    await claim.done(timeout=0)
                taken = asyncio.create_task(asyncio.to_thread(space.take, "m", int))
            await taken
            assert await shared.count("result", int) == 2

    with full(url, "wait", 2) as space:
        asyncio.run(main())
        assert space.stat()["waiters"] == 0


@contextmanager
def rescued(space):
    """Make room after a while for a loop that is held up: the test fails then, and ends."""
    rescue = threading.Timer(20, space.take_all, args=("n", int))
    rescue.daemon = True
    rescue.start()
    yield
    rescue.cancel()


async def in_line_for_room(shared, waiting):
    while (await shared.stat())["waiting_for_room"] == 0 and not waiting.done():  # noqa: ASYNC110 - nothing tells of that
        await asyncio.sleep(0)
    assert not waiting.done()


async def queue_put(shared):
    await awaited.Queue(shared, "mail").put("a letter")


async def delivery_done(shared):
    mail = awaited.Queue(shared, "mail")
    await shared.take("n", int)
    await mail.put("a letter")
    delivery = await mail.get()
    for number in range(2):
        await delivery.put("result", number)
    await delivery.done()


async def delivery_block(shared):
    mail = awaited.Queue(shared, "mail")
    await shared.take("n", int)
    await mail.put("a letter")
    delivery = await mail.get()
    async with delivery:
        for number in range(2):
            await delivery.put("result", number)


async def finished(shared):
    await shared.finish("n", int)


@pytest.mark.parametrize("needs_room", [queue_put, delivery_done, delivery_block, finished])
def test_a_battery_that_waits_for_room_does_not_hold_up_the_loop(url, needs_room):
    """Who makes the room is a task of the same loop: else nobody ever would."""

    async def main():
        async with aio.connect(url) as shared:
            waiting = asyncio.create_task(needs_room(shared))
            await in_line_for_room(shared, waiting)
            await shared.take("n", int, timeout=0)
            await waiting

    with full(url, "wait", 2) as space, rescued(space):
        asyncio.run(main())
        assert space.stat()["waiters"] == 0


async def task_of_eval(shared):
    await shared.eval("d", ts.call(calls.double, 2), on="workers")


async def task_of_a_worker(shared):
    await awaited.worker(shared.url)(calls.double).submit(2)


@pytest.mark.parametrize("submit", [task_of_eval, task_of_a_worker])
def test_a_task_for_others_waits_for_room_in_the_loop(shm_url, submit):
    async def main():
        async with aio.connect(shm_url) as shared:
            waiting = asyncio.create_task(submit(shared))
            await in_line_for_room(shared, waiting)
            await shared.take("n", int, timeout=0)
            await shared.read("tupelo.task", REST)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await shared.count("tupelo.task", REST) == 0

    with full(shm_url, "wait", 2) as space, rescued(space):
        asyncio.run(main())
        assert space.stat()["waiting_for_room"] == 0


def test_the_first_eval_of_a_program_waits_for_room_in_the_loop(shm_url):
    async def main():
        async with aio.connect(shm_url) as shared:
            waiting = asyncio.create_task(shared.eval("d", ts.call(calls.double, 2)))
            await in_line_for_room(shared, waiting)
            await shared.take_all("n", int)
            assert await waiting == ("d", 4)

    with full(shm_url, "wait", 4) as space, rescued(space):
        asyncio.run(main())


USES = {
    "call": lambda space: batteries.call(space, "nobody", timeout=0.05),
    "Lock.try_acquire": lambda space: batteries.Lock(space, "a").try_acquire(),
    "Lock.acquire": lambda space: batteries.Lock(space, "a").acquire(timeout=0.05),
    "Semaphore": lambda space: batteries.Semaphore(space, "a", n=2).acquire(timeout=0.05),
    "RWLock": lambda space: batteries.RWLock(space, "a").reader.try_acquire(),
    "Barrier": lambda space: batteries.Barrier(space, "a", parties=2).wait(timeout=0.05),
    "Queue": lambda space: batteries.Queue(space, "a", maxsize=1).put(1, timeout=0.05),
}


@pytest.mark.parametrize("use", USES)
def test_a_battery_waits_for_room_no_longer_than_it_may(url, use):
    with full(url, "wait", 2) as space:
        with pytest.raises(ts.SpaceFull, match="TUP-005"):
            USES[use](space)
        assert space.read_all(REST) == [("n", 0), ("n", 1)]
        assert space.stat()["waiters"] == 0


def test_a_queue_waits_no_longer_than_it_may_for_whoever_makes_its_room(space):
    space.put("tupelo.queue.size", "mail", 0)
    with space.claim("tupelo.queue.size", "mail", int):  # as another one that was stopped at it
        with pytest.raises(ts.Timeout, match="queue 'mail' had no room within"):
            batteries.Queue(space, "mail", maxsize=1).put("a", timeout=0.05)


def test_a_task_for_a_pool_waits_for_room_in_the_loop(url):
    async def main():
        async with aio.connect(url) as shared, awaited.Pool(url, workers=1) as pool:
            with pytest.raises(ts.SpaceFull):
                while True:
                    await shared.put("n", 1, timeout=0)
            waiting = asyncio.create_task(pool.submit(calls.double, 2))
            await in_line_for_room(shared, waiting)
            await shared.take_all("n", int)
            assert await waiting == 4

    with ts.connect(url, tuples_max=4, when_full="wait") as space, rescued(space):
        asyncio.run(main())


def test_a_block_that_is_cancelled_while_it_waits_for_room_gives_its_tuple_back(url):
    async def main():
        async with aio.connect(url) as shared:

            async def work():
                claim = shared.claim("n", int)
                async with claim:
                    await claim.put("result", 1)
                    await claim.put("result", 2)

            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            assert (await shared.stat())["waiting_for_room"] == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await shared.read_all(REST) == [("n", 0), ("n", 1)]

    with full(url, "wait", 2) as space:
        asyncio.run(main())
        assert space.stat()["waiters"] == 0
