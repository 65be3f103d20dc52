"""tupelo.aio: cancelling a call at any point loses nothing (T5).

First at each place where a call awaits, one after the other; then many calls at random moments,
`TUPELO_CANCELLATIONS` of them (`make torture`: 100 000 of each kind).
"""

import asyncio
import gc
import itertools
import os
import random

import pytest

import tupelo as ts
from tupelo import REST, aio

CANCELLATIONS = int(os.environ.get("TUPELO_CANCELLATIONS", "8000"))
SEED = int(os.environ.get("TUPELO_SEED", "7"))


class Cut:
    """Awaits a coroutine until it awaits for the n-th time, and raises there.

    `served`: what it waits for has happened by then, and the coroutine has not heard of it yet.
    """

    def __init__(self, coroutine, at, exception, *, served):
        self.coroutine, self.at = coroutine, at
        self.exception, self.served = exception, served
        self.was_reached = False

    def __await__(self):
        for number in itertools.count():
            try:
                awaited = self.coroutine.send(None)
            except StopIteration as end:
                return end.value
            if number < self.at or self.served:
                yield awaited
            if number == self.at:
                self.was_reached = True
                try:
                    self.coroutine.throw(self.exception())
                except StopIteration as end:
                    return end.value
                pytest.fail("it went on waiting")


async def claimed_block(shared):
    async with shared.claim("n", int, ttl=60) as (_, number):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return number


async def claimed_twice(shared):
    claim = await shared.claim("n", int, ttl=60)
    await claim.put("under", 0)
    async with claim as (_, number):
        await asyncio.sleep(0)
    await shared.take("under", int)
    return number


async def consumed(shared):
    return await anext(shared.consume("n", int))


CALLS = {
    "take": lambda shared: shared.take("n", int),
    "read": lambda shared: shared.read("n", int),
    "claim": lambda shared: shared.claim("n", int),
    "claimed block": claimed_block,
    "claimed twice": claimed_twice,
    "take_many": lambda shared: shared.take_many("n", int, n=1),
    "swap": lambda shared: shared.swap("n", int, to=("swapped", 1)),
    "consume": consumed,
}


FAULTS = [
    (verb, fault)
    for verb in CALLS
    for fault in (asyncio.CancelledError, ZeroDivisionError, GeneratorExit)
    # Closing a coroutine that awaits a step of a generator leaves the generator to the event loop.
    if (verb, fault) != ("consume", GeneratorExit)
]


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize(("verb", "exception"), FAULTS)
def test_a_fault_at_every_await_loses_nothing_t5(space, verb, is_there, served, exception):
    async def main(at):
        """Return whether the call awaits so often."""
        async with aio.connect(space.url) as shared:
            if is_there:
                await shared.put("n", 1)
            cut = Cut(CALLS[verb](shared), at, exception, served=served)
            call = asyncio.ensure_future(outcome(cut))
            await asyncio.sleep(0)
            if not is_there:
                await shared.put("n", 1)
            result = await call
            assert cut.was_reached == (result is exception)
            del call, cut  # with the claim that it may have
            left = [fields for fields in await shared.take_all(REST) if fields[0] != "under"]
            if result is exception:
                assert left in ([("n", 1)], [("swapped", 1)] * (verb == "swap"))
            elif verb == "claim":
                assert (result.tuple, left) == (("n", 1), [])
                await result.done()
            else:
                assert left == {"read": [("n", 1)], "swap": [("swapped", 1)]}.get(verb, [])
            space.wait_none(REST, timeout=0)
        return result is exception

    for at in itertools.count():
        if not asyncio.run(main(at)):
            break
        assert space.stat()["waiters"] == 0
    assert at > 0 or is_there


async def outcome(call):
    """Return the result, or the class of the exception, whatever it is."""
    try:
        return await call
    except BaseException as exception:  # noqa: BLE001 - it is the point
        return type(exception)


@pytest.mark.parametrize("served", [False, True])
def test_a_fault_at_every_await_of_a_put_that_waits_for_room_stores_once_or_not_t5(url, served):
    async def main(at):
        async with aio.connect(url) as shared:
            await shared.put("n", 0)
            cut = Cut(shared.put("n", 1, timeout=60), at, asyncio.CancelledError, served=served)
            call = asyncio.ensure_future(outcome(cut))
            await asyncio.sleep(0)
            await shared.take("n", 0)
            result = await call
            left = await shared.take_all(REST)
            assert left == ([] if result is asyncio.CancelledError else [("n", 1)])
        return result is asyncio.CancelledError

    with ts.connect(url, tuples_max=1) as space:
        for at in itertools.count():
            if not asyncio.run(main(at)):
                break
        assert at > 0
        assert space.stat()["waiters"] == 0


async def take(shared, got):
    got.append((await shared.take("n", int))[1])


async def claim(shared, got):
    async with shared.claim("n", int, ttl=600) as (_, number):
        await asyncio.sleep(0)
    got.append(number)


async def settle(shared, got):
    held = await shared.claim("n", int, ttl=600)
    await asyncio.sleep(0)
    await held.done()
    got.append(held.tuple[1])


async def either(shared, got):
    """Take with a time limit that sometimes ends at the very moment."""
    try:
        async with asyncio.timeout(random.random() / 1_000):
            number = (await shared.take("n", int))[1]
    except TimeoutError:
        return
    got.append(number)


@pytest.mark.parametrize("how", [take, claim, settle, either])
def test_of_tasks_that_are_cancelled_at_random_each_tuple_is_had_once_t5(space, how):
    print(f"TUPELO_SEED={SEED} TUPELO_CANCELLATIONS={CANCELLATIONS}")  # noqa: T201 - if it fails
    chance = random.Random(SEED)

    async def main():
        """Put, take and cancel in bursts; return what was put, what was had, what is left."""
        put, got, waiting, cancelled = 0, [], [], 0
        async with aio.connect(space.url) as shared:
            while cancelled < CANCELLATIONS:
                waiting.append(asyncio.create_task(how(shared, got)))
                if chance.random() < 0.7:
                    await shared.put("n", put)
                    put += 1
                if chance.random() < 0.4:
                    await asyncio.sleep(0)
                if chance.random() < 0.6:
                    victim = waiting.pop(chance.randrange(len(waiting)))
                    cancelled += victim.cancel()
                if len(waiting) > 50:
                    await asyncio.sleep(0)
                    waiting = [task for task in waiting if not task.done()]
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
            waiting.clear()
            gc.collect()  # a task that was cancelled keeps its claim, in its traceback
            left = [number for _, number in await shared.take_all("n", int)]
        return put, got, left

    put, got, left = asyncio.run(main())
    assert sorted(got + left) == list(range(put))  # T1, T5
    assert len(got) > 0
    space.wait_none(REST, timeout=0)
    assert space.stat()["waiters"] == 0
