"""Subscriptions: what happens to tuples, told once and in order (rules N1 to N3)."""

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

import tupelo as ts
import tupelo.aio

URLS = ["mem://subscribe", "shm://test-subscribe"]


@pytest.fixture(params=URLS)
def space(request):
    """A fresh space of each engine."""
    url = request.param
    if url.startswith("shm://"):
        url += f"-{os.getpid()}"
    with ts.connect(url, fresh=True, size="16M") as space:
        yield space
    ts.remove(url)


def test_events_come_once_and_in_order_n1_n3(space):
    space.put("alarm", 0)
    with space.subscribe("alarm", int, on={"put", "take"}) as alarms:
        space.put("alarm", 1)
        space.put("other", 2)
        assert space.take("alarm", int) == ("alarm", 0)
        assert alarms.waiting == 2
        assert next(alarms) == ts.Event("put", ("alarm", 1), 1, 0)
        assert alarms.next(timeout=1) == ("take", ("alarm", 0), 2, 0)
        assert alarms.try_next() is None


def test_only_puts_are_told_of_by_default_n1(space):
    with space.subscribe(...) as events:
        space.put(1)
        space.take(int)
        space.put("two")
        assert [event.tuple for event in (next(events), next(events))] == [(1,), ("two",)]
        assert events.try_next() is None


def test_the_oldest_are_dropped_and_the_next_says_how_many_n2(space):
    with space.subscribe("n", int, buffer=3) as events:
        space.put_all(("n", n) for n in range(1, 11))
        seen = [next(events) for _ in range(3)]
        assert [(e.tuple[1], e.seq, e.missed) for e in seen] == [(8, 8, 7), (9, 9, 0), (10, 10, 0)]
        (stat,) = space.stat()["subscriptions"]
        assert stat == {
            "pid": os.getpid(),
            "waiting": 0,
            "buffer": 3,
            "buffer_bytes": 16_384,
            "events": 10,
            "dropped": 7,
        }
    assert space.stat()["subscriptions"] == []


def test_a_claim_is_heard_when_it_ends_n1_k2(space):
    with space.subscribe("job", int, on=("take", "return", "expire")) as events:
        space.put("job", 1)
        space.claim("job", int).abort()
        with space.claim("job", int):
            assert next(events).kind == "return"
            assert events.try_next() is None
        assert next(events)[:2] == ("take", ("job", 1))
        lease = space.put("job", 2, lease=3600)
        lease.cancel()
        assert next(events)[:2] == ("expire", ("job", 2))


def test_a_subscriber_sleeps_until_something_happens_t6(space):
    with space.subscribe("late", int) as events:
        later = threading.Timer(0.02, space.put, ["late", 1])
        later.start()
        assert next(events).tuple == ("late", 1)
        later.join()


def test_a_delayed_tuple_is_heard_when_it_is_visible_while_nobody_comes_by_l3_t6(space):
    with space.subscribe("late", int, on={"put", "expire"}) as events:
        space.put("late", 1, after=0.01, lease=0.01)
        assert [next(events).kind, next(events).kind] == ["put", "expire"]


def test_giving_up_loses_nothing_t5(space):
    with space.subscribe("late", int) as events:
        with pytest.raises(
            ts.Timeout, match=r'no put of \("late", :int\) within 0\.01 s'
        ) as caught:
            events.next(timeout=0.01)
        assert "read_all() shows what is there" in caught.value.hint
        assert caught.value.code == "TUP-003"
        space.put("late", 1)
        assert events.next(timeout=0) == ("put", ("late", 1), 1, 0)


def test_asyncio_says_the_same_of_a_time_that_runs_out_o3(space):
    async def main():
        async with tupelo.aio.connect(space.url) as own, own.subscribe("late", int) as events:
            with pytest.raises(ts.Timeout, match=r"no put of .* within 0\.01 s in") as caught:
                await events.next(timeout=0.01)
            assert caught.value.space == space.url

    asyncio.run(main())


def test_closing_ends_an_iteration_that_waits(space):
    events = space.subscribe("never", int)
    waiting = iter(events)  # of one that is closed there is none
    threading.Timer(0.02, events.close).start()
    assert next(waiting, None) is None
    assert next(events, None) is None
    for use in (lambda: iter(events), events.try_next, events.next, events.__enter__):
        with pytest.raises(ValueError, match="was closed: subscribe again"):
            use()
    events.close()


def test_closing_the_space_ends_a_wait(space):
    with space.subscribe("never", int) as events:
        threading.Timer(0.02, space.close).start()
        with pytest.raises(ts.SpaceClosed):
            next(events)


def test_a_forgotten_subscription_ends(space):
    events = space.subscribe("n", int)
    assert len(space.stat()["subscriptions"]) == 1
    del events
    gc.collect()
    assert space.stat()["subscriptions"] == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"buffer": 0}, ValueError, "buffer is 0: give a number from 1 on"),
        ({"buffer": -1}, ValueError, "buffer is -1: give a number from 1 on"),
        ({"buffer": True}, TypeError, "buffer is True: give an int"),
        (
            {"buffer": 1 << 21},
            ts.LimitExceeded,
            "no more than 1048576 events in a buffer, not 2097152",
        ),
        (
            {"buffer_bytes": 1 << 40},
            ts.LimitExceeded,
            "no more than 1073741824 bytes .*, not 1099511627776",
        ),
        ({"buffer_bytes": 1 << 28}, ts.SpaceFull, "is full"),
        ({"on": ()}, ValueError, "no kind of event is to be heard"),
        ({"on": {"puts"}}, ValueError, "on has 'puts', which is no event: give some of 'put'"),
        ({"on": 3}, TypeError, "on is 3: give names of events"),
        ({"bufer": 3}, TypeError, 'did you mean "buffer"'),
    ],
)
def test_wrong_arguments_say_what_to_give_b2(space, arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        space.subscribe("n", int, **arguments)
    if error is ts.LimitExceeded:
        assert "give a smaller buffer" in caught.value.hint
    assert space.stat()["subscriptions"] == []


def test_a_condition_chooses_among_the_events_m9(space):
    with space.subscribe("n", int, where="f[1] % 2 == 0", on={"put", "take"}) as even:
        space.put_all(("n", number) for number in range(1, 5))
        space.take("n", 2)
        space.take("n", 3)
        assert list(iter(even.try_next, None)) == [
            ("put", ("n", 2), 1, 0),
            ("put", ("n", 4), 2, 0),
            ("take", ("n", 2), 3, 0),
        ]
    with space.subscribe(ts.like("n", int, where="f[1] > 6") | ts.like("m", ...)) as either:
        space.put_all([("n", 6), ("n", 7), ("m", 1)])
        assert list(iter(either.try_next, None)) == [
            ("put", ("n", 7), 1, 0),
            ("put", ("m", 1), 2, 0),
        ]


def test_a_wait_with_a_condition_goes_on_until_it_holds_m9(space):
    with space.subscribe("n", int, where="f[1] == 500") as events:
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(events.next, 60)
            for number in range(501):
                space.put("n", number)
            assert told.result() == ("put", ("n", 500), 1, 0)
        with pytest.raises(ts.Timeout):
            events.next(timeout=0.01)


def test_of_missed_events_nobody_knows_whether_the_condition_held_n2_m9(space):
    with space.subscribe("n", int, where="f[1] % 10 == 0", buffer=4) as events:
        space.put_all(("n", number) for number in range(8, 12))
        space.put_all(("n", number) for number in range(12, 21))
        # 17 to 20 wait: 9 were dropped, and 3 of these are passed over.
        assert next(events) == ("put", ("n", 20), 10, 9)


def test_a_tuple_larger_than_the_buffer_is_said_to_be_missed_n2(space):
    with space.subscribe("blob", bytes, buffer=4) as events:
        space.put("blob", bytes(100_000))
        with pytest.raises(ts.LimitExceeded) as caught:
            next(events)
        assert "a tuple of 100024 bytes is missed: the buffer has 16384" in str(caught.value)
        enough = re.search(r"subscribe with buffer_bytes=(\d+), or more", caught.value.hint)
        assert enough
        space.put("blob", b"small")
        assert next(events)[1:] == (("blob", b"small"), 2, 1)
    with space.subscribe("blob", bytes, buffer_bytes=int(enough[1])) as events:
        space.put("blob", bytes(100_000))
        assert next(events).tuple == ("blob", bytes(100_000))


def test_entries_are_heard_as_entries_m7(space):
    with space.subscribe(ts.Event, kind="put") as events:
        entry = ts.Event("put", (), 1, 0)
        space.put(entry)
        assert next(events).tuple == entry


def test_the_events_of_a_dead_subscriber_are_released_l5(shm):
    code = (
        "import os, sys, tupelo; space = tupelo.connect(sys.argv[1])\n"
        "events = space.subscribe('n', int)\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, shm.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        assert [one["pid"] for one in shm.stat()["subscriptions"]] == [child.pid]
        child.send_signal(signal.SIGKILL)
        child.wait()
    # Whoever is blocked sees to it within 100 ms.
    while shm.stat()["subscriptions"]:
        with pytest.raises(ts.Timeout):
            shm.take("never", timeout=0.05)


def test_a_child_of_a_fork_has_no_part_in_it(shm):
    with shm.subscribe("n", int) as events:
        shm.put("n", 1)
        pid = os.fork()
        if pid == 0:
            try:
                events.try_next()
            except ValueError as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(3)
        assert os.waitpid(pid, 0)[1] == 0
        assert next(events).tuple == ("n", 1)


def test_control_c_interrupts_and_loses_nothing_t5(space):
    main = threading.main_thread().ident
    with space.subscribe("n", int) as events:
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.05, signal.pthread_kill, [main, signal.SIGINT]).start()
            next(events)
        space.put("n", 1)
        assert next(events).seq == 1


def test_no_ctrl_c_comes_between_an_event_and_its_subscriber_t5(space):
    # Python looks for one where a function of Python begins.
    calls = []
    with space.subscribe("n", int) as events:
        space.put("n", 1)
        sys.setprofile(lambda frame, event, _: event == "call" and calls.append(frame.f_code))
        try:
            event = events.try_next()
        finally:
            sys.setprofile(None)
        assert event == ("put", ("n", 1), 1, 0)
        assert isinstance(event, ts.Event)
    assert calls == []


@dataclass
class Reading:
    value: int

    def __post_init__(self):
        if self.value < 0:
            message = f"{self.value} is below 0"
            raise refusing(message)


refusing: type[BaseException] = ValueError


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("where", [None, "value < 10"])
def test_events_that_can_not_be_made_count_as_missed_n2(space, monkeypatch, error, where):
    monkeypatch.setattr(sys.modules[__name__], "refusing", error)
    with space.subscribe(Reading, where=where, on={"put", "take"}) as events:
        for value in (1, 2, 3, 4):
            reading = Reading(value)
            # As another program puts them, whose class allows what this one does not.
            reading.value = -value if value in (2, 3) else value
            space.put(reading)
        assert next(events)[1:] == (Reading(1), 1, 0)
        for value in (-2, -3):
            with pytest.raises(error, match=f"{value} is below 0"):
                next(events)
        assert next(events)[1:] == (Reading(4), 4, 2)
        space.take(Reading(1))
        assert next(events) == ("take", Reading(1), 5, 0)


def test_threads_that_share_a_subscription_share_its_events_n1(space):
    with space.subscribe("n", int, buffer=4096) as events:
        seen = []

        def listen():
            seen.extend(event.tuple[1] for event in events)

        threads = [threading.Thread(target=listen) for _ in range(3)]
        for thread in threads:
            thread.start()
        for n in range(1000):
            space.put("n", n)
        while len(seen) < 1000 and events.waiting:
            time.sleep(0.001)
        events.close()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(1000))


# asyncio


def run(main):
    """Run a coroutine function with a fresh asynchronous space."""

    async def inside():
        async with tupelo.aio.connect("mem://subscribe-aio", fresh=True) as space:
            await main(space)

    asyncio.run(inside())


def test_asyncio_hears_the_same_n1_t6():
    async def main(space):
        async with space.subscribe("n", int, on={"put", "take"}) as events:
            later = asyncio.create_task(events.next(timeout=5))
            await asyncio.sleep(0)
            await space.put("n", 1)
            assert await later == ("put", ("n", 1), 1, 0)
            await space.take("n", int)
            await space.put("n", 2)
            kinds = []
            async for event in events:
                kinds.append(event.kind)
                if event.kind == "put":
                    break
            assert kinds == ["take", "put"]
            with pytest.raises(ts.Timeout):
                await events.next(timeout=0.01)

    run(main)


def test_a_cancelled_wait_loses_no_event_t5():
    async def main(space):
        async with space.subscribe("n", int) as events:
            for n in range(100):
                waits = asyncio.create_task(events.next())
                for _ in range(n % 3):
                    await asyncio.sleep(0)
                await space.put("n", n)
                waits.cancel()
                told = None
                try:
                    told = await waits
                except asyncio.CancelledError:
                    told = events.try_next()
                assert told.tuple == ("n", n)
                assert (told.seq, told.missed) == (n + 1, 0)

    run(main)


def test_closing_ends_the_tasks_that_wait():
    async def main(space):
        events = space.subscribe("n", int)

        async def listen():
            return [event async for event in events]

        tasks = [asyncio.create_task(listen()) for _ in range(2)]
        await asyncio.sleep(0.01)
        events.close()
        assert await asyncio.gather(*tasks) == [[], []]
        with pytest.raises(ValueError, match="was closed"):
            await events.next()
        assert (await space.stat())["subscriptions"] == []

    run(main)


def test_closing_in_another_thread_ends_the_task_that_waits():
    async def main(space):
        events = space.subscribe("n", int)

        async def listen():
            return [event async for event in events]

        task = asyncio.create_task(listen())
        await asyncio.sleep(0)
        await asyncio.to_thread(events.close)
        async with asyncio.timeout(60):
            assert await task == []
        assert (await space.stat())["subscriptions"] == []

    run(main)


def test_a_subscription_ends_when_it_is_closed_after_the_loop_in_which_a_task_waited(new_url):
    space = tupelo.aio.connect(new_url("shm"))
    events = space.subscribe("never", int)

    async def wait_for_nothing():
        waiting = asyncio.get_running_loop().create_task(events.next())
        await asyncio.sleep(0)
        return waiting

    abandoned = asyncio.new_event_loop()
    waiting = abandoned.run_until_complete(wait_for_nothing())
    abandoned.close()
    events.close()
    assert space.blocking.stat()["subscriptions"] == []
    assert not waiting.done()
    space.close()


def test_threads_that_share_a_condition_do_not_hold_up_one_another_n1_m9(space):
    told = []

    @dataclass
    class Asking:
        number: int

        def __post_init__(self):
            if self.number == 2 and space.stat()["subscriptions"]:
                # As another thread does that goes on while this one makes an entry.
                other = threading.Thread(target=lambda: told.append(events.try_next()))
                other.start()
                other.join()

    entries = [Asking(number) for number in range(1, 5)]
    with space.subscribe(Asking, where="number % 2 == 0") as events:
        space.put_all(entries)
        told.append(events.try_next())
        assert told == [("put", entries[3], 2, 0), ("put", entries[1], 1, 0)]
