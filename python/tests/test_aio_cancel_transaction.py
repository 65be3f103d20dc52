"""tupelo.aio: a transaction that is cut at any point is undone, and gone (T5, X5)."""

import asyncio

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome

from tupelo import REST, aio

TWO = [("n", 1), ("n", 2)]


async def takes(shared):
    async with shared.transaction(ttl=60) as t:
        _, number = await t.take("n", int)
        await t.put("put", number)
        await asyncio.sleep(0)


async def takes_what_it_has_read(shared):
    async with shared.transaction(ttl=60) as t:
        _, number = await t.read("n", int)
        await asyncio.sleep(0)
        await t.put("put", number)
        assert await t.take("n", int) == ("n", number)


async def takes_after_it_has_read(shared):
    """So it may meet what it alone has read, and looks for itself, without waiting."""
    await shared.put("ground", 0)
    async with shared.transaction(ttl=60) as t:
        await t.read("ground", int)
        _, number = await t.take("n", int)
        await t.put("put", number)
        await asyncio.sleep(0)
    await shared.take("ground", int)


async def reads(shared):
    async with shared.transaction(ttl=60) as t:
        _, number = await t.read("n", int)
        await t.put("put", number)
        await asyncio.sleep(0)


async def takes_many(shared):
    async with shared.transaction(ttl=60) as t:
        taken = await t.take_many("n", int, n=2)
        await t.put_all(("put", number) for _, number in taken)
        await asyncio.sleep(0)


async def swaps(shared):
    async with shared.transaction(ttl=60) as t:
        await t.swap("n", int, to=("put", 1))
        await asyncio.sleep(0)


async def swaps_at_once(shared):
    async with shared.transaction(ttl=60) as t:
        while await t.try_swap("n", int, to=("put", 1)) is None:  # noqa: ASYNC110 - it is the point
            await asyncio.sleep(0)
        await asyncio.sleep(0)


async def commits(shared):
    t = shared.transaction(ttl=60)
    _, number = await t.take("n", int)
    await t.put("put", number)
    await asyncio.sleep(0)
    await t.commit()


async def commits_in_its_block(shared):
    async with shared.transaction(ttl=60) as t:
        _, number = await t.take("n", int)
        await t.put("put", number)
        await asyncio.sleep(0)
        await t.commit()


async def aborts(shared):
    t = shared.transaction(ttl=60)
    _, number = await t.take("n", int)
    await t.put("put", number)
    await asyncio.sleep(0)
    await t.abort()


async def aborts_in_its_block(shared):
    async with shared.transaction(ttl=60) as t:
        await t.take("n", int)
        await t.take_all("n", int)
        await asyncio.sleep(0)
        await t.abort()


LEFT = {
    takes: [("n", 2), ("put", 1)],
    takes_what_it_has_read: [("n", 2), ("put", 1)],
    takes_after_it_has_read: [("n", 2), ("put", 1)],
    reads: [("n", 1), ("n", 2), ("put", 1)],
    takes_many: [("put", 1), ("put", 2)],
    swaps: [("n", 2), ("put", 1)],
    swaps_at_once: [("n", 2), ("put", 1)],
    commits: [("n", 2), ("put", 1)],
    commits_in_its_block: [("n", 2), ("put", 1)],
    aborts: TWO,
    aborts_in_its_block: TWO,
}
"""What each of them leaves of `TWO` if nothing cuts it: all of one shape, so in this order."""


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("block", LEFT)
def test_a_fault_at_every_await_undoes_a_transaction_t5_x5(
    space, block, is_there, served, exception
):
    async def main(at):
        async with aio.connect(space.url) as shared:
            if is_there:
                await shared.put_all(TWO)
            cut = Cut(block(shared), at, exception, served=served)
            call = await begun(outcome(cut))
            if not is_there:
                await shared.put_all(TWO)
            result = await call
            was_cut = result is exception
            assert cut.was_reached == was_cut
            assert was_cut or result is None
            del call, cut  # with the transaction that it may have
            assert in_hands(space) == {}
            left = [fields for fields in await shared.take_all(REST) if fields[0] != "ground"]
            assert left == (TWO if was_cut else LEFT[block])
            space.wait_none(REST, timeout=0)
        return was_cut

    assert at_every_await(main) > 0


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_fault_at_every_await_undoes_it_in_all_its_spaces_t5_x1(
    space, new_url, served, exception
):
    async def sells(shared, other):
        async with shared.transaction(other, ttl=60) as t:
            _, number = await t.take("n", int)
            there = t.on(other)
            _, price = await there.take("price", int)
            await there.put("sold", number, price)
            await asyncio.sleep(0)

    other_url = new_url(space.url.partition(":")[0])

    async def main(at):
        async with aio.connect(space.url) as shared, aio.connect(other_url) as other:
            cut = Cut(sells(shared, other), at, exception, served=served)
            call = await begun(outcome(cut))
            await shared.put_all(TWO)
            while not call.done() and not in_hands(other.blocking).get("waiters"):  # noqa: ASYNC110
                await asyncio.sleep(0)  # nobody is told who waits
            await other.put("price", 7)
            was_cut = await call is exception
            assert cut.was_reached == was_cut
            del call, cut
            assert (in_hands(space), in_hands(other.blocking)) == ({}, {})
            left = [await one.take_all(REST) for one in (shared, other)]
            assert left == ([TWO, [("price", 7)]] if was_cut else [TWO[1:], [("sold", 1, 7)]])
        return was_cut

    assert at_every_await(main) == 3


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("block", [takes, takes_after_it_has_read, takes_many])
def test_what_was_on_its_way_to_it_goes_to_who_waits_outside_t5_x4(space, block, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            cut = Cut(block(shared), at, served=served)
            call = await begun(outcome(cut))
            outside = await begun(shared.take("n", int, timeout=60))
            await shared.put_all(TWO)
            # To take many is to watch, which holds nothing back: then there are too few of them.
            await asyncio.wait((call, outside), return_when=asyncio.FIRST_COMPLETED)
            await shared.put("n", 3)
            was_cut = await call is asyncio.CancelledError
            assert cut.was_reached == was_cut
            del call, cut
            had = [(await outside)[1]]
            left = [number for _, number in await shared.take_all("n", int)]
            put = [number for _, number in await shared.take_all("put", int)]
            assert sorted(had + left + put) == [1, 2, 3]
            assert (put == []) == was_cut
            await shared.take_all("ground", int)
        assert in_hands(space) == {}
        return was_cut

    assert at_every_await(main) > 0
