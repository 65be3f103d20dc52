"""tupelo.aio: claims of tasks (K1 to K5)."""

import asyncio
import gc

import pytest
from attempts import in_one_attempt
from forgetting import forgets_a_claim

import tupelo as ts
from tupelo import REST, F, aio, like


def run(main):
    return asyncio.run(main)


def test_a_claim_is_awaited_and_done_with(space):
    async def main():
        async with aio.connect(space.url) as shared:
            space.put("job", 7)
            claim = await shared.claim("job", int)
            assert isinstance(claim, aio.Claim)
            assert (claim.tuple, claim.attempt) == (("job", 7), 1)
            assert repr(claim) == f"<aio.Claim ('job', 7), attempt 1, fence {claim.fence}>"
            assert await shared.try_take("job", int) is None  # K1
            await claim.put("result", 49)
            await claim.extend(60)
            assert await shared.count(REST) == 0
            await claim.done()
            assert await shared.take_all(REST) == [("result", 49)]  # K2, K4
            with pytest.raises(ValueError, match="TUP-019: the claim was settled already"):
                await claim.done()

    run(main())
    space.wait_none(REST, timeout=0)


def test_a_block_gets_the_tuple_and_is_done_at_its_end(space):
    async def main():
        async with aio.connect(space.url) as shared:
            space.put("job", 7)
            async with shared.claim("job", int, ttl=60) as (name, number):
                assert (name, number) == ("job", 7)
                await asyncio.sleep(0)
                assert space.count(REST) == 0
            space.wait_none(REST, timeout=0)  # K2

    run(main())


def test_one_object_is_the_call_and_the_claim(space):
    """So that what is put under it can be said in the block, as in the synchronous face."""

    async def main():
        async with aio.connect(space.url) as shared:
            space.put_all([("job", 7), ("job", 8)])
            claim = shared.claim("job", int)
            assert repr(claim) == "<aio.Claim, not begun>"
            with pytest.raises(RuntimeError, match="await the claim first"):
                claim.tuple  # noqa: B018
            async with claim as (_, number):
                await claim.put("result", number)
                assert space.count("result", int) == 0
            assert space.count("result", 7) == 1  # K4
            claim = await shared.claim("job", int)
            async with claim as (_, number):
                await claim.abort("not now")
            assert space.count("job", 8) == 1

    run(main())


@pytest.mark.parametrize("exception", [ZeroDivisionError, asyncio.CancelledError, SystemExit])
def test_any_exception_puts_the_tuple_back_at_its_old_place_and_goes_on(space, exception):
    async def main():
        async with aio.connect(space.url) as shared:
            with pytest.raises(exception):
                async with shared.claim("job", int):
                    raise exception

    space.put_all([("job", 1), ("job", 2)])
    run(main())
    assert space.take_all("job", int) == [("job", 1), ("job", 2)]  # K2


@forgets_a_claim
def test_a_claim_waits_in_line_with_takes_and_is_found_as_by_them(space):
    async def main():
        async with aio.connect(space.url) as shared:
            first = asyncio.create_task(shared.claim("job", int))
            await asyncio.sleep(0)
            second = asyncio.create_task(shared.take("job", int))
            await asyncio.sleep(0)
            assert space.stat()["waiters"] == 2
            await shared.put("job", 1)
            claim = await first
            assert claim.tuple == ("job", 1)  # T3
            await claim.abort()
            assert await second == ("job", 1)
            space.put_all([("job", 1), ("job", 5), ("job", 3)])
            assert (await shared.claim("job", int, order=F.max(1))).tuple == ("job", 5)
            assert (await shared.claim(like("stop") | like("job", F > 1))).tuple == ("job", 5)

    run(main())


def test_a_claim_is_a_coroutine_as_any_call(space):
    async def main():
        async with aio.connect(space.url) as shared:
            async with asyncio.TaskGroup() as tasks:
                claims = [tasks.create_task(shared.claim("job", n)) for n in range(3)]
                await asyncio.sleep(0)
                await shared.put_all(("job", n) for n in range(3))
            assert [claim.result().tuple[1] for claim in claims] == [0, 1, 2]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(shared.claim("none"), 0.01)
            claim = shared.claim("job", 0)
            claim.close()
            with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
                await claim

    run(main())
    assert space.stat()["waiters"] == 0


def test_try_claim_does_not_wait(space):
    async def main():
        async with aio.connect(space.url) as shared:
            assert await shared.try_claim("job", int) is None
            space.put("job", 1)
            async with await shared.try_claim("job", int, ttl=60) as (_, number):
                assert number == 1
            assert await shared.try_claim("job", int) is None

    run(main())


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_a_claim_that_finds_nothing_times_out_as_the_synchronous_one(space, timeout):
    async def main():
        async with aio.connect(space.url) as shared:
            with pytest.raises(ts.Timeout) as caught:
                async with shared.claim("job", int, timeout=timeout):
                    pass
            return caught

    space.put("job", "1")
    caught = run(main())
    with pytest.raises(ts.Timeout) as expected:
        space.claim("job", int, timeout=timeout)
    assert str(caught.value) == str(expected.value)
    assert space.stat()["waiters"] == 0


@pytest.mark.parametrize(
    "options", [{"ttl": 0}, {"ttl": None}, {"max_attempts": 0}, {"timeout": -1}, {"order": "x"}]
)
def test_bad_terms_are_refused_and_nothing_is_claimed(space, options):
    async def main():
        async with aio.connect(space.url) as shared:
            with pytest.raises((TypeError, ValueError)):
                await shared.claim("job", int, **options)

    space.put("job", 1)
    run(main())
    assert space.count("job", int) == 1
    assert space.stat()["waiters"] == 0


@forgets_a_claim
def test_after_its_last_attempt_a_tuple_is_dead_and_can_be_put_back(space):
    async def main():
        async with aio.connect(space.url) as shared:
            await shared.put("job", 1)
            later = asyncio.create_task(shared.claim("job", int, max_attempts=2))
            await (await later).abort("no disk")
            claim = await shared.claim("job", int, max_attempts=2)
            assert claim.attempt == 2
            with pytest.raises(KeyError):
                async with claim:
                    raise KeyError(7)
            (letter,) = await shared.dead("job", int)
            assert letter == ts.DeadLetter(("job", 1), 2, ["no disk", "KeyError: 7"])
            assert await shared.requeue("job", int) == 1  # K5
            assert (await shared.claim("job", int)).attempt == 1

    run(main())


def test_the_attempts_of_a_claim_that_waited_are_counted(space):
    """The terms reach a claim that was handed over, too."""

    async def main():
        async with aio.connect(space.url) as shared:
            later = asyncio.create_task(shared.claim("job", int, max_attempts=1))
            await asyncio.sleep(0)
            await shared.put("job", 1)
            await (await later).abort()
            assert len(await shared.dead("job", int)) == 1  # K5

    run(main())


@in_one_attempt
def test_a_block_keeps_its_claim_while_the_loop_is_busy(space):
    async def main():
        async with aio.connect(space.url) as shared:
            space.put("job", 1)
            async with shared.claim("job", int, ttl=0.6):
                with pytest.raises(ts.Timeout):
                    space.take("job", int, timeout=1.5)  # blocks the loop for twice the ttl
            space.wait_none(REST, timeout=0)

    run(main())


def test_a_claim_that_ran_out_is_refused(space, eventually):
    async def main():
        async with aio.connect(space.url) as shared:
            space.put("job", 1)
            claim = await shared.claim("job", int, ttl=0.005)
            await claim.put("result", 1)
            eventually(lambda: space.count(REST) == 1)
            with pytest.raises(ts.ClaimLost, match=r"your claim on \('job', 1\)"):
                await claim.done()
            assert await shared.take_all(REST) == [("job", 1)]  # K3, K4

    run(main())


@forgets_a_claim
def test_a_claim_that_is_forgotten_is_aborted(space):
    async def main():
        async with aio.connect(space.url) as shared:
            space.put("job", 1)
            await shared.claim("job", int)
            gc.collect()
            assert (await shared.claim("job", int, timeout=0)).attempt == 2

    run(main())
