"""tupelo.aio: what a loop is told in time: of tuples, of the dead, of what is closed."""

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import tupelo as ts
from tupelo import _native, aio


def run(main):
    return asyncio.run(main)


class UnhurriedNotifier:
    """A notifier whose owner is to look around in an hour, unless something is due before that."""

    def __init__(self, space):
        self._notifier = _native.Notifier(space)

    def __getattr__(self, name):
        return getattr(self._notifier, name)

    def next_look(self):
        seconds = self._notifier.next_look()
        return seconds if seconds < 0.09 else 3600.0


@pytest.fixture
def unhurried(monkeypatch):
    """Let no look around make up for what a loop was not told."""
    monkeypatch.setattr("tupelo.aio.loop_notifier.Notifier", UnhurriedNotifier)


@pytest.mark.usefixtures("unhurried")
def test_what_is_due_soon_is_heard_of_though_another_task_has_waited_before_l3_t6(space):
    async def main():
        async with aio.connect(space.url) as shared, asyncio.timeout(60):
            waiting = asyncio.create_task(shared.take("never"))
            await asyncio.sleep(0)
            await shared.put("late", after=0.05)
            # The loop has not come round since.
            assert await shared.take("late") == ("late",)
            waiting.cancel()

    run(main())


@pytest.mark.usefixtures("unhurried")
def test_what_is_due_soon_is_heard_of_though_something_else_came_with_it_l3_t6(space):
    async def main():
        async with aio.connect(space.url) as shared, asyncio.timeout(60):
            late = asyncio.create_task(shared.take("late"))
            soon = asyncio.create_task(shared.take("soon"))
            await asyncio.sleep(0)
            await shared.put("late", after=0.05)
            await shared.put("soon")
            assert await asyncio.gather(late, soon) == [("late",), ("soon",)]

    run(main())


@pytest.mark.usefixtures("unhurried")
def test_a_fork_that_closes_its_copy_of_a_space_leaves_the_loop_of_its_parent_alone(shm_url):
    shared = aio.connect(shm_url)

    async def waits():
        with pytest.raises(ts.Timeout):
            await shared.take("never", timeout=0.001)

    async def hears():
        later = asyncio.create_task(shared.take("from", str))
        await asyncio.sleep(0)
        await asyncio.to_thread(shared.blocking.put, "from", "thread")
        async with asyncio.timeout(60):
            return await later

    with asyncio.Runner() as runner:
        runner.run(waits())
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                shared.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert runner.run(hears()) == ("from", "thread")
    shared.close()


WAITS = {
    "take": lambda space, seconds: space.take("job", int, timeout=seconds),
    "read": lambda space, seconds: space.read("job", int, timeout=seconds),
    "claim": lambda space, seconds: space.claim("job", int, timeout=seconds),
    "take with a condition": lambda space, seconds: space.take(
        "job", int, where="f[1] > 6", timeout=seconds
    ),
    "search": lambda space, seconds: aio.Search([space]).take("job", int, timeout=seconds),
}


@pytest.mark.parametrize("wait", WAITS)
def test_closing_the_blocking_connection_in_another_thread_ends_what_waits(new_url, wait):
    space = aio.connect(new_url("shm"))
    begun = threading.Event()

    async def ends():
        task = asyncio.ensure_future(WAITS[wait](space, None))
        while not space.blocking.stat()["waiters"]:  # noqa: ASYNC110 - the space tells nobody
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        begun.set()
        async with asyncio.timeout(60):
            with pytest.raises(ts.SpaceClosed):
                await task

    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(asyncio.run, ends())
        begun.wait(60)
        space.blocking.close()
        waiting.result(60)
    space.close()


HOLDS = """
import sys, threading
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
claim = space.claim("job", int, ttl=3600)
space.put("held")
threading.Event().wait()
"""


@pytest.mark.parametrize("wait", WAITS)
def test_who_has_waited_long_enough_gets_what_the_dead_held_l5(shm, shm_url, wait):
    shm.put("job", 7)
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, shm_url])
    assert shm.take("held", timeout=60) == ("held",)

    def end_holder():
        holder.kill()
        holder.wait()

    async def main():
        async with aio.connect(shm_url) as shared:
            # Less than the time after which the loop looks around in any case.
            later = asyncio.ensure_future(WAITS[wait](shared, 0.08))
            await asyncio.sleep(0)
            end_holder()
            found = await later
            return found if isinstance(found, tuple) else found.tuple

    assert run(main()) == ("job", 7)


async def told_to_two(space, events):
    """Return what each of two tasks is told that ask for events at the same time."""

    async def one():
        return (await events.next(timeout=60)).tuple

    asking = [asyncio.create_task(one()) for _ in range(2)]
    await asyncio.sleep(0)
    space.put_all([("n", 1), ("n", 2)])
    return await asyncio.gather(*asking)


def test_the_tasks_of_one_loop_after_the_other_take_turns_at_a_subscription_n1(space):
    shared = aio.connect(space.url)
    events = shared.subscribe("n", int)
    for _ in range(3):
        assert run(told_to_two(space, events)) == [("n", 1), ("n", 2)]
        assert space.take_all("n", int) == [("n", 1), ("n", 2)]
    events.close()
    shared.close()


def test_a_loop_that_was_closed_while_a_task_waited_for_events_leaves_them_to_the_next_n1(space):
    shared = aio.connect(space.url)
    events = shared.subscribe("n", int)

    async def wait_for_nothing():
        waiting = asyncio.ensure_future(events.next())
        await asyncio.sleep(0)
        return waiting

    abandoned = asyncio.new_event_loop()
    waiting = abandoned.run_until_complete(wait_for_nothing())
    abandoned.close()
    assert run(told_to_two(space, events)) == [("n", 1), ("n", 2)]
    assert not waiting.done()
    events.close()
    shared.close()
    assert space.stat()["subscriptions"] == []


def test_a_subscription_whose_events_tasks_of_another_loop_wait_for_says_so(space):
    shared = aio.connect(space.url)
    events = shared.subscribe("n", int)

    async def begin():
        waiting = asyncio.ensure_future(events.next(timeout=60))
        await asyncio.sleep(0)
        return waiting

    async def refused():
        for wait in (events.next(), events.next(timeout=0), anext(events)):
            with pytest.raises(ValueError, match=r"TUP-019: tasks of another event loop wait for"):
                await wait

    async def told(waiting):
        return (await waiting).tuple

    first = asyncio.new_event_loop()
    waiting = first.run_until_complete(begin())
    run(refused())
    space.put("n", 1)
    assert first.run_until_complete(told(waiting)) == ("n", 1)
    first.close()
    events.close()
    shared.close()


def test_who_waits_for_a_turn_at_a_subscription_waits_for_its_events_too(space, monkeypatch):
    """Another loop would wait at the notifier beside it: between two turns nobody is there."""
    asked = []

    async def asks(events):
        await events.next(timeout=0)

    async def main():
        async with aio.connect(space.url) as shared, shared.subscribe("n", int) as events:
            wait = events._wait  # noqa: SLF001

            async def waits(loop):
                await wait(loop)
                with ThreadPoolExecutor(1) as other:
                    asked.append(other.submit(asyncio.run, asks(events)).exception(60))

            monkeypatch.setattr(events, "_wait", waits)
            return await told_to_two(space, events)

    assert run(main()) == [("n", 1), ("n", 2)]
    assert asked
    assert all(str(why).startswith("TUP-019: tasks of another event loop") for why in asked)


@pytest.mark.parametrize("handed", [True, False])
@pytest.mark.parametrize("closed", [True, False])
def test_what_a_closed_loop_waited_for_is_everybodys_again_l5_t5(space, handed, closed):
    shared = aio.connect(space.url)
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(shared.take("job", int))
    while not space.stat()["waiters"]:
        loop.run_until_complete(asyncio.sleep(0))
    if handed:
        space.put("job", 1)
    loop.close()
    if closed:
        shared.close()
    else:
        # Whoever waits with the same connection in another loop finds that this one is closed.
        with pytest.raises(ts.Timeout):
            run(shared.take("nothing", timeout=0.01))
    if not handed:
        space.put("job", 1)
    assert space.try_take("job", int) == ("job", 1)
    assert not waiting.done()
    shared.close()
    waiting.get_coro().close()
