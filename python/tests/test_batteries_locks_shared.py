"""One object of a semaphore, or of a side of an RWLock, for several threads or tasks at a time."""

import asyncio
import itertools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tupelo import aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import RWLock, Semaphore
from tupelo.batteries.core.holdings import Holdings

MAKERS = {
    "semaphore": lambda batteries, space: batteries.Semaphore(space, "a", n=2),
    "reader": lambda batteries, space: batteries.RWLock(space, "a", readers=2).reader,
}


class Blocking:
    """The blocking ones, named as those of `tupelo.aio.batteries`."""

    Semaphore = Semaphore
    RWLock = RWLock


@pytest.fixture(params=MAKERS)
def make(request):
    """Return a function that makes what two may hold."""
    return MAKERS[request.param]


def is_held(permit):
    return not repr(permit).endswith("released>")


def test_a_thread_that_leaves_gives_back_its_own(space, make):
    shared = make(Blocking, space)
    first, second = threading.Barrier(2), threading.Barrier(2)

    def work():
        with shared:
            first.wait(60)
            second.wait(60)

    thread = threading.Thread(target=work)
    thread.start()
    first.wait(60)
    with shared as permit:
        second.wait(60)
        thread.join()
        assert is_held(permit)
        make(Blocking, space).try_acquire().release()
    assert not is_held(permit)
    permits = [make(Blocking, space).try_acquire() for _ in range(2)]
    for one in permits:
        one.release()


def test_a_thread_that_releases_early_keeps_nobody_from_giving_back(space, make):
    shared = make(Blocking, space)
    with shared as outer:
        early = []
        thread = threading.Thread(target=lambda: early.append(shared.__enter__()))
        thread.start()
        thread.join()
        early[0].release()
    assert not is_held(outer)


def test_a_block_that_another_thread_has_begun_can_be_ended(space, make):
    shared = make(Blocking, space)
    permits = []
    thread = threading.Thread(target=lambda: permits.append(shared.__enter__()))
    thread.start()
    thread.join()
    shared.__exit__(None, None, None)
    assert not is_held(permits[0])


def at_each_line(function, call, other):
    """Call it again and again, with `other()` before its first line, its second, and so on."""
    for at in itertools.count():
        lines = itertools.count()

        def trace(frame, event, _, at=at, lines=lines):
            if frame.f_code is not function.__code__:
                return None
            if event == "line" and next(lines) == at:
                other()
            return trace

        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(None)
        if next(lines) <= at:
            return at
    return None


def test_a_thread_that_enters_again_while_another_leaves_keeps_what_it_holds(space, make):
    shared = make(Blocking, space)
    held = []

    def enter_again():
        if held:
            shared.__exit__(None, None, None)
            assert not is_held(held.pop())
        held.append(shared.__enter__())

    def block():
        with shared:
            pass
        assert is_held(held[-1])

    with ThreadPoolExecutor(1) as thread:
        thread.submit(enter_again).result(60)
        places = at_each_line(Holdings.forget, block, lambda: thread.submit(enter_again).result(60))
        assert places > 2
        thread.submit(shared.__exit__, None, None, None).result(60)
    assert not is_held(held[-1])
    with make(Blocking, space).acquire(timeout=0), make(Blocking, space).acquire(timeout=0):
        pass


def test_blocks_within_each_other_end_in_turn(space, make):
    shared = make(Blocking, space)
    with shared as outer:
        with shared as inner:
            assert is_held(inner)
        assert not is_held(inner)
        assert is_held(outer)
    assert not is_held(outer)


def test_a_task_that_leaves_gives_back_its_own(space, make):
    async def main():
        async with aio.connect(space.url) as connection:
            shared = make(awaited, connection)
            is_in, go_on = asyncio.Event(), asyncio.Event()

            async def work():
                async with shared:
                    is_in.set()
                    await go_on.wait()

            task = asyncio.create_task(work())
            await is_in.wait()
            async with shared as permit:
                go_on.set()
                await task
                assert is_held(permit)
                await (await make(awaited, connection).try_acquire()).release()
            assert not is_held(permit)

    asyncio.run(main())


def test_tasks_that_use_blocking_ones_give_back_their_own(space, make):
    shared = make(Blocking, space)

    async def main():
        is_in, go_on = asyncio.Event(), asyncio.Event()

        async def work():
            with shared:
                is_in.set()
                await go_on.wait()

        task = asyncio.create_task(work())
        await is_in.wait()
        with shared as permit:
            go_on.set()
            await task
            assert is_held(permit)
        assert not is_held(permit)

    asyncio.run(main())
