"""What was acquired without a block is held until it is released, as that of `threading` is."""

import asyncio
import gc
import os
import threading
import warnings

import pytest

from tupelo import aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Lock, RWLock, Semaphore

MAKERS = {
    "lock": lambda space: Lock(space, "a"),
    "semaphore": lambda space: Semaphore(space, "a", n=1),
    "reader": lambda space: RWLock(space, "a", readers=1).reader,
    "writer": lambda space: RWLock(space, "a", readers=3).writer,
}


@pytest.fixture(params=MAKERS)
def make(request):
    """Return a function that makes what one may hold at a time."""
    return MAKERS[request.param]


def test_what_is_acquired_and_not_kept_excludes_others_until_release(space, make):
    one, other = make(space), make(space)
    one.acquire()
    gc.collect()
    assert other.try_acquire() is None
    one.release()
    if one.try_acquire():
        gc.collect()
        assert other.try_acquire() is None
        one.release()
    other.acquire(timeout=0).release()


@pytest.mark.parametrize("kind", MAKERS)
def test_locked_tells_of_all_holders_and_takes_nothing_away(space, kind):
    make = MAKERS[kind]
    one, other = make(space), make(space)
    assert not one.locked()
    one.acquire()
    assert one.locked()
    assert other.locked()
    one.release()
    assert not other.locked()
    with other:
        assert one.locked()
    assert not one.locked()
    before = one.acquire(timeout=0).token
    one.release()
    one.locked()
    with one as permit:  # as many claims later as if nobody had asked
        assert permit.token - before == {"reader": 2, "writer": 4}.get(kind, 1)


def test_a_semaphore_and_a_lock_for_readers_are_locked_when_nothing_is_left(space):
    gpu, table = Semaphore(space, "gpu", n=2), RWLock(space, "table", readers=2)
    for one in (gpu, table.reader):
        one.acquire()
        assert not one.locked()
        assert table.writer.locked() == (one is table.reader)
        one.acquire()
        assert one.locked()
        one.release()
        assert not one.locked()
        one.release()
    with table.writer:
        assert table.reader.locked()


def test_release_without_acquire_is_refused(space, make):
    one = make(space)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="is not held with this object: acquire it first"):
            one.release()
        with one:
            pass
    permit = one.acquire()
    permit.release()
    with pytest.raises(RuntimeError, match="is not held with this object"):
        one.release()
    with pytest.raises(RuntimeError, match="was released before, by this permit"):
        permit.release()


def test_each_thread_releases_its_own_and_who_has_none_that_of_another(space):
    gpu = Semaphore(space, "gpu", n=2)
    mine, permits = gpu.acquire(), []
    thread = threading.Thread(target=lambda: permits.append(gpu.acquire()))
    thread.start()
    thread.join()
    gpu.release()
    assert (mine._core.is_held, permits[0]._core.is_held) == (False, True)  # noqa: SLF001
    gpu.release()
    assert not permits[0]._core.is_held  # noqa: SLF001
    assert space.count("tupelo.semaphore.unit", "gpu", int) == 2


def test_a_block_can_let_others_in_and_acquire_again(space, make):
    """As a condition does."""
    one, other = make(space), make(space)
    with one:
        one.release()
        other.acquire(timeout=0)
        other.release()
        one.acquire()
        assert other.locked()
    assert not other.locked()


def test_what_was_acquired_in_a_block_outlives_it(space):
    gpu = Semaphore(space, "gpu", n=2)
    with gpu as outer:
        inner = gpu.acquire()
    assert (outer._core.is_held, inner._core.is_held) == (False, True)  # noqa: SLF001
    inner.release()


def test_what_is_forgotten_with_its_object_is_free_with_a_warning(space, make):
    with pytest.warns(ResourceWarning, match=r"was not released \(token \d+\), and it is free"):
        make(space).acquire()
    one = make(space)
    one.acquire(timeout=0)
    with pytest.warns(ResourceWarning, match="hold it as a `with` block") as caught:
        del one
    assert [warning.filename for warning in caught] == [__file__]
    make(space).acquire(timeout=0).release()


def test_a_permit_outlives_its_object(space, make):
    permit = make(space).acquire()
    gc.collect()
    assert make(space).locked()
    permit.release()
    assert not make(space).locked()


def test_a_forked_child_that_forgets_it_says_nothing(shm, make):
    one = make(shm)
    one.acquire()
    child = os.fork()
    if child == 0:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del one
            gc.collect()
        os._exit(len(caught))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert make(shm).locked()
    one.release()


def test_tasks_hold_until_they_release(space):
    async def main():
        async with aio.connect(space.url) as shared:
            lock, order = awaited.Lock(shared, "a"), []

            async def work(number):
                await lock.acquire()
                order.append(("begin", number))
                await asyncio.sleep(0)
                order.append(("end", number))
                await lock.release()

            await asyncio.gather(*(work(number) for number in range(3)))
            assert order == [(what, n) for n in range(3) for what in ("begin", "end")]
            assert not await lock.locked()
            assert await lock.try_acquire()
            assert await awaited.Lock(shared, "a").locked()
            assert await lock.try_acquire() is None
            await lock.release()
            with pytest.raises(RuntimeError, match="lock 'a' is not held with this object"):
                await lock.release()
            with pytest.warns(ResourceWarning, match="lock 'a' was not released"):
                await awaited.Lock(shared, "a").acquire()
            async with lock:
                await lock.release()
                async with awaited.Lock(shared, "a"):
                    assert await lock.locked()
                await lock.acquire()
            assert not await lock.locked()

    asyncio.run(main())
