"""Subscriptions that go on after a restart (rules N1, N2, C4)."""

import asyncio
import os
import signal

import pytest
from durable import forget_memory, program

import tupelo as ts
from tupelo import aio


@pytest.fixture
def url(new_url):
    return new_url("file")


def told(event):
    """Return what an event says of a put."""
    assert event.kind == "put"
    return event.seq, event.missed, event.tuple


def test_a_later_subscriber_goes_on_behind_the_last_event_that_was_dealt_with_n1_c4(url):
    with ts.connect(url) as space:
        space.put("alarm", "before")
        with space.subscribe("alarm", str, resume="pager") as alarms:
            for what in ("smoke", "fire", "flood"):
                space.put("alarm", what)
            space.put("other", "thing")
            assert told(next(alarms)) == (1, 0, ("alarm", "smoke"))
            assert (alarms.waiting, told(next(alarms))) == (2, (2, 0, ("alarm", "fire")))
        space.put("alarm", "thieves")
        space.discard("alarm", str)
    forget_memory(url)
    with ts.connect(url) as space, space.subscribe("alarm", str, resume="pager") as alarms:
        space.put("alarm", "ghosts")
        assert [told(next(alarms)) for _ in range(3)] == [
            (3, 0, ("alarm", "flood")),
            (4, 0, ("alarm", "thieves")),
            (5, 0, ("alarm", "ghosts")),
        ]
        assert alarms.try_next() is None
        with pytest.raises(ts.Timeout, match="no put of"):
            alarms.next(timeout=0.01)


def test_the_next_subscriber_of_a_name_takes_it_over_n1(url):
    with ts.connect(url) as space, ts.connect(url) as other:
        before = space.subscribe("n", int, resume="one")
        space.put_all([("n", 1), ("n", 2)])
        assert told(next(before)) == (1, 0, ("n", 1))
        after = other.subscribe("n", int, resume="one")
        space.put("n", 3)
        assert told(next(after)) == (1, 0, ("n", 1))
        assert told(next(before)) == (2, 0, ("n", 2)), "it had been read before"
        with pytest.raises(ValueError, match=r"(?s)another subscriber goes on.*\(resume=\)"):
            before.next(timeout=60)
        before.close()
        assert [told(next(after))[0] for _ in range(2)] == [2, 3]
        after.close()


def test_an_event_in_whose_block_something_was_raised_comes_again_n1(url):
    with ts.connect(url) as space:
        with pytest.raises(ZeroDivisionError), space.subscribe("n", int, resume="one") as numbers:
            space.put("n", 1)
            space.put("n", 0)
            for event in numbers:
                _ = 1 / event.tuple[1]
        with space.subscribe("n", int, resume="one") as numbers:
            assert told(next(numbers)) == (2, 0, ("n", 0))


KILLED = """
import os, signal, sys
import tupelo as ts

space = ts.connect(sys.argv[1])
alarms = space.subscribe("alarm", int, resume="pager")
for number in range(1, 1_000_000):
    space.put("alarm", number, sync="none")
    if number % 2 == 0:
        print(alarms.next().tuple[1], flush=True)
"""


def test_a_subscriber_that_is_killed_loses_no_event_and_may_be_told_of_some_again_n1_c1(url):
    with program(KILLED, url) as killed:
        first = [int(killed.stdout.readline()) for _ in range(300)]
        os.kill(killed.pid, signal.SIGKILL)
        rest = killed.stdout.read().split("\n")[:-1]
    first += [int(number) for number in rest]
    assert first == list(range(1, len(first) + 1))
    with ts.connect(url) as space, space.subscribe("alarm", int, resume="pager") as alarms:
        newest = max(number for _, number in space.read_all("alarm", int))
        second = [alarms.next(timeout=60) for _ in range(newest - alarms.next(timeout=60).seq)]
        assert [event.tuple[1] for event in second] == [event.seq for event in second]
        assert second[-1].seq == newest
        assert second[0].seq <= len(first) + 2


def test_what_is_more_than_the_subscriber_keeps_is_missed_and_it_is_said_how_much_n2(url):
    with ts.connect(url) as space:
        space.subscribe("alarm", int, resume="pager", keep=5).close()
        space.put_all(("alarm", number) for number in range(1, 101))
        with space.subscribe("alarm", int, resume="pager", keep=5) as alarms:
            assert told(next(alarms)) == (96, 95, ("alarm", 96))
            assert told(next(alarms)) == (97, 0, ("alarm", 97))


def test_the_loop_of_an_awaited_subscription_that_is_resumed_goes_on_n1(url):
    async def work():
        async with aio.connect(url) as space:
            async with space.subscribe("alarm", int, resume="pager") as alarms:
                later = asyncio.create_task(alarms.next(timeout=60))
                await asyncio.sleep(0)
                await space.put("alarm", 1)
                assert told(await later) == (1, 0, ("alarm", 1))
            await space.put("alarm", 2)
            async with space.subscribe("alarm", int, resume="pager") as alarms:
                async for event in alarms:
                    assert told(event) == (2, 0, ("alarm", 2))
                    break
            assert await space.unsubscribe("pager")

    asyncio.run(work())


def test_what_no_subscription_of_a_file_can_be_is_refused(url, new_url):
    with ts.connect(url) as space:
        space.subscribe("alarm", int, resume="pager").close()
        with pytest.raises(ValueError, match="hears of puts alone"):
            space.subscribe("alarm", int, on="take", resume="pager")
        with pytest.raises(ValueError, match=r"'?.pager.'? of .* asks for other tuples"):
            space.subscribe("alarm", str, resume="pager")
        with pytest.raises(ValueError, match="no event is kept without resume"):
            space.subscribe("alarm", int, keep=5)
        with pytest.raises(ValueError, match="name of a subscription has 0 bytes"):
            space.subscribe("alarm", int, resume="")
        assert space.unsubscribe("pager") is True
        assert space.unsubscribe("pager") is False
    with (
        ts.connect(new_url("shm")) as space,
        pytest.raises(ts.Unsupported, match="is kept in no file here"),
    ):
        space.subscribe("alarm", int, resume="pager")
