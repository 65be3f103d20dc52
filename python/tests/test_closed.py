"""A space that was closed, and what was begun through it: each call of it says so (L5).

The same calls of `tupelo` and of `tupelo.aio`, whose verbs have the same names and arguments.
"""

import asyncio
import inspect
import threading

import pytest

import tupelo as ts
from tupelo import REST, aio

VERBS = {
    "put": lambda space: space.put("job", 2),
    "put leased": lambda space: space.put("job", 2, lease=60),
    "put_all": lambda space: space.put_all([("job", 2)]),
    "put_if_absent": lambda space: space.put_if_absent("job", 2, unless=("none",)),
    "take": lambda space: space.take("job", int),
    "read": lambda space: space.read("job", int),
    "try_take": lambda space: space.try_take("job", int),
    "try_read": lambda space: space.try_read("job", int),
    "take_all": lambda space: space.take_all("job", int),
    "discard": lambda space: space.discard("job", int),
    "read_all": lambda space: space.read_all("job", int),
    "take_many": lambda space: space.take_many("job", int, n=1),
    "count": lambda space: space.count("job", int),
    "scan": lambda space: space.scan("job", int),
    "swap": lambda space: space.swap("job", int, to=("job", 2)),
    "try_swap": lambda space: space.try_swap("job", int, to=("job", 2)),
    "update": lambda space: space.update("job", int, to=lambda _: ("job", 2)),
    "wait_none": lambda space: space.wait_none("none", int),
    "consume": lambda space: space.consume("job", int),
    "finish": lambda space: space.finish("job", int),
    "claim": lambda space: space.claim("job", int),
    "try_claim": lambda space: space.try_claim("job", int),
    "dead": lambda space: space.dead("job", int),
    "requeue": lambda space: space.requeue("job", int),
    "move_to": lambda space: space.move_to(space, "job", int),
    "copy_to": lambda space: space.copy_to(space, "job", int),
    "subscribe": lambda space: space.subscribe("job", int),
    "unsubscribe": lambda space: space.unsubscribe("jobs"),
    "transaction": lambda space: space.transaction(),
    "eval": lambda space: space.eval("job", ts.call(abs, -2)),
    "eval on threads": lambda space: space.eval("job", ts.call(abs, -2), on="threads"),
    "flush": lambda space: space.flush(),
    "stat": lambda space: space.stat(),
    "explain": lambda space: space.explain("job", int),
}
FUTURES = {
    "take_future": lambda space: space.take_future("job", int),
    "read_future": lambda space: space.read_future("job", int),
}


def carried_out(result):
    """Do what a call has only promised: go through an iterator, enter a block."""
    if hasattr(result, "__next__"):
        return list(result)
    return result.__enter__() if hasattr(result, "__enter__") else result


async def awaited(result):
    """Do what a call of `tupelo.aio` has only promised."""
    if hasattr(result, "__anext__"):
        return [each async for each in result]
    if hasattr(result, "__aenter__"):
        return await result.__aenter__()
    return await result if inspect.isawaitable(result) else result


def test_each_verb_of_a_space_is_among_those_that_are_tried():
    verbs = {name for name, verb in vars(ts.Space).items() if name[0] != "_" and callable(verb)}
    assert verbs - {"close"} == {name.split()[0] for name in VERBS | FUTURES}


@pytest.mark.parametrize("verb", VERBS | FUTURES)
def test_a_closed_space_refuses_every_verb_l5(space, verb):
    space.put("job", 1)
    space.close()
    with pytest.raises(ts.SpaceClosed, match="connect again"):
        carried_out((VERBS | FUTURES)[verb](space))
    with ts.connect(space.url) as again:
        assert again.read_all(REST) == [("job", 1)]


@pytest.mark.parametrize("verb", VERBS)
def test_a_closed_space_of_asyncio_refuses_every_verb_l5(space, verb):
    async def main():
        shared = aio.connect(space.url)
        shared.close()
        with pytest.raises(ts.SpaceClosed, match="connect again"):
            await awaited(VERBS[verb](shared))

    space.put("job", 1)
    asyncio.run(main())
    assert space.read_all(REST) == [("job", 1)]


def claim(space):
    # Longer than any test waits: what is back is so for another reason than its end.
    return space.claim("job", int, ttl=3600)


def lease(space):
    return space.put("x", lease=60)


def transaction(space):
    return space.transaction()


def subscription(space):
    return space.subscribe("job", int)


HANDLES = {
    "claim, done": (claim, lambda claim: claim.done()),
    "claim, abort": (claim, lambda claim: claim.abort()),
    "claim, extend": (claim, lambda claim: claim.extend()),
    "claim, put": (claim, lambda claim: claim.put("more")),
    "claim, a block": (claim, lambda claim: claim),
    "lease, renew": (lease, lambda lease: lease.renew()),
    "lease, cancel": (lease, lambda lease: lease.cancel()),
    "lease, keep_alive": (lease, lambda lease: lease.keep_alive()),
    "subscription, next": (subscription, lambda events: events.next(timeout=60)),
    "subscription, next at once": (subscription, lambda events: events.next(timeout=0)),
    "subscription, try_next": (subscription, lambda events: events.try_next()),
    "subscription, a loop": (subscription, lambda events: events),
    "transaction, put": (transaction, lambda t: t.put("more")),
    "transaction, put_all": (transaction, lambda t: t.put_all([("more",)])),
    "transaction, take": (transaction, lambda t: t.take("job", int, timeout=60)),
    "transaction, read": (transaction, lambda t: t.read("job", int, timeout=60)),
    "transaction, try_take": (transaction, lambda t: t.try_take("job", int)),
    "transaction, try_read": (transaction, lambda t: t.try_read("job", int)),
    "transaction, take_all": (transaction, lambda t: t.take_all("job", int)),
    "transaction, read_all": (transaction, lambda t: t.read_all("job", int)),
    "transaction, take_many": (transaction, lambda t: t.take_many("job", int, n=1)),
    "transaction, swap": (transaction, lambda t: t.swap("job", int, to=("more",), timeout=60)),
    "transaction, try_swap": (transaction, lambda t: t.try_swap("job", int, to=("more",))),
    "transaction, count": (transaction, lambda t: t.count("job", int)),
    "transaction, commit": (transaction, lambda t: t.commit()),
}


@pytest.mark.parametrize("use", HANDLES)
def test_a_handle_of_a_closed_space_refuses_its_verbs_l5(space, use):
    make, call = HANDLES[use]
    space.put("job", 1)
    handle = make(space)
    space.close()
    with pytest.raises(ts.SpaceClosed, match="connect again"):
        carried_out(call(handle))
    with ts.connect(space.url) as again:
        assert again.count("more") == 0


@pytest.mark.parametrize("use", HANDLES)
def test_a_handle_of_a_closed_space_of_asyncio_refuses_its_verbs_l5(space, use):
    make, call = HANDLES[use]

    async def main():
        shared = aio.connect(space.url)
        handle = make(shared)
        if inspect.isawaitable(handle):
            handle = await handle
        shared.close()
        with pytest.raises(ts.SpaceClosed, match="connect again"):
            await awaited(call(handle))

    space.put("job", 1)
    asyncio.run(main())
    assert space.count("more") == 0


def test_what_a_closed_space_had_claimed_is_back_at_once_as_after_a_failed_attempt_l5_k2(space):
    space.put_all([("job", 1), ("job", 2)])
    with ts.connect(space.url) as other:
        held, others = claim(space), claim(other)
        space.close()
        assert other.read_all("job", int) == [("job", 1)]
        again = claim(other)
        assert (again.attempt, again.tuple) == (2, ("job", 1))
        again.done()
        others.done()
    assert not held.settled


def test_the_transactions_of_a_closed_space_are_rolled_back_at_once_l5_x5(space):
    space.put_all([("job", 1), ("job", 2)])
    with ts.connect(space.url) as other, pytest.raises(ts.SpaceClosed), space.transaction() as t:
        t.take("job", 1)
        t.read("job", 2)
        t.put("job", 3)
        space.close()
        assert other.take_all("job", int) == [("job", 1), ("job", 2)]


def test_the_subscriptions_of_a_closed_space_end_at_once_l5(space):
    with ts.connect(space.url) as other:
        heard, others = subscription(space), subscription(other)
        assert len(other.stat()["subscriptions"]) == 2
        space.close()
        assert len(other.stat()["subscriptions"]) == 1
        other.put("job", 1)
        assert others.next(timeout=60).tuple == ("job", 1)
        with pytest.raises(ts.SpaceClosed):
            heard.try_next()


def test_futures_and_blocked_calls_of_a_closed_space_leave_the_line_l5(space):
    with ts.connect(space.url) as other:
        future = space.take_future("job", int)
        failed = []

        def call():
            with pytest.raises(ts.SpaceClosed):
                space.take("job", int)
            failed.append(None)

        caller = threading.Thread(target=call)
        caller.start()
        while other.stat()["waiters"] < 2:
            caller.join(0.001)
        space.close()
        with pytest.raises(ts.SpaceClosed):
            future.result(60)
        caller.join(60)
        assert failed
        while other.stat()["waiters"] > 0:  # the callbacks of the future may be under way
            caller.join(0.001)


# At the end of such a block something is to be done, for which the space has to be open.
BLOCKS = {
    "claim": claim,
    "lease": lease,
    "transaction": transaction,
}


def block_of(handle):
    return handle.keep_alive() if hasattr(handle, "keep_alive") else handle


@pytest.mark.parametrize("make", BLOCKS.values(), ids=BLOCKS)
def test_a_block_whose_space_is_closed_in_it_says_so_at_its_end_l5(space, make):
    space.put("job", 1)
    with pytest.raises(ts.SpaceClosed, match="connect again"), block_of(make(space)):
        space.close()
    with ts.connect(space.url) as again:
        assert again.take("job", int, timeout=60) == ("job", 1)


@pytest.mark.parametrize("make", BLOCKS.values(), ids=BLOCKS)
def test_a_block_of_asyncio_whose_space_is_closed_in_it_says_so_at_its_end_l5(space, make):
    async def main():
        shared = aio.connect(space.url)
        handle = make(shared)
        if not hasattr(handle, "__aenter__"):
            handle = await handle
        with pytest.raises(ts.SpaceClosed, match="connect again"):
            async with block_of(handle):
                shared.close()

    space.put("job", 1)
    asyncio.run(main())
    assert space.take("job", int, timeout=60) == ("job", 1)
