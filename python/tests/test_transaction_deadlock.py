"""Transactions that wait for each other end by their leases (rule X6)."""

import asyncio
import threading

import pytest

import tupelo as ts
from tupelo import REST, aio


def test_a_deadlock_ends_with_the_lease_and_says_what_was_waited_for(space):
    space.put_all([("left",), ("right",)])
    ready, outcomes = threading.Barrier(2), []

    def cross(first, second, ttl):
        try:
            with space.transaction(ttl=ttl) as t:
                t.take(first)
                ready.wait(60)
                t.take(second)
                outcomes.append("through")
        except ts.Aborted as why:
            outcomes.append(why)

    threads = [
        threading.Thread(target=cross, args=("left", "right", 1)),
        threading.Thread(target=cross, args=("right", "left", 3600)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (aborted,) = [outcome for outcome in outcomes if outcome != "through"]
    assert aborted.code == "TUP-008"
    assert 'it was waiting for ("right") in' in str(aborted)  # X6
    assert "1 take was undone, 0 puts were discarded" in str(aborted)
    assert space.count(REST) == 0  # The other got both.


def test_a_deadlock_of_tasks_ends_with_the_lease_and_says_what_was_waited_for_x6():
    async def cross(space, ready, names, ttl):
        first, second = names
        async with space.transaction(ttl=ttl) as t:
            await t.take(first)
            ready[first].set()
            await ready[second].wait()
            await t.take(second)

    async def main():
        async with aio.connect("mem://deadlock-aio", fresh=True) as space:
            await space.put_all([("left",), ("right",)])
            ready = {"left": asyncio.Event(), "right": asyncio.Event()}
            outcomes = await asyncio.gather(
                cross(space, ready, ("left", "right"), 1),
                cross(space, ready, ("right", "left"), 3600),
                return_exceptions=True,
            )
            return outcomes, await space.count(REST)

    (aborted, through), left = asyncio.run(main())
    assert isinstance(aborted, ts.Aborted)
    assert 'it was waiting for ("right") in' in str(aborted)
    assert "1 take was undone, 0 puts were discarded" in str(aborted)
    assert (through, left) == (None, 0), "the other got both"


@pytest.mark.parametrize("verb", ["take", "swap", "read", "take_many"])
def test_a_deadlock_of_two_that_end_together_ends(space, verb):
    space.put_all([("left",), ("right",)])
    ready, outcomes = threading.Barrier(2), []
    options = {"swap": {"to": ("new",)}, "take_many": {"n": 1}}.get(verb, {})

    def cross(first, second):
        with pytest.raises(ts.Aborted) as caught, space.transaction(ttl=1) as t:
            t.take(first)
            ready.wait(60)
            getattr(t, verb)(second, **options)
            # One may get through when the other is undone: its own time is over, too.
            while True:
                t.count(REST)
        outcomes.append(caught.value.code)

    pairs = [("left", "right"), ("right", "left")]
    threads = [threading.Thread(target=cross, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == ["TUP-008"] * 2  # X6
    assert sorted(space.take_all(REST)) == [("left",), ("right",)]  # X5
