"""tupelo.aio: who is cut while it waits for an event loses none, and hears none twice (T5, N1)."""

import asyncio
import threading

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome

from tupelo import REST, aio


def told(events):
    """Return what is told of each event."""
    return [(event.seq, event.missed, event.tuple) for event in events]


def still_waiting(events):
    """Return the events that nobody was told of yet."""
    return list(iter(events.try_next, None))


async def first_of(events):
    async for event in events:
        return event
    return None  # it was closed


WAITS = {
    "next": lambda events: events.next(),
    "next in time": lambda events: events.next(timeout=60),
    "anext": anext,
    "async for": first_of,
}


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
@pytest.mark.parametrize("wait", WAITS)
def test_a_fault_at_every_await_loses_no_event_t5_n1(space, wait, exception, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            async with shared.subscribe("n", int) as events:
                cut = Cut(WAITS[wait](events), at, exception, served=served)
                call = await begun(outcome(cut))
                await shared.put_all([("n", 1), ("n", 2)])
                result = await call
                was_cut = result is exception
                assert cut.was_reached == was_cut
                heard = [result] * (not was_cut) + still_waiting(events)
                assert told(heard) == [(1, 0, ("n", 1)), (2, 0, ("n", 2))]
                await shared.put("n", 3)
                assert told([await anext(events)]) == [(3, 0, ("n", 3))]
            assert in_hands(space) == {}
            await shared.take_all(REST)
        return was_cut

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_fault_in_its_block_ends_a_subscription_t5(space, exception, served):
    async def listens(shared, heard):
        async with shared.subscribe("n", int, on={"put", "take"}) as events:
            async for event in events:
                heard.append(event)
                await asyncio.sleep(0)
                if event.kind == "take":
                    return

    async def main(at):
        async with aio.connect(space.url) as shared:
            heard = []
            cut = Cut(listens(shared, heard), at, exception, served=served)
            call = await begun(outcome(cut))
            await shared.put("n", 1)
            await shared.take("n", 1)
            was_cut = await call is exception
            assert cut.was_reached == was_cut
            del call, cut
            assert told(heard) == [(1, 0, ("n", 1)), (2, 0, ("n", 1))][: len(heard)]
            assert was_cut or len(heard) == 2
            assert in_hands(space) == {}
        return was_cut

    assert at_every_await(main) == 3


@pytest.mark.parametrize("served", [False, True])
def test_what_a_task_did_not_hear_the_next_one_in_turn_does_t5(space, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            async with shared.subscribe("n", int) as events:
                cut = Cut(events.next(), at, served=served)
                call = await begun(outcome(cut))
                behind = await begun(events.next(timeout=60))
                await shared.put("n", 1)
                was_cut = await call is asyncio.CancelledError
                await shared.put("n", 2)
                assert (await behind).tuple == ("n", 1 if was_cut else 2)
                assert len(still_waiting(events)) == was_cut
            assert in_hands(space) == {}
        return was_cut

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
def test_a_task_that_is_cut_while_it_waits_for_its_turn_loses_no_event_t5(space, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            async with shared.subscribe("n", int) as events:
                before = await begun(events.next(timeout=60))
                cut = Cut(events.next(timeout=60), at, served=served)
                call = await begun(outcome(cut))
                behind = await begun(events.next(timeout=60))
                await shared.put_all(("n", number) for number in (1, 2, 3))
                assert (await before).tuple == ("n", 1)
                result = await call
                was_cut = result is asyncio.CancelledError
                heard = [result] * (not was_cut) + [await behind] + still_waiting(events)
                assert told(heard) == [(2, 0, ("n", 2)), (3, 0, ("n", 3))]
            assert in_hands(space) == {}
        return was_cut

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
def test_who_is_cut_when_its_subscription_is_closed_leaves_no_place_in_line_t5(space, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            events = shared.subscribe("n", int)
            cut = Cut(first_of(events), at, served=served)
            call = await begun(outcome(cut))
            events.close()
            result = await call
            assert result in (asyncio.CancelledError, None)
            assert in_hands(space) == {}
        return result is asyncio.CancelledError

    assert at_every_await(main) == 1


class ClosedMeanwhile:
    """A native subscription, at whose first look another thread closes the one that has it."""

    def __init__(self, events):
        self._events = events
        self._native = events._subscription  # noqa: SLF001

    def try_next(self):
        self._events._subscription = self._native  # noqa: SLF001
        closing = threading.Thread(target=self._events.close)
        closing.start()
        closing.join()
        return self._native.try_next()


@pytest.mark.parametrize("wait", ["anext", "async for"])
def test_a_subscription_that_another_thread_closes_before_its_task_waits_ends_n1(space, wait):
    async def main():
        async with asyncio.timeout(60), aio.connect(space.url) as shared:
            events = shared.subscribe("n", int)
            events._subscription = ClosedMeanwhile(events)  # noqa: SLF001
            result = await outcome(WAITS[wait](events))
            assert result is None or result is StopAsyncIteration
            with pytest.raises(ValueError, match="was closed"):
                events.try_next()
            await asyncio.sleep(0)  # which gives back what is native
            assert in_hands(space) == {}

    asyncio.run(main())
