"""tupelo.aio.batteries: who is cut in a queue loses no item, and no room (T5)."""

import asyncio

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome
from forgetting import forgets_a_claim

from tupelo import REST, aio
from tupelo.aio.batteries import Queue

ROOM = ("tupelo.queue.room", "mail")
SIZE = ("tupelo.queue.size", "mail")


async def all_items(mail):
    """Get all items that are there, and be done with them."""
    items = []
    while (delivery := await mail.try_get()) is not None:
        items.append(delivery.item)
        await delivery.done()
    return items


async def gets(mail, got):
    """Get items until this is cancelled."""
    while True:
        async with mail.get() as item:
            got.append(item)


PUTS = {
    "put": lambda mail: mail.put(2),
    "put in time": lambda mail: mail.put(2, timeout=60),
    "urgent put": lambda mail: mail.put(2, priority=9),
}


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("put", PUTS)
def test_a_put_that_is_cut_in_a_full_queue_puts_once_or_not_t5(space, put, exception, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            mail = Queue[int](shared, "mail", maxsize=1)
            await mail.put(1)
            cut = Cut(PUTS[put](mail), at, exception, served=served)
            call = await begun(outcome(cut))
            behind = await begun(mail.put(3, timeout=60))
            got = []
            getting = await begun(gets(mail, got))
            was_cut = await call is exception
            assert cut.was_reached == was_cut
            await behind
            await mail.join(timeout=60)
            getting.cancel()
            await asyncio.wait([getting])
            assert sorted(got) == ([1, 3] if was_cut else [1, 2, 3])
            assert await shared.count(*ROOM) == 1
            assert in_hands(space) == {}
        return was_cut

    assert at_every_await(main) > 0


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_first_put_that_is_cut_leaves_the_room_whole_t5(space, exception, is_made, served):
    """It waits for whoever makes the room at the same time."""

    async def main(at):
        async with aio.connect(space.url) as shared:
            await shared.put(*SIZE, 0)
            maker = await shared.claim(*SIZE, int)
            mail = Queue[int](shared, "mail", maxsize=3)
            cut = Cut(mail.put(1), at, exception, served=served)
            call = await begun(outcome(cut))
            if is_made:
                for _ in range(3):
                    await maker.put(*ROOM)
                await maker.put(*SIZE, 3)
                await maker.done()
            else:
                await maker.abort()
            was_cut = await call is exception
            assert cut.was_reached == was_cut
            del call, cut, maker
            assert await all_items(mail) == [1] * (not was_cut)
            await mail.put(2)
            assert await all_items(mail) == [2]
            assert in_hands(space) == {}
            assert sorted(await shared.take_all(REST)) == [ROOM] * 3 + [(*SIZE, 3)]
        return was_cut

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_get_that_is_cut_while_it_waits_counts_no_attempt_t5_k1(space, exception, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            mail = Queue[int](shared, "mail", max_attempts=1)
            cut = Cut(mail.get(), at, exception, served=served)
            call = await begun(outcome(cut))
            await mail.put(1)
            await mail.put(2)
            result = await call
            was_cut = result is exception
            assert cut.was_reached == was_cut
            if not was_cut:
                assert (result.item, result.attempt) == (1, 1)
                await result.done()
            assert await mail.dead.all() == []
            assert in_hands(space) == {}
            assert await all_items(mail) == ([1, 2] if was_cut else [2])
            space.wait_none(REST, timeout=0)
        return was_cut

    assert at_every_await(main) == 1


async def works(mail):
    async with mail.get() as item:
        await asyncio.sleep(0)
    return item


async def works_on_a_delivery(mail):
    async with await mail.get(timeout=60) as item:
        await asyncio.sleep(0)
    return item


async def works_by_hand(mail):
    delivery = await mail.get()
    await delivery.put("result", delivery.item)
    await asyncio.sleep(0)
    await delivery.done()
    return delivery.item


@forgets_a_claim
@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("work", [works, works_on_a_delivery, works_by_hand])
def test_work_that_is_cut_gives_its_item_back_and_keeps_its_room_t5_k2_k4(
    space, work, exception, is_there, served
):
    async def main(at):
        async with aio.connect(space.url) as shared:
            mail = Queue[int](shared, "mail", maxsize=2)
            if is_there:
                await mail.put(1)
            cut = Cut(work(mail), at, exception, served=served)
            call = await begun(outcome(cut))
            if not is_there:
                await mail.put(1)
            await mail.put(2)
            result = await call
            was_cut = result is exception
            assert cut.was_reached == was_cut
            assert was_cut or result == 1
            del call, cut  # with the delivery that it may have
            assert in_hands(space) == {}
            assert await shared.count(*ROOM) == (0 if was_cut else 1)
            has_result = work is works_by_hand and not was_cut
            assert await shared.take_all("result", int) == [("result", 1)] * has_result
            assert await all_items(mail) == ([1, 2] if was_cut else [2])
            assert await shared.count(*ROOM) == 2
        return was_cut

    assert at_every_await(main) > 0
