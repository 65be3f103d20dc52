"""tupelo.aio: cancelling a call at any point loses nothing (T5).

First at each place where a call awaits, one after the other; then many calls at random moments,
`TUPELO_CANCELLATIONS` of them (`make torture`: 100 000 of each kind). What has more to lose than a
tuple is in files of its own, `test_aio_cancel_*.py`.
"""

import asyncio
import gc
import os
import random

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome
from forgetting import forgets_a_claim

from tupelo import REST, aio

CANCELLATIONS = int(os.environ.get("TUPELO_CANCELLATIONS", "8000"))
SEED = int(os.environ.get("TUPELO_SEED", random.randrange(1 << 32)))


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


CUTS = [
    (verb, fault)
    for verb in CALLS
    for fault in FAULTS
    # Closing a coroutine that awaits a step of a generator leaves the generator to the event loop.
    if (verb, fault) != ("consume", GeneratorExit)
]


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize(("verb", "exception"), CUTS)
def test_a_fault_at_every_await_loses_nothing_t5(space, verb, is_there, served, exception):
    async def main(at):
        """Return whether the call awaits so often."""
        async with aio.connect(space.url) as shared:
            if is_there:
                await shared.put("n", 1)
            cut = Cut(CALLS[verb](shared), at, exception, served=served)
            call = await begun(outcome(cut))
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
        assert in_hands(space) == {}
        return result is exception

    assert at_every_await(main) > 0 or is_there


@pytest.mark.parametrize("verb", CALLS)
def test_a_cancelled_call_has_left_the_wait_queue_also_while_its_exception_is_kept_t5(space, verb):
    async def main():
        async with aio.connect(space.url) as shared:
            call = await begun(CALLS[verb](shared))
            call.cancel()
            with pytest.raises(asyncio.CancelledError) as kept:
                await call
            # Its traceback has the frames of the call, and all that they refer to.
            assert kept.value.__traceback__ is not None
            assert in_hands(space) == {}
            await shared.put("n", 1)
            assert await shared.try_take("n", int) == ("n", 1)

    asyncio.run(main())


NUMBERS = {
    "take": lambda fields: fields[1],
    "claim": lambda claim: claim.tuple[1],
    "claimed block": lambda number: number,
    "take_many": lambda all_fields: all_fields[0][1],
    "swap": lambda fields: fields[1],
    "consume": lambda fields: fields[1],
}
"""What was taken, of the results of some calls."""


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("verb", NUMBERS)
def test_what_was_on_its_way_to_a_call_that_is_cut_goes_to_the_next_t5(space, verb, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            cut = Cut(CALLS[verb](shared), at, served=served)
            call = await begun(outcome(cut))
            behind = await begun(asyncio.wait_for(CALLS[verb](shared), 60))
            await shared.put("n", 1)
            # Who only watches for a match holds nothing back from others: either of them has it.
            await asyncio.wait((call, behind), return_when=asyncio.FIRST_COMPLETED)
            has_one = not (call.done() and call.result() is asyncio.CancelledError)
            if has_one:
                await shared.put("n", 2)
            results = [await call, await behind]
            was_cut = results[0] is asyncio.CancelledError
            had = sorted(NUMBERS[verb](result) for result in results[was_cut:])
            if verb == "claim":
                await asyncio.gather(*(claim.done() for claim in results[was_cut:]))
            assert cut.was_reached == was_cut
            del call, cut
            left = [number for _, number in await shared.take_all("n", int)]
            assert sorted(had + left) == [1, 2][: 1 + has_one]
            assert await shared.take_all(REST) == [("swapped", 1)] * (verb == "swap") * len(had)
        assert in_hands(space) == {}
        return was_cut

    assert at_every_await(main) > 0


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


async def transact(shared, got):
    async with shared.transaction(ttl=600) as transaction:
        number = (await transaction.take("n", int))[1]
        await asyncio.sleep(0)
    got.append(number)


async def either(shared, got):
    """Take with a time limit that sometimes ends at the very moment."""
    try:
        async with asyncio.timeout(random.random() / 1_000):
            number = (await shared.take("n", int))[1]
    except TimeoutError:
        return
    got.append(number)


@forgets_a_claim  # `settle` does where it is cancelled
@pytest.mark.parametrize("how", [take, claim, settle, transact, either])
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
            if waiting:
                await asyncio.wait(waiting)
            # A task that was cancelled keeps its claim, in its traceback.
            waiting.clear()
            victim = task = None
            gc.collect()
            left = [number for _, number in await shared.take_all("n", int)]
        return put, got, left

    put, got, left = asyncio.run(main())
    assert sorted(got + left) == list(range(put))  # T1, T5
    assert len(got) > 0
    space.wait_none(REST, timeout=0)
    assert space.stat()["waiters"] == 0
