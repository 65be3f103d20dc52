"""tupelo.aio: who is cut while it waits for what it does not take alone leaves all as it was (T5).

`wait_none` and `Latch.wait` take nothing, `gather` takes all in one step.
"""

import asyncio

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome

from tupelo import REST, aio
from tupelo.aio.batteries import Latch, gather


async def takes_the_last(shared):
    await shared.take("n", int)


async def opens(shared):
    await Latch(shared, "open").count_down()


OPEN = ("tupelo.latch", "open", 1, 0)

WATCHES = {
    "wait_none": (lambda shared: shared.wait_none("n", int), takes_the_last, [], None),
    "wait_none in time": (
        lambda shared: shared.wait_none("n", int, timeout=60),
        takes_the_last,
        [],
        None,
    ),
    "latch": (lambda shared: Latch(shared, "open").wait(), opens, [("n", 1), OPEN], None),
    "latch in time": (
        lambda shared: Latch(shared, "open").wait(timeout=60),
        opens,
        [("n", 1), OPEN],
        None,
    ),
}
"""What waits, what it waits for, and what is there after that."""


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("watch", WATCHES)
def test_a_fault_at_every_await_of_who_only_watches_changes_nothing_t5(
    space, watch, exception, served
):
    waits, happens, left, result = WATCHES[watch]

    async def main(at):
        async with aio.connect(space.url) as shared:
            await shared.put("n", 1)
            cut = Cut(waits(shared), at, exception, served=served)
            call = await begun(outcome(cut))
            behind = await begun(asyncio.wait_for(waits(shared), 60))
            await happens(shared)
            was_cut = await call is exception
            assert cut.was_reached == was_cut
            assert await behind is result
            assert in_hands(space) == {}
            assert await shared.take_all(REST) == left
        return was_cut

    assert at_every_await(main) > 0


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("progress", [False, "rows"])
def test_a_fault_at_every_await_of_gather_takes_all_or_none_t5_o6(
    space, progress, exception, served
):
    async def main(at):
        async with aio.connect(space.url) as shared:
            await shared.put("n", 1)
            gathers = gather(shared, "n", int, n=2, progress=progress)
            cut = Cut(gathers, at, exception, served=served)
            call = await begun(outcome(cut))
            await shared.put("n", 2)
            result = await call
            was_cut = result is exception
            assert cut.was_reached == was_cut
            had = [] if was_cut else list(result)
            left = await shared.take_all(REST)
            assert had + left == [("n", 1), ("n", 2)]
            assert not (had and left)
            assert in_hands(space) == {}
        return was_cut

    assert at_every_await(main) > 0
