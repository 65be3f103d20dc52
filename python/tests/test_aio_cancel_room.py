"""tupelo.aio: what is cut while it waits for room stores once or not at all (T5, B1)."""

import asyncio

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome
from forgetting import forgets_a_claim

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio import batteries as awaited


async def done_with(shared):
    claim = await shared.claim("n", 0, ttl=60)
    for number in range(2):
        await claim.put("stored", number)
    await claim.done(timeout=60)


async def claimed_block(shared):
    claim = shared.claim("n", 0, ttl=60)
    async with claim:
        for number in range(2):
            await claim.put("stored", number)


async def delivered(shared):
    """As above, of an item in the place of the first tuple."""
    await shared.take("n", 0)
    await awaited.Queue(shared, "mail").put("a letter")
    delivery = await awaited.Queue(shared, "mail").get()
    for number in range(2):
        await delivery.put("stored", number)
    await delivery.done()


async def delivered_block(shared):
    await shared.take("n", 0)
    await awaited.Queue(shared, "mail").put("a letter")
    delivery = await awaited.Queue(shared, "mail").get()
    async with delivery:
        for number in range(2):
            await delivery.put("stored", number)


PUTS = {
    "put": lambda shared: shared.put("stored", 0, timeout=60),
    "put as the space has it": lambda shared: shared.put("stored", 0),
    "put on terms": lambda shared: shared.put("stored", 0, lease=3600, timeout=60),
    "put_all": lambda shared: shared.put_all([("stored", 0)], timeout=60),
    "put_if_absent": lambda shared: shared.put_if_absent("stored", 0, timeout=60),
    "claim": done_with,
    "claimed block": claimed_block,
    "delivery": delivered,
    "delivered block": delivered_block,
}

ENDS = ("claim", "claimed block", "delivery", "delivered block")
"""Those that store two tuples in the place of one."""


@pytest.fixture
def full(url):
    """Open a space that has room for two tuples, and has them."""
    with ts.connect(url, tuples_max=2, when_full="wait") as space:
        yield space


@forgets_a_claim
@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("verb", PUTS)
def test_a_fault_at_every_await_stores_once_or_not_t5(full, verb, exception, served):
    async def main(at):
        async with aio.connect(full.url) as shared:
            await shared.put_all([("n", 0), ("n", 1)])
            cut = Cut(PUTS[verb](shared), at, exception, served=served)
            call = await begun(outcome(cut))
            behind = await begun(shared.put("behind", 0, timeout=60))
            assert in_hands(full)["waiting_for_room"] == 2 - call.done()
            await shared.take("n", 1)
            was_cut = await call is exception
            assert cut.was_reached == was_cut
            del call, cut
            stored = await shared.take_all("stored", int)
            assert len(stored) == (0 if was_cut else 2 if verb in ENDS else 1)
            await behind  # the room, or the turn, was not lost
            assert in_hands(full) == {}
            kept = [fields[0] for fields in await shared.take_all(REST) if fields[0] != "behind"]
            kind = "tupelo.queue" if verb.startswith("deliver") else "n"
            assert kept == [kind] * (was_cut or verb not in ENDS)
            full.wait_none(REST, timeout=0)
        return was_cut

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
def test_a_claim_whose_end_is_cut_is_as_it_was_and_can_be_ended_again_t5_k3_k4(full, served):
    async def main(at):
        async with aio.connect(full.url) as shared:
            await shared.put_all([("n", 0), ("n", 1)])
            claim = await shared.claim("n", 0, ttl=60)
            for number in range(2):
                await claim.put("stored", number)
            cut = Cut(claim.done(), at, served=served)
            call = await begun(outcome(cut))
            await shared.take("n", 1)
            was_cut = await call is asyncio.CancelledError
            assert claim.settled != was_cut
            if was_cut:
                assert in_hands(full)["str", "int", "claims"][0]["fence"] == claim.fence
                assert await shared.count(REST) == 0
                await claim.done()
            assert await shared.take_all(REST) == [("stored", 0), ("stored", 1)]
            full.wait_none(REST, timeout=0)
        return was_cut

    assert at_every_await(main) == 1
