"""tupelo.aio.batteries: who is cut while it asks or answers leaves nothing half done (T5)."""

import asyncio

import pytest
from cutting import FAULTS, Cut, at_every_await, begun, in_hands, outcome

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio.batteries import Service, call
from tupelo.batteries.core import service as core

REQUEST = ("tupelo.request", "square")
ANSWER = ("tupelo.answer", "a mailbox", 0)


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_call_that_is_cut_leaves_neither_request_nor_answer_t5(space, exception, timeout, served):
    async def main(at):
        async with aio.connect(space.url) as shared:
            cut = Cut(call(shared, "square", 7, timeout=timeout), at, exception, served=served)
            asking = await begun(outcome(cut))
            request = await shared.try_take(*REQUEST, str, int, list)
            assert (request is None) == asking.done()
            if request is not None:
                _, _, mailbox, number, (argument,) = request
                await shared.put("tupelo.answer", mailbox, number, "done", argument**2)
            result = await asking
            was_cut = result is exception
            assert cut.was_reached == was_cut
            assert was_cut or result == 49
            assert in_hands(space) == {}
            space.wait_none(REST, timeout=0)
        return was_cut

    assert at_every_await(main) == 1


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", FAULTS)
def test_a_call_that_is_cut_in_line_for_room_asks_nobody_t5_b1(url, exception, served):
    async def main(at):
        async with aio.connect(url) as shared:
            await shared.put("fills it")
            cut = Cut(call(shared, "square", 7), at, exception, served=served)
            asking = await begun(outcome(cut))
            await shared.take("fills it")
            claim = None
            while claim is None and not asking.done():
                claim = await shared.try_claim(*REQUEST, str, int, list)
                await asyncio.sleep(0)
            if claim is not None:
                _, _, mailbox, number, (argument,) = claim.tuple
                await claim.put("tupelo.answer", mailbox, number, "done", argument**2)
                await claim.done()
            result = await asking
            was_cut = result is exception
            assert cut.was_reached == was_cut
            assert was_cut or result == 49
            assert in_hands(space) == {}
            space.wait_none(REST, timeout=0)
        return was_cut

    with ts.connect(url, tuples_max=1, when_full="wait") as space:
        assert at_every_await(main) == 2


async def squared(number):
    await asyncio.sleep(0)
    return number**2


async def served_by(service):
    """Serve in this task, which the one of `Service.run` waits for."""
    with service.runs.begun() as run:
        await service.serve(run)


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("exception", [asyncio.CancelledError, GeneratorExit])
def test_a_server_that_is_cut_leaves_its_request_to_the_next_t5_k2(
    space, exception, served, monkeypatch
):
    """At its three awaits: for a request, in the handler, and for what comes next: its end.

    Another exception in the handler would be its answer; so would this one be, if nobody had
    cancelled the task that serves.
    """
    monkeypatch.setattr(core, "is_cancelled", lambda error: isinstance(error, exception))

    async def main(at):
        async with aio.connect(space.url) as shared:
            service = Service(shared, "square", squared)
            cut = Cut(served_by(service), at, exception, served=served)
            serving = await begun(outcome(cut))
            answer = await begun(shared.take(*ANSWER, str, ...))
            await shared.put(*REQUEST, *ANSWER[1:], [7])
            await asyncio.wait((serving, answer), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                rescue = await begun(Service(shared, "square", squared).run())
                await answer
                rescue.cancel()
                await asyncio.wait([rescue])
            assert await answer == (*ANSWER, "done", 49)
            await service.stop()
            was_cut = await serving is exception
            assert cut.was_reached == was_cut
            del serving, cut
            assert in_hands(space) == {}
            space.wait_none(REST, timeout=0)
        return was_cut

    assert at_every_await(main) == 3
