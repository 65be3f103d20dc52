"""Nothing is locked while code of the user runs: here, of a class that the tuples are made into."""

import asyncio
from dataclasses import dataclass

import pytest

import tupelo as ts
import tupelo.aio

during = None
"""What is done while a tuple is made."""


@dataclass
class Reading:
    value: int

    def __post_init__(self):
        if during is not None:
            during()


def claimed(space):
    with space.claim(Reading) as reading:
        return reading


def waited_for(space):
    future = space.take_future(Reading)
    return future.result(60)


def in_transaction(verb):
    def act(space):
        with space.transaction() as t:
            return getattr(t, verb)(Reading)

    return act


def heard(space):
    with space.subscribe(Reading) as events:
        space.put(Reading(2))
        return next(events)


def dead(space):
    space.claim(Reading, max_attempts=1).abort()
    return space.dead(Reading)


ACTS = {
    verb: lambda space, verb=verb: getattr(space, verb)(Reading)
    for verb in ("take", "try_take", "take_all", "read", "try_read", "read_all")
} | {
    "take_many": lambda space: space.take_many(Reading, n=1),
    "scan": lambda space: list(space.scan(Reading)),
    "swap": lambda space: space.swap(Reading, to=("swapped",)),
    "claim": claimed,
    "take_future": waited_for,
    "a take in a transaction": in_transaction("take"),
    "a read in a transaction": in_transaction("read"),
    "read_all in a transaction": in_transaction("read_all"),
    "an event": heard,
    "dead": dead,
}


@pytest.mark.parametrize("act", ACTS)
def test_others_go_on_while_a_tuple_is_made_into_an_object(space, monkeypatch, act):
    reading = Reading(1)
    space.put(reading)
    done = []

    def use_the_shape():
        monkeypatch.setattr(f"{__name__}.during", None)
        # Who came into a lock a second time would wait for itself.
        with ts.connect(space.url) as other:
            done.append(other.put(Reading(3)))
            done.append(other.take(Reading(3), timeout=0))

    monkeypatch.setattr(f"{__name__}.during", use_the_shape)
    ACTS[act](space)
    assert done == [None, Reading(3)]


@pytest.mark.parametrize("verb", ["take", "try_take", "read", "take_all", "read_all"])
def test_so_they_do_with_asyncio(monkeypatch, verb):
    done = []

    def use_the_shape():
        monkeypatch.setattr(f"{__name__}.during", None)
        with ts.connect("mem://user-code") as other:
            done.append(other.put(Reading(3)))
            done.append(other.take(Reading(3), timeout=0))

    async def main():
        async with tupelo.aio.connect("mem://user-code", fresh=True) as space:
            await space.put(Reading(1))
            monkeypatch.setattr(f"{__name__}.during", use_the_shape)
            await getattr(space, verb)(Reading)

    asyncio.run(main())
    assert done == [None, Reading(3)]
