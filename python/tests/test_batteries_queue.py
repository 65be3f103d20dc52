"""Queue: every item is done once, in its order, whoever fails, dies or is stopped."""

import asyncio
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import pytest

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Queue


def start(code, *words):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stderr=subprocess.PIPE, text=True
    )


def drained(queue):
    items = []
    while (delivery := queue.try_get()) is not None:
        with delivery as item:
            items.append(item)
    return items


def test_items_of_all_kinds_leave_in_the_order_in_which_they_came(space):
    """T2 keeps the order of one shape: so all items have the same."""
    items = [1, "text", 2.5, None, b"bytes", [1, [2]], {"a": 1}, True, (1, 2), {1, 2}, 2] * 3
    mail = Queue[object](space, "mail")
    for item in items:
        mail.put(item)
    assert len(mail) == len(items)
    assert drained(mail) == items
    assert len(mail) == 0
    assert mail
    assert space.count(REST) == 0


def test_the_more_urgent_item_is_first(space):
    mail = Queue[str](space, "mail")
    for number, priority in enumerate([0, 3, 9, 0, 3, 1]):
        mail.put(f"{number} of {priority}", priority=priority)
    assert drained(mail) == ["2 of 9", "1 of 3", "4 of 3", "5 of 1", "0 of 0", "3 of 0"]


def test_who_waits_gets_what_comes(space, eventually):
    mail = Queue[int](space, "mail")
    got = []

    def work():
        for _ in range(3):
            with mail.get(timeout=60) as item:
                got.append(item)

    thread = threading.Thread(target=work)
    thread.start()
    for number, priority in ((1, 0), (2, 5), (3, 0)):
        eventually(lambda number=number: len(got) == number - 1)
        mail.put(number, priority=priority)
    thread.join()
    assert got == [1, 2, 3]


def test_a_block_that_raises_gives_the_item_back_to_its_place(space):
    mail = Queue[int](space, "mail")
    mail.put(1)
    mail.put(2)
    delivery = mail.get()
    assert repr(delivery) == "<Delivery 1, attempt 1>"
    with pytest.raises(ZeroDivisionError), delivery as item:
        _ = item // 0
    delivery = mail.get()
    assert (delivery.item, delivery.attempt) == (1, 2)
    delivery.abort("not now")
    assert drained(mail) == [1, 2]


def test_a_delivery_is_ended_once(space):
    mail = Queue[int](space, "mail", maxsize=2)
    mail.put(1)
    with mail.get() as item:
        assert item == 1
        assert mail.try_get() is None
    mail.put(2)
    delivery = mail.get()
    with delivery:
        delivery.done()
    for end in (delivery.done, delivery.abort):
        with pytest.raises(ValueError, match="done"):
            end()
    mail.put(3)
    delivery = mail.get()
    with delivery:
        delivery.abort()
    assert drained(mail) == [3]
    assert space.count("tupelo.queue.room", "mail") == 2


def test_what_is_put_with_an_item_appears_with_its_end_or_not_at_all(space):
    mail = Queue[int](space, "mail")
    mail.put(1)
    delivery = mail.get()
    with pytest.raises(ZeroDivisionError), delivery:
        delivery.put("result", 1)
        raise ZeroDivisionError
    assert space.count("result", int) == 0
    delivery = mail.get()
    with delivery as item:
        delivery.put("result", item)
        assert space.count("result", int) == 0
    assert space.take("result", int, timeout=0) == ("result", 1)


def test_an_item_is_dead_after_its_last_attempt_and_can_be_retried(space):
    mail = Queue[str](space, "mail", max_attempts=2)
    mail.put("hello", priority=1)
    mail.put("other")
    mail.get().abort("no such address")
    with pytest.raises(ZeroDivisionError), mail.get():
        _ = 1 // 0
    assert drained(mail) == ["other"]
    (dead,) = mail.dead
    assert dead == ("hello", 2, "ZeroDivisionError: integer division or modulo by zero")
    assert dead.item == "hello"
    assert mail.dead.all() == [dead]
    assert len(mail.dead) == 1
    assert mail.dead.retry() == 1
    assert mail.dead.retry() == len(mail.dead) == 0
    with (delivery := mail.get()):
        assert delivery.attempt == 1


def test_an_item_that_is_put_for_later_comes_later(space):
    """L3: and as the last of those that are there then."""
    mail = Queue[str](space, "mail")
    mail.put("much later", after=timedelta(hours=1))
    mail.put("now")
    assert len(mail) == 1
    mail.put("later", after=0.05)
    for expected in ("now", "later"):
        with mail.get(timeout=60) as item:
            assert item == expected
    assert mail.try_get() is None


def test_a_full_queue_holds_producers_back_until_there_is_room(space, eventually):
    mail = Queue[int](space, "mail", maxsize=3)
    put = []

    def produce():
        for number in range(10):
            mail.put(number)
            put.append(number)

    thread = threading.Thread(target=produce)
    thread.start()
    eventually(lambda: len(put) == 3)
    eventually(lambda: space.stat()["waiters"] == 1)
    delivery = mail.get()
    assert len(put) == 3  # what is worked on counts
    delivery.done()
    eventually(lambda: len(put) == 4)
    consumer = Queue[int](space, "mail")  # need not know the bound
    rest = [1]
    with consumer.get(timeout=60) as item:
        assert item == 1
    while len(rest) < 9:
        with consumer.get(timeout=60) as item:
            rest.append(item)
    thread.join()
    assert rest == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert sorted(space.read_all(REST)) == [
        ("tupelo.queue.room", "mail"),
        ("tupelo.queue.room", "mail"),
        ("tupelo.queue.room", "mail"),
        ("tupelo.queue.size", "mail", 3),
    ]


def test_of_a_full_queue_a_put_with_a_timeout_gives_up(space):
    mail = Queue[int](space, "mail", maxsize=1)
    mail.put(1, timeout=5)
    with pytest.raises(ts.Timeout, match=r"queue 'mail' had no room within 0\.01 s, its maxsize"):
        mail.put(2, timeout=0.01)
    mail.put(3, after=3600)  # takes no room
    Queue[int](space, "mail").put(4)  # nor does who knows of no bound
    assert drained(mail) == [1, 4]
    mail.put(5, timeout=0)
    with pytest.raises(ts.NotEncodable):
        Queue[object](space, "mail").put(bytearray(b"no"))
    assert drained(mail) == [5]
    assert space.count("tupelo.queue.room", "mail") == 1


class Interrupted:  # a claim whose `put` is
    def __init__(self, claim):
        self._claim = claim

    def __getattr__(self, name):
        return getattr(self._claim, name)

    def put(self, *_):
        raise KeyboardInterrupt


def test_an_item_is_back_if_what_gives_its_room_back_is_interrupted(space):
    mail = Queue[int](space, "mail", maxsize=1)
    mail.put(1)
    delivery = mail.get()
    with pytest.raises(KeyboardInterrupt), delivery:
        delivery._claim = Interrupted(delivery._claim)  # noqa: SLF001
    with mail.get(timeout=60) as item:
        assert item == 1
    assert space.count("tupelo.queue.room", "mail") == 1


def test_an_item_is_back_if_what_gives_its_room_back_is_interrupted_in_a_task(space):
    async def main():
        async with aio.connect(space.url) as shared:
            mail = awaited.Queue[int](shared, "mail", maxsize=1)
            await mail.put(1)
            delivery = await mail.get()
            with pytest.raises(KeyboardInterrupt):
                async with delivery:
                    delivery._claim = Interrupted(delivery._claim)  # noqa: SLF001
            async with mail.get(timeout=60) as item:
                assert item == 1
            assert await shared.count("tupelo.queue.room", "mail") == 1

    asyncio.run(main())


def test_an_item_that_can_not_be_stored_takes_no_room(space):
    mail = Queue[object](space, "mail", maxsize=1)
    mail.put("first")
    assert drained(mail) == ["first"]
    with pytest.raises(ts.NotEncodable):
        mail.put(bytearray(b"no"))
    mail.put("second", timeout=0)


def test_who_makes_the_room_of_a_queue_gives_up_in_time(new_url):
    """Also where puts wait for room as long as it takes."""
    url = new_url("mem")

    async def main():
        async with aio.connect(url) as shared:
            with pytest.raises(ts.SpaceFull):
                await awaited.Queue[int](shared, "mail", maxsize=10).put(1, timeout=0.01)

    with ts.connect(url, tuples_max=20, when_full="wait") as space:
        space.put_all([("in the way",)] * 15)
        with pytest.raises(ts.SpaceFull):
            Queue[int](space, "mail", maxsize=10).put(1, timeout=0.01)
        asyncio.run(main())
        assert space.take_all("tupelo.queue.room", "mail") == []
        space.take_all("in the way")
        mail = Queue[int](space, "mail", maxsize=10)
        mail.put(1, timeout=0)
        assert drained(mail) == [1]


def test_a_full_space_refuses_an_item_unless_there_is_time_to_wait(new_url):
    with ts.connect(new_url("mem"), tuples_max=1) as space:
        mail = Queue[int](space, "mail")
        mail.put(1)
        with pytest.raises(ts.SpaceFull):
            mail.put(2)
        timer = threading.Timer(0.05, lambda: mail.get().done())
        timer.start()
        mail.put(3, timeout=60)
        timer.join()
        assert drained(mail) == [3]


@pytest.mark.parametrize("when_full", ["error", "wait"])
def test_an_item_with_room_in_its_queue_waits_for_memory_too(new_url, when_full, eventually):
    """B1: as one without a bound."""
    large = bytes(100_000)
    with (
        ts.connect(new_url("mem"), size="2M", when_full=when_full) as space,
        ThreadPoolExecutor(1) as pool,
    ):
        mail = Queue[bytes](space, "mail", maxsize=2)
        mail.put(b"small")
        with suppress(ts.SpaceFull):
            while True:
                space.put("fills", bytes(4_000), timeout=0)
        with pytest.raises(ts.SpaceFull):
            mail.put(large, timeout=0)
        assert space.count("tupelo.queue.room", "mail") == 1
        putting = pool.submit(mail.put, large, timeout=60)
        eventually(lambda: space.stat()["waiting_for_room"] == 1)
        space.take_all("fills", bytes)
        putting.result(60)
        assert drained(mail) == [b"small", large]
        assert space.count("tupelo.queue.room", "mail") == 2


def test_those_who_put_first_together_make_the_room_once(space):
    barrier = threading.Barrier(6)

    def work():
        barrier.wait()
        Queue[int](space, "mail", maxsize=50).put(0)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert space.count("tupelo.queue.room", "mail") == 44


def test_a_queue_is_joined_when_all_is_done(space, eventually):
    mail = Queue[int](space, "mail")
    mail.join(timeout=0)
    mail.put(1)
    mail.put(2, priority=2)
    with pytest.raises(ts.Timeout, match=r"queue 'mail' was not done within 0\.01 s, 2 items wait"):
        mail.join(timeout=0.01)
    thread = threading.Thread(target=mail.join)
    thread.start()
    mail.get().done()
    delivery = mail.get()
    eventually(lambda: space.stat()["waiters"] == 1)
    assert thread.is_alive()
    delivery.done()
    thread.join()


def test_the_tuples_are_those_of_the_page(space):
    mail = Queue[str](space, "mail", maxsize=2)
    mail.put("a")
    mail.put("b", priority=4)
    Queue[str](space, "mail").put("c")
    assert sorted(space.take_all(REST), key=str) == [
        ("tupelo.queue", "mail", 0, ["c"]),
        ("tupelo.queue", "mail", 1, 4, ["b"]),
        ("tupelo.queue", "mail", 1, ["a"]),
        ("tupelo.queue.size", "mail", 2),
    ]
    space.put("tupelo.queue", "mail", 0, ["of another language"])
    assert drained(mail) == ["of another language"]


PRODUCER = """
import sys
import tupelo as ts
from tupelo.batteries import Counter, Queue

space = ts.connect(sys.argv[1], create=False)
mail = Queue(space, "mail", maxsize=20)
mine = Counter(space, sys.argv[2])
while True:
    mail.put((sys.argv[2], mine.value), priority=mine.value % 3)
    mine += 1
"""

CONSUMER = """
import sys
import tupelo as ts
from tupelo.batteries import Queue

space = ts.connect(sys.argv[1], create=False)
mail = Queue(space, "mail")
while True:
    delivery = mail.get()
    with delivery as (name, number):
        delivery.put("got", name, number)
"""


def test_whoever_is_killed_at_any_moment_loses_no_item_and_no_room(shm, shm_url):
    """C1, K2, K4: producers and consumers of a queue with a bound."""
    names = []
    for turn in range(5):
        names.append(f"producer {turn}")
        children = [start(PRODUCER, shm_url, names[-1])]
        children += [start(CONSUMER, shm_url) for _ in range(2)]
        shm.read("got", names[-1], 40, timeout=60)
        for child in children:
            child.kill()
            child.communicate()
    mail = Queue(shm, "mail", maxsize=20)
    waiting = [("got", *item) for item in drained(mail)]
    got = shm.take_all("got", str, int) + waiting
    for name in names:
        numbers = sorted(number for _, author, number in got if author == name)
        assert numbers == list(range(len(numbers)))  # none is missing, none is there twice
    mail.join(timeout=60)
    assert shm.count("tupelo.queue.room", "mail") == 20


HOLDS = """
import sys
import tupelo as ts
from tupelo.batteries import Queue

space = ts.connect(sys.argv[1], create=False)
delivery = Queue(space, "mail", ttl=float(sys.argv[2])).get()
with delivery as item:
    space.put("held", item)
    delivery.put("result", item)
    space.take("go on")
"""


def test_a_killed_worker_gives_its_item_back_at_once(shm, shm_url):
    mail = Queue[int](shm, "mail", max_attempts=2)
    mail.put(7)
    child = start(HOLDS, shm_url, 3600)
    shm.take("held", 7, timeout=60)
    child.kill()
    child.communicate()
    delivery = mail.get(timeout=60)
    assert (delivery.item, delivery.attempt) == (7, 2)
    delivery.abort()
    assert [dead.item for dead in mail.dead] == [7]


def test_a_stopped_worker_has_lost_its_item_and_learns_that(shm, shm_url, eventually):
    mail = Queue[int](shm, "mail", maxsize=1)
    mail.put(7)
    child = start(HOLDS, shm_url, 0.3)
    shm.take("held", 7, timeout=60)
    # In the wait queue, so outside of every critical section, where it would stall all (TUP-016).
    eventually(lambda: shm.stat()["waiters"] == 1)
    child.send_signal(signal.SIGSTOP)
    with mail.get(timeout=60) as item:
        assert item == 7
    shm.put("go on")
    child.send_signal(signal.SIGCONT)
    assert "tupelo.ClaimLost: TUP-007" in child.communicate(timeout=60)[1]
    assert shm.count("result", int) == 0  # K3, K4
    mail.put(8, timeout=0)
    with pytest.raises(ts.Timeout):
        mail.put(9, timeout=0.01)  # the late one gave no room either


def test_tasks_put_and_get(space):
    async def main():
        async with aio.connect(space.url) as shared:
            mail = awaited.Queue[int](shared, "mail", maxsize=2, max_attempts=1)
            assert await mail.try_get() is None
            producer = asyncio.create_task(produce(mail, 10))
            got = []
            for _ in range(10):
                async with await mail.get(timeout=60) as item:
                    got.append(item)
            await producer
            assert got == list(range(10))
            await mail.put(7, priority=1)
            assert await mail.waiting() == 1
            delivery = await mail.get()
            await delivery.abort("no")
            assert [dead async for dead in mail.dead] == [(7, 1, "no")]
            assert await mail.dead.retry() == 1
            delivery = await mail.get()
            await delivery.put("result", delivery.item)
            await delivery.done()
            assert await shared.try_take("result", 7) == ("result", 7)
            await mail.join(timeout=0)
            with pytest.raises(ts.Timeout, match=r"queue 'mail' had no item within 0\.01 s"):
                await mail.get(timeout=0.01)
            await mail.put(8, after=0.01, timeout=5)
            await (await mail.get(timeout=60)).done()

    async def produce(mail, count):
        for number in range(count):
            await mail.put(number)

    asyncio.run(main())


def test_tasks_enter_a_get_with_and_without_awaiting_it(space):
    """As a claim."""

    async def main():
        async with aio.connect(space.url) as shared:
            mail = awaited.Queue[int](shared, "mail", max_attempts=1)
            for number in range(4):
                await mail.put(number)
            async with mail.get(timeout=60) as item:
                assert item == 0
                assert await shared.count(REST) == 3  # it is claimed
            async with await mail.get() as item:
                assert item == 1
            with pytest.raises(ZeroDivisionError):
                async with mail.get():
                    raise ZeroDivisionError
            assert [dead.item async for dead in mail.dead] == [2]
            delivery = await asyncio.wait_for(asyncio.create_task(mail.get()), 60)
            assert delivery.item == 3
            await delivery.done()
            with pytest.raises(ts.Timeout, match=r"queue 'mail' had no item within 0\.01 s"):
                async with mail.get(timeout=0.01):
                    pytest.fail("there was nothing")
            later = asyncio.create_task(mail.get())
            await asyncio.sleep(0)
            later.cancel()
            with pytest.raises(asyncio.CancelledError):
                await later
            await mail.put(4)
            await (await mail.get(timeout=60)).done()  # T5

    asyncio.run(main())


def test_a_task_that_is_cancelled_while_it_gets_or_puts_loses_nothing(space):
    """T5."""

    async def main():
        async with aio.connect(space.url) as shared:
            mail = awaited.Queue[int](shared, "mail", maxsize=1)
            for number in range(50):
                getting = asyncio.create_task(mail.get())
                await asyncio.sleep(0)
                await mail.put(number)
                getting.cancel()
                await asyncio.gather(getting, return_exceptions=True)
                putting = asyncio.create_task(mail.put(-1))
                await asyncio.sleep(0)
                if not getting.cancelled():
                    await getting.result().abort()
                putting.cancel()
                await asyncio.gather(putting, return_exceptions=True)
                async with await mail.get(timeout=60) as item:
                    assert item == number
            assert await mail.waiting() == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "error", "problem"),
    [
        (lambda s: Queue("mail", s), TypeError, "space has the type str"),
        (lambda s: Queue(s, b"mail"), TypeError, "name has the type bytes: give a str"),
        (lambda s: Queue(s, "a", maxsize=0), ValueError, "maxsize is 0: give a number from 1 to"),
        (lambda s: Queue(s, "a", maxsize=2e3), TypeError, "maxsize has the type float"),
        (lambda s: Queue(s, "a", max_attempts=0), ValueError, "max_attempts is 0: give a number"),
        (lambda s: Queue(s, "a", ttl=0), ValueError, "ttl is 0"),
        (
            lambda s: Queue(s, "a").put(1, priority=10),
            ValueError,
            "priority is 10: give a number from 0",
        ),
        (
            lambda s: Queue(s, "a").put(1, priority=-1),
            ValueError,
            "priority is -1: give a number f",
        ),
        (lambda s: Queue(s, "a").put(1, priority="high"), TypeError, "priority has the type str"),
        (lambda s: Queue(s, "a").put(1, after=-1), ValueError, "after"),
        (lambda s: Queue(s, "a").put(1, timeout="5"), TypeError, "timeout"),
        (lambda s: Queue(s, "a", maxsize=1).put(1, timeout=-5), ValueError, "timeout"),
        (lambda s: Queue(s, "a").get(timeout=-1), ValueError, "timeout"),
        (lambda s: Queue(s, "a").join(timeout=-1), ValueError, "timeout"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_happens(space, call, error, problem):
    with pytest.raises(error, match=problem):
        call(space)
    assert space.count(REST) == 0


def test_who_expects_another_maxsize_is_told(space):
    Queue[int](space, "mail", maxsize=2).put(1)
    with pytest.raises(ValueError, match=r"queue 'mail' has maxsize=2 in .*, and 3 here: give the"):
        Queue[int](space, "mail", maxsize=3).put(2)
    assert space.count("tupelo.queue.room", "mail") == 1
    mail = Queue[int](space, "mail", maxsize=2)
    mail.put(2)
    assert drained(mail) == [1, 2]
    assert repr(mail) == f"<Queue 'mail' in {space.url}>"
    assert (mail.name, mail.maxsize, Queue(space, "a").maxsize) == ("mail", 2, None)


@pytest.mark.parametrize("timeout", [-1, "x", float("nan")])
def test_what_is_no_time_is_refused_also_where_nobody_has_to_wait(space, timeout):
    queue = Queue(space, "q")
    queue.put(1)
    with pytest.raises((TypeError, ValueError), match="timeout"):
        queue.get(timeout=timeout)

    async def awaited_get():
        await awaited.Queue(aio.connect(space.url), "q").get(timeout=timeout)

    with pytest.raises((TypeError, ValueError), match="timeout"):
        asyncio.run(awaited_get())
    assert len(queue) == 1
