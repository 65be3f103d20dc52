"""tupelo.aio.search: as tupelo.search, without a thread that waits (O10, T5)."""

import asyncio
import gc
import random
import weakref

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome

import tupelo as ts
from tupelo import aio

SEED = 11


@pytest.fixture
def three(new_url):
    """Return three empty spaces of both kinds."""
    opened = [aio.connect(new_url(scheme), size="64M") for scheme in ("mem", "shm", "mem")]
    yield opened
    for space in opened:
        space.close()


def waiters(spaces):
    return [space.blocking.stat()["waiters"] for space in spaces]


async def until_in_line(spaces, places):
    """Wait until so many wait in each space, and the event loop's notifier."""
    while min(waiters(spaces)) < places:  # noqa: ASYNC110 - nobody is told who waits
        await asyncio.sleep(0)


def test_what_is_there_is_had_at_once(three):
    async def main():
        await three[1].put("job", 7)
        found = await aio.search(three, "job", int, want="read")
        assert (found.tuple, found.space, found.visited) == (("job", 7), three[1], 2)
        search = aio.Search(three)
        assert search.spaces == tuple(three)
        assert (await search.try_read("job", ...)).space is three[1]
        assert (await search.take("job", ...)).waited_s == 0
        assert await search.try_take("job", ...) is None

    asyncio.run(main())


def test_a_search_waits_in_all_spaces_t6(three):
    async def main():
        search = aio.Search(three, order="success factor")
        for place in (2, 0, 1):
            later = asyncio.create_task(search.take("job", int, timeout=60))
            await until_in_line(three, 1)
            await three[place].put("job", place)
            found = await later
            assert (found.tuple, found.space) == (("job", place), three[place])
            assert found.visited == 6
        assert await three[0].count(ts.REST) == 0

    asyncio.run(main())


def test_a_thousand_searches_share_the_notifiers_of_the_loop_t1(three):
    async def main():
        search = aio.Search(three)
        tasks = [asyncio.create_task(search.take("job", n, timeout=60)) for n in range(1_000)]
        await until_in_line(three, 1_000)
        assert max(waiters(three)) == 1_000
        for number in random.Random(SEED).sample(range(1_000), 1_000):
            await three[number % 3].put("job", number)
        found = await asyncio.gather(*tasks)
        assert [each.tuple[1] for each in found] == list(range(1_000))
        assert waiters(three) == [0, 0, 0]

    asyncio.run(main())


def test_a_search_in_vain_ends_in_time_and_refuses_what_makes_no_sense(three):
    async def main():
        with pytest.raises(ts.Timeout, match=r"within 0.01 s in mem://\S+ and 2 more"):
            await aio.search(three, "job", int, timeout=0.01)
        with pytest.raises(ts.Timeout):
            await aio.search(three, "job", int, timeout=0, want="read")
        with pytest.raises(ValueError, match="timeout is -1"):
            await aio.search(three, "job", timeout=-1)
        with pytest.raises(ValueError, match="want is 'have'"):
            await aio.search(three, "job", want="have")
        with pytest.raises(TypeError, match="type Space: give one of tupelo"):
            aio.Search([three[0].blocking])
        with pytest.raises(ts.Timeout):
            await aio.search(three, "job", int, where="f[1] > 3", timeout=0.01)
        assert waiters(three) == [0, 0, 0]

    asyncio.run(main())


def test_closing_a_space_ends_the_search(three):
    async def main():
        later = asyncio.create_task(aio.search(three, "job", int))
        await until_in_line(three, 1)
        three[1].close()
        with pytest.raises(ts.SpaceClosed):
            await later

    asyncio.run(main())


def test_cancelling_at_random_moments_loses_nothing_t5(three):
    count = 1_000

    async def main():
        chance = random.Random(SEED)
        search = aio.Search(three)
        tasks = [asyncio.create_task(search.take("job", int)) for _ in range(count)]
        for number in range(count):
            await chance.choice(three).put("job", number)
            chance.choice(tasks).cancel()
            if chance.random() < 0.2:
                await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        taken = [each.tuple for each in ended if not isinstance(each, asyncio.CancelledError)]
        assert 0 < len(taken) < count
        taken += [one for space in three for one in await space.take_all("job", int)]
        assert sorted(number for _, number in taken) == list(range(count))
        assert waiters(three) == [0, 0, 0]

    asyncio.run(main())


FINDS = {
    "take": lambda three: aio.search(three, "n", int),
    "read": lambda three: aio.search(three, "n", int, want="read"),
    "take in time": lambda three: aio.search(three, "n", int, timeout=60),
    "success factor": lambda three: aio.Search(three, order="success factor").take("n", int),
}


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("places", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("find", FINDS)
def test_a_fault_at_every_await_leaves_each_space_as_it_was_t5_o10(
    three, find, places, exception, served
):
    """Also what several spaces have handed over at once is back, or stays, but for one tuple."""

    async def main(at):
        cut = Cut(FINDS[find](three), at, exception, served=served)
        call = await begun(outcome(cut))
        for place in places:
            await three[place].put_all([("n", place), ("n", 9)])
        result = await call
        was_cut = result is exception
        assert cut.was_reached == was_cut
        assert [in_hands(space.blocking) for space in three] == [{}, {}, {}]
        left = [await space.take_all("n", int) for space in three]
        there = [[("n", place), ("n", 9)] * (place in places) for place in range(3)]
        if not was_cut:
            place = three.index(result.space)
            assert result.tuple == ("n", place)
            if find != "read":
                del there[place][0]
        assert left == there
        return was_cut

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("place", range(3))
def test_what_was_on_its_way_to_a_search_that_is_cut_goes_to_the_next_t5(three, place, served):
    async def main(at):
        cut = Cut(aio.search(three, "n", int), at, served=served)
        call = await begun(outcome(cut))
        behind = await begun(aio.search(three, "n", int, timeout=60))
        await three[place].put("n", 1)
        was_cut = await call is asyncio.CancelledError
        if not was_cut:
            await three[place].put("n", 2)
        found = await behind
        assert (found.tuple, found.space) == (("n", 1 if was_cut else 2), three[place])
        assert [in_hands(space.blocking) for space in three] == [{}, {}, {}]
        assert await three[place].count(ts.REST) == 0
        return was_cut

    assert at_every_await(main) == 1


@pytest.mark.parametrize("in_line", [False, True])
def test_a_search_that_one_of_its_spaces_refers_to_is_collected(new_url, in_line):
    space = aio.connect(new_url("mem"))
    search = space.search = aio.Search([space])
    if in_line:
        space.line = search._current.native.waiter("take", "never")  # noqa: SLF001
    gone = weakref.ref(space)
    del space, search
    gc.collect()
    assert gone() is None
