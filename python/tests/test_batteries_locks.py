"""Lock, Semaphore and RWLock: never too many holders, in the order of coming, whoever dies."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import sleep

import pytest
from attempts import in_one_attempt

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Lock, RWLock, Semaphore
from tupelo.batteries.verbs import HeldAtOnce

MAKERS = {
    "lock": ("Lock(space, 'a', ttl=ttl)", lambda space: Lock(space, "a")),
    "semaphore": ("Semaphore(space, 'a', n=1, ttl=ttl)", lambda space: Semaphore(space, "a", n=1)),
    "writer": (
        "RWLock(space, 'a', readers=3, ttl=ttl).writer",
        lambda space: RWLock(space, "a", readers=3).writer,
    ),
    "reader": (
        "RWLock(space, 'a', readers=1, ttl=ttl).reader",
        lambda space: RWLock(space, "a", readers=1).reader,
    ),
}

HOLDS = """
import sys
import tupelo as ts
from tupelo.batteries import Lock, RWLock, Semaphore

space = ts.connect(sys.argv[1], create=False)
ttl = float(sys.argv[2])
with {what} as permit:
    space.put("held", permit.token)
    {work}
"""


def start(code, *words):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stderr=subprocess.PIPE, text=True
    )


@pytest.fixture(params=MAKERS)
def maker(request):
    """What each of them does if there is one unit of it: its code, and a function that makes it."""
    return MAKERS[request.param]


def test_one_at_a_time_holds_it_and_tokens_increase(space, maker):
    _, make = maker
    inside, most, tokens = [0], [0], []

    def work():
        one = make(space)
        for _ in range(25):
            with one as permit:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                tokens.append(permit.token)
                sleep(0.0001)  # lets the others in, if they can come in
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert len(tokens) == 100
    assert tokens == sorted(set(tokens))  # K1


def test_what_was_acquired_is_not_free_until_it_is_released(space, maker):
    _, make = maker
    one = make(space)
    permit = one.acquire(timeout=5)
    assert make(space).try_acquire() is None
    with pytest.raises(ts.Timeout, match=r"was not free within 0\.01 s") as caught:
        make(space).acquire(timeout=0.01)
    assert caught.value.space == space.url
    permit.release()
    assert repr(permit).endswith("released>")
    with pytest.raises(RuntimeError, match="was released before, by this permit"):
        permit.release()
    with make(space).acquire(timeout=0) as permit:
        permit.release()
        other = make(space).try_acquire()
    other.release()
    del other
    with make(space).try_acquire() as permit:
        assert f"token {permit.token}" in repr(permit)
    assert space.stat()["waiters"] == 0


def test_a_block_that_raises_gives_it_back(space, maker):
    _, make = maker
    with pytest.raises(ZeroDivisionError), make(space):
        _ = 1 // 0
    make(space).try_acquire().release()


def test_a_permit_that_is_forgotten_gives_it_back(space, maker):
    _, make = maker
    with pytest.warns(ResourceWarning, match="was not released"):
        make(space).acquire()
    make(space).acquire(timeout=60).release()


def test_who_has_waited_longest_is_next(space, maker, eventually):
    """T3, also against those who try without waiting."""
    _, make = maker
    order = []

    def work(number):
        with make(space):
            order.append(number)

    permit = make(space).acquire()
    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=work, args=(number,)))
        threads[-1].start()
        eventually(lambda number=number: space.stat()["waiters"] == number + 1)
    permit.release()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_killed_holder_holds_nothing(shm, shm_url, maker):
    """L5, K2: although its ttl is an hour."""
    code, make = maker
    child = start(HOLDS.format(what=code, work="space.take('never')"), shm_url, 3600)
    _, token = shm.take("held", int, timeout=60)
    assert make(shm).try_acquire() is None
    child.kill()
    child.communicate()
    with make(shm).acquire(timeout=60) as permit:
        assert permit.token > token
    make(shm).try_acquire().release()


def test_a_waiter_has_it_when_the_holder_is_killed(shm, shm_url, maker, eventually):
    code, _ = maker
    first = start(HOLDS.format(what=code, work="space.take('never')"), shm_url, 3600)
    shm.take("held", int, timeout=60)
    second = start(HOLDS.format(what=code, work="pass"), shm_url, 3600)
    eventually(lambda: shm.stat()["waiters"] == 2)
    first.kill()
    first.communicate()
    shm.take("held", int, timeout=60)
    assert second.communicate(timeout=60)[1] == ""


def test_a_stopped_holder_has_lost_it_when_its_ttl_ends_and_learns_that(
    shm, shm_url, maker, eventually
):
    code, make = maker
    child = start(HOLDS.format(what=code, work="space.take('go on')"), shm_url, 0.3)
    _, token = shm.take("held", int, timeout=60)
    # In the wait queue, and so outside of every critical section, where it would stall all
    # (TUP-016).
    eventually(lambda: shm.stat()["waiters"] == 1)
    child.send_signal(signal.SIGSTOP)
    with make(shm).acquire(timeout=60) as permit:
        assert permit.token > token  # the one that a late writer can not have
        shm.put("go on")
        child.send_signal(signal.SIGCONT)
        assert "tupelo.ClaimLost: TUP-007" in child.communicate(timeout=60)[1]
        assert child.returncode == 1
        assert make(shm).try_acquire() is None  # the late release took nothing away
    make(shm).try_acquire().release()


@in_one_attempt
def test_a_holder_of_a_short_ttl_keeps_it_as_long_as_it_lives(shm, shm_url, maker):
    """Also while its code holds the interpreter, for three times the ttl."""
    code, _ = maker
    sleep = "import ctypes; ctypes.PyDLL(None).usleep(1_500_000)"
    child = start(HOLDS.format(what=code, work=sleep), shm_url, 0.5)
    assert child.communicate(timeout=60)[1] == ""
    shm.take("held", int, timeout=0)


WAITS_FOR_EVER = """
import sys
import tupelo as ts
from tupelo.batteries import Lock, RWLock, Semaphore

space = ts.connect(sys.argv[1], create=False)
ttl = 3600
space.put("waits")
{what}.acquire()
"""


def test_a_waiter_that_is_killed_is_not_in_line_any_more(shm, shm_url, maker, eventually):
    code, make = maker
    with make(shm):
        child = start(WAITS_FOR_EVER.format(what=code), shm_url)
        eventually(lambda: shm.stat()["waiters"] == 1)
        child.kill()
        child.communicate()
    make(shm).acquire(timeout=60).release()


CHURNS = """
import sys
import tupelo as ts
from tupelo.batteries import Lock, RWLock, Semaphore

space = ts.connect(sys.argv[1], create=False)
ttl = 3600
one = {what}
while True:
    with one as permit:
        space.put("held", permit.token)
        space.take("held", permit.token)
"""


def test_who_is_killed_at_any_moment_leaves_it_free(shm, shm_url, maker):
    """C1: between all that acquiring and releasing consists of."""
    code, make = maker
    for _ in range(6):
        children = [start(CHURNS.format(what=code), shm_url) for _ in range(2)]
        for _ in range(20):
            shm.read("held", int, timeout=60)
        for child in children:
            child.kill()
            child.communicate()
        shm.take_all("held", int)
        make(shm).acquire(timeout=60).release()
    make(shm).try_acquire().release()


def test_of_a_semaphore_there_are_n(space):
    gpus = Semaphore(space, "gpu", n=3)
    permits = [gpus.acquire() for _ in range(3)]
    assert gpus.try_acquire() is None
    permits.pop(1).release()
    with gpus:
        assert Semaphore(space, "gpu", n=3).try_acquire() is None
    assert len({permit.token for permit in permits}) == 2
    assert gpus.n == 3
    for permit in permits:
        permit.release()


def test_readers_share_and_a_writer_does_not(space):
    table = RWLock(space, "table", readers=4)
    with table.reader, table.reader:
        assert table.writer.try_acquire() is None
        with table.reader, table.reader:
            assert table.reader.try_acquire() is None  # as many as there may be
    with table.writer:
        assert table.reader.try_acquire() is None
        assert table.writer.try_acquire() is None
    table.reader.try_acquire().release()


def test_readers_do_not_pass_a_writer_that_waits(space, eventually):
    table = RWLock(space, "table", readers=4)
    order = []

    def work(side, name):
        with side:
            order.append(name)

    reading = table.reader.acquire()
    writer = threading.Thread(target=work, args=(RWLock(space, "table", readers=4).writer, "w"))
    writer.start()
    eventually(lambda: space.stat()["waiters"] == 1)
    reader = threading.Thread(target=work, args=(RWLock(space, "table", readers=4).reader, "r"))
    reader.start()
    eventually(lambda: space.stat()["waiters"] == 2)
    assert table.reader.try_acquire() is None
    assert order == []
    reading.release()
    writer.join()
    reader.join()
    assert order == ["w", "r"]


def test_a_writer_that_gives_up_lets_the_readers_pass(space):
    table = RWLock(space, "table", readers=4)
    with table.reader:
        with pytest.raises(ts.Timeout, match="writer of rwlock 'table' was not free"):
            table.writer.acquire(timeout=0.01)
        permits = [table.reader.acquire(timeout=0) for _ in range(3)]
    for permit in permits:
        permit.release()
    with table.writer:
        pass


LATE = """
import sys
import tupelo as ts
from tupelo.batteries import Lock

space = ts.connect(sys.argv[1], create=False)
with Lock(space, "a", ttl=0.3):
    space.put("held", 0)
    space.take("go on")
    raise ZeroDivisionError
"""


def test_a_lost_permit_is_a_note_at_the_exception_of_its_block(shm, shm_url, eventually):
    child = start(LATE, shm_url)
    shm.take("held", int, timeout=60)
    # In the wait queue, and so outside of every critical section, where it would stall all
    # (TUP-016).
    eventually(lambda: shm.stat()["waiters"] == 1)
    child.send_signal(signal.SIGSTOP)
    Lock(shm, "a").acquire(timeout=60).release()
    shm.put("go on")
    child.send_signal(signal.SIGCONT)
    trace = child.communicate(timeout=60)[1]
    assert "\nZeroDivisionError\nTUP-007: your claim on ('tupelo.lock', 'a')" in trace


def test_a_forked_child_that_leaves_the_block_ends_as_it_would_without(shm, maker):
    """What it was forked with is held by its parent alone."""
    _, make = maker
    permit = make(shm).acquire()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with permit:
                sys.exit(7)
        except SystemExit as leaving:
            code = leaving.code
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert make(shm).try_acquire() is None
    permit.release()
    make(shm).try_acquire().release()


def test_an_interrupt_while_it_is_released_takes_nothing_of_it_away(space, maker, monkeypatch):
    _, make = maker
    one = make(space)
    permit = one.acquire()
    interrupts = [KeyboardInterrupt]
    put = HeldAtOnce.put

    async def put_unless_interrupted(held, *fields):
        if interrupts:
            raise interrupts.pop()
        await put(held, *fields)

    monkeypatch.setattr(HeldAtOnce, "put", put_unless_interrupted)
    with pytest.raises(KeyboardInterrupt):
        permit.release()
    one.acquire(timeout=60).release()


def test_a_full_space_does_not_keep_a_lock_from_being_released(new_url):
    with ts.connect(new_url("mem"), tuples_max=2) as space:
        lock = Lock(space, "a")
        for _ in range(3):
            with lock:
                space.put("fills it")
                with pytest.raises(ts.SpaceFull):
                    space.put("fills it")
            assert space.take_all("fills it") == [("fills it",)]


@pytest.mark.parametrize("when_full", ["error", "wait"])
def test_a_space_without_a_byte_left_does_not_keep_it_from_being_released(
    new_url, maker, when_full
):
    """Not even where puts wait for room: who would make it may wait for the lock."""
    _, make = maker
    with (
        ts.connect(new_url("mem"), size="1M", when_full=when_full) as space,
        ThreadPoolExecutor(1) as pool,
    ):
        one = make(space)
        permit = one.acquire()
        for fields in [("fills", "it"), ("fills", "it", 0)]:  # of the shapes that they claim
            for at_once in (256, 1):
                with suppress(ts.SpaceFull):
                    while space.put_all([fields] * at_once, timeout=0):
                        pass
        try:
            pool.submit(permit.release).result(timeout=60)
        finally:
            space.take_all("fills", REST)  # in vain, it would wait for this
        assert space.stat()["waiters"] == 0
        make(space).try_acquire().release()


def test_the_tuples_are_those_of_the_page(space):
    Lock(space, "l").acquire().release()
    Semaphore(space, "s", n=2).acquire().release()
    table = RWLock(space, "t", readers=2)
    table.reader.acquire().release()
    table.writer.acquire().release()
    assert sorted(space.read_all(REST)) == [
        ("tupelo.lock", "l"),
        ("tupelo.rwlock", "t", 2),
        ("tupelo.rwlock.gate", "t"),
        ("tupelo.rwlock.unit", "t", 0),
        ("tupelo.rwlock.unit", "t", 1),
        ("tupelo.semaphore", "s", 2),
        ("tupelo.semaphore.unit", "s", 0),
        ("tupelo.semaphore.unit", "s", 1),
    ]
    with space.claim("tupelo.lock", "l"):  # as another language would
        assert Lock(space, "l").try_acquire() is None


def test_those_who_come_first_together_make_it_once(space):
    threads = [
        threading.Thread(target=lambda: Semaphore(space, "s", n=50).acquire().release())
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert space.count("tupelo.semaphore", "s", int) == 1
    assert space.count("tupelo.semaphore.unit", "s", int) == 50


def test_tasks_hold_it_one_after_the_other(space):
    async def main():
        async with aio.connect(space.url) as shared:
            order = []

            async def work(number):
                async with awaited.Lock(shared, "a") as permit:
                    order.append((number, permit.token))
                    await asyncio.sleep(0)

            await asyncio.gather(*(work(number) for number in range(20)))
            assert order == sorted(order, key=lambda pair: pair[1])
            assert [number for number, _ in order] == list(range(20))
            permit = await awaited.Lock(shared, "a").acquire(timeout=5)
            assert await awaited.Lock(shared, "a").try_acquire() is None
            with pytest.raises(ts.Timeout, match="lock 'a' was not free within 0 s"):
                await awaited.Lock(shared, "a").acquire(timeout=0)
            await permit.release()
            gpus = awaited.Semaphore(shared, "gpu", n=2)
            async with gpus, gpus, await awaited.Lock(shared, "a").acquire():
                assert await gpus.try_acquire() is None
            table = awaited.RWLock(shared, "table", readers=2)
            async with table.reader, table.reader:
                assert await table.writer.try_acquire() is None
            async with table.writer:
                assert await table.reader.try_acquire() is None

    asyncio.run(main())


def test_a_cancelled_task_holds_nothing(space):
    """T5, at every point where it may wait."""

    async def main():
        async with aio.connect(space.url) as shared:
            table = awaited.RWLock(shared, "table", readers=3)
            for _ in range(20):
                reading = await table.reader.acquire()
                tasks = [asyncio.create_task(table.writer.acquire()) for _ in range(3)]
                tasks += [asyncio.create_task(table.reader.acquire()) for _ in range(3)]
                await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                done = await asyncio.gather(*tasks, return_exceptions=True)
                assert all(isinstance(one, asyncio.CancelledError) for one in done)
                await reading.release()
                async with table.writer:
                    pass
            assert (await shared.stat())["waiters"] == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "error", "problem"),
    [
        (lambda s: Lock(s, 7), TypeError, "name has the type int: give a str"),
        (lambda _: Lock(None, "a"), TypeError, "space has the type NoneType"),
        (lambda s: Lock(s, "a", ttl=0), ValueError, "ttl is 0: give seconds"),
        (lambda s: Lock(s, "a", ttl=-1), ValueError, "ttl"),
        (lambda s: Lock(s, "a", ttl=None), TypeError, "ttl has the type NoneType"),
        (lambda s: Lock(s, "a", ttl="1"), TypeError, "ttl"),
        (lambda s: Lock(s, "a").acquire(timeout=-1), ValueError, "timeout"),
        (lambda s: Semaphore(s, "a", n=0), ValueError, "n is 0: give a number from 1 to 4096"),
        (lambda s: Semaphore(s, "a", n=True), TypeError, "n has the type bool: give an int"),
        (lambda s: RWLock(s, "a", readers=5000), ValueError, "readers is 5000: give a number"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_happens(space, call, error, problem):
    with pytest.raises(error, match=problem):
        call(space)
    assert space.count(REST) == 0


def test_who_expects_another_number_of_units_is_told(space):
    Semaphore(space, "gpu", n=2).acquire().release()
    with pytest.raises(ValueError, match=r"semaphore 'gpu' has n=2 in .*, and 3 here: give the"):
        Semaphore(space, "gpu", n=3).acquire()
    RWLock(space, "table").reader.acquire().release()
    with pytest.raises(ValueError, match=r"rwlock 'table' has readers=32 in .*, and 8 here"):
        RWLock(space, "table", readers=8).writer.acquire()


def test_who_finds_the_number_of_units_in_other_hands_waits_no_longer_than_it_says(space):
    Semaphore(space, "gpu", n=2).acquire().release()
    with space.claim("tupelo.semaphore", "gpu", int, timeout=0):
        assert Semaphore(space, "gpu", n=2).try_acquire() is None
        with pytest.raises(ts.Timeout, match=r"semaphore 'gpu' of 2 was not free within 0.01 s"):
            Semaphore(space, "gpu", n=2).acquire(timeout=0.01)
    space.put("tupelo.semaphore", "gpu", 2)
    Semaphore(space, "gpu", n=2).try_acquire().release()


def test_what_is_shown_says_where_it_is(space):
    assert repr(Lock(space, "a")) == f"<lock 'a' in {space.url}>"
    assert repr(Semaphore(space, "a", n=2)) == f"<semaphore 'a' of 2 in {space.url}>"
    table = RWLock(space, "a")
    assert repr(table) == f"<RWLock 'a' in {space.url}>"
    assert repr(table.writer) == f"<writer of rwlock 'a' in {space.url}>"
    assert Lock(space, "a").name == table.reader.name == "a"
