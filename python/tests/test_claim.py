"""claim: a tuple that comes back unless it is done with."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from attempts import in_one_attempt
from forgetting import forgets_a_claim

import tupelo as ts
from tupelo import REST, F, like


def test_a_claimed_tuple_is_hidden_until_it_is_done_with(space):
    space.put("job", 7)
    claim = space.claim("job", int)
    assert claim.tuple == ("job", 7)
    assert space.try_take("job", int) is None  # K1
    assert space.count(REST) == 0
    claim.done()
    assert space.count(REST) == 0  # K2
    space.wait_none(REST, timeout=0)


def test_the_block_gets_the_tuple_and_is_done_at_its_end(space):
    space.put("job", 7)
    with space.claim("job", int) as (name, number):
        assert (name, number) == ("job", 7)
        assert space.count(REST) == 0
    space.wait_none(REST, timeout=0)  # K2


def test_an_exception_puts_the_tuple_back_at_its_old_place_and_goes_on(space):
    space.put_all([("job", 1), ("job", 2)])
    with pytest.raises(ZeroDivisionError), space.claim("job", int) as (_, number):
        assert number // 0
    assert space.take_all("job", int) == [("job", 1), ("job", 2)]  # K2


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_any_exception_puts_the_tuple_back(space, exception):
    space.put("job", 1)
    with pytest.raises(exception), space.claim("job", int):
        raise exception
    assert space.take("job", int, timeout=0) == ("job", 1)


@forgets_a_claim
def test_each_claim_has_a_greater_fence_and_counts_the_attempts(space):
    space.put("job", 1)
    space.put("other")
    claims = []
    for attempt in (1, 2, 3):
        claim = space.claim("job", int)
        assert claim.attempt == attempt  # K2
        claims.append(claim)
        claim.abort()
    claims.append(space.claim("other"))
    assert claims[-1].attempt == 1
    fences = [claim.fence for claim in claims]
    assert fences == sorted(set(fences))  # K1


def test_what_is_put_under_the_claim_appears_with_done(space):
    space.put("job", 7)
    with space.claim("job", int) as _:
        space.put("seen", 7)
    claim = space.claim("seen", int)
    with claim as (_, number):
        claim.put("result", number * number)
        claim.put("log", [number, "ok"])
        assert space.count(REST) == 0
    assert space.take("result", int, timeout=0) == ("result", 49)  # K4
    assert space.take("log", list, timeout=0) == ("log", [7, "ok"])


def test_what_is_put_under_a_claim_that_is_aborted_is_forgotten(space):
    space.put("job", 7)
    claim = space.claim("job", int)
    claim.put("result", 49)
    claim.abort()
    assert space.take_all(REST) == [("job", 7)]  # K4


def test_a_tuple_that_can_not_be_stored_is_refused_at_once_and_the_claim_goes_on(space):
    space.put("job", 7)
    with space.claim("job", int) as _:
        pass
    space.put("job", 8)
    claim = space.claim("job", int)
    with pytest.raises(ts.NotEncodable, match="field 1 is the type"):
        claim.put("result", int)
    claim.put("result", 64)
    claim.done()
    assert space.take_all(REST) == [("result", 64)]


@forgets_a_claim
def test_a_result_that_finds_no_room_puts_the_tuple_back(url):
    with ts.connect(url, tuples_max=2) as space:
        space.put_all([("job", 1), ("filler",)])
        claim = space.claim("job", int)
        with pytest.raises(ts.SpaceFull), claim:
            claim.put("result", 1)
            claim.put("result", 2)
        assert space.count("result", int) == 0
        assert space.claim("job", int, timeout=0).attempt == 2


@forgets_a_claim
def test_a_claim_that_is_forgotten_is_aborted(space):
    space.put("job", 1)
    space.claim("job", int)
    gc.collect()
    assert space.claim("job", int, timeout=0).attempt == 2


@pytest.mark.parametrize("first", ["done", "abort"])
@pytest.mark.parametrize("second", ["done", "abort", "extend", "put", "__enter__"])
def test_a_claim_that_was_settled_can_not_be_used_again(space, first, second):
    space.put("job", 1)
    claim = space.claim("job", int)
    getattr(claim, first)()
    there = space.read_all(REST)
    ending = {"done": "was done", "abort": "was aborted"}[first]
    with pytest.raises(ValueError, match="TUP-019") as refused:
        getattr(claim, second)()
    assert str(refused.value) == (
        f"TUP-019: the claim was settled already: it {ending} (on ('job', 1), fence {claim.fence})"
        "\n  call done() or abort() once, and all else before"
    )
    assert space.read_all(REST) == there


def test_a_claim_says_how_it_ended(space):
    space.put_all([("job", 1), ("job", 2), ("job", 3)])
    done, aborted = space.claim("job", int), space.claim("job", int)
    with done:
        pass
    with pytest.raises(ZeroDivisionError), aborted:
        raise ZeroDivisionError
    lost = space.claim("job", 3, ttl=0.01)
    space.take("job", 3, timeout=60)
    with pytest.raises(ts.ClaimLost):
        lost.done()
    for claim, ending in ((done, "was done"), (aborted, "was aborted"), (lost, "was lost")):
        with pytest.raises((ValueError, ts.ClaimLost), match=f"it {ending}|is lost"):
            claim.put("more")
    with pytest.raises(ValueError, match=r"it was lost .*\n  claim again: the tuple is another's"):
        lost.done()


def test_a_block_may_settle_its_claim_itself(space):
    space.put_all([("job", 1), ("job", 2)])
    claim = space.claim("job", int)
    with claim:
        claim.abort("not now")
    assert space.count("job", int) == 2
    claim = space.claim("job", int)
    with pytest.raises(KeyError), claim:
        claim.done()
        raise KeyError
    assert space.take_all("job", int) == [("job", 2)]


def lose(space, claim, eventually):
    """Let the claim run out and somebody else get the tuple."""
    eventually(lambda: space.count(REST) == 1)
    other = space.claim(REST, timeout=0)
    assert other.fence > claim.fence
    return other


@pytest.mark.parametrize("verb", ["done", "abort", "extend"])
def test_silence_gives_the_tuple_back_and_the_late_holder_is_refused(space, verb, eventually):
    space.put("job", 1)
    claim = space.claim("job", int, ttl=0.005)
    claim.put("result", 1)
    other = lose(space, claim, eventually)  # K2
    with pytest.raises(ts.ClaimLost) as caught:
        getattr(claim, verb)()
    assert caught.value.code == "TUP-007"
    assert caught.value.space == space.url
    text = str(caught.value)
    assert "your claim on ('job', 1) (ttl 0.005 s) is lost: the claim ran out" in text
    assert f"process {os.getpid()} has the tuple now" in text
    assert "Claim with a longer ttl" in caught.value.hint
    assert space.count(REST) == 0  # K3, K4
    other.done()
    space.wait_none(REST, timeout=0)


@in_one_attempt
def test_a_block_keeps_its_claim_alive_while_it_runs(space):
    space.put("job", 1)
    with space.claim("job", int, ttl=0.6):
        with pytest.raises(ts.Timeout):
            space.take("job", int, timeout=1.5)  # more than twice the ttl
    space.wait_none(REST, timeout=0)


@forgets_a_claim
def test_a_claim_without_a_block_is_kept_by_extending_it(space, eventually):
    space.put("job", 1)
    claim = space.claim("job", int, ttl=timedelta(milliseconds=500))
    claim.extend(60)
    with pytest.raises(ts.Timeout):
        space.take("job", int, timeout=1)  # for longer than the ttl
    claim.extend()  # for as long as at first
    eventually(lambda: space.count(REST) == 1)


@pytest.mark.parametrize("fails", [False, True])
def test_a_claim_that_was_lost_during_its_block_is_reported_at_the_end(space, fails, eventually):
    space.put("job", 1)
    claim = space.claim("job", int)
    with pytest.raises((ts.ClaimLost, ZeroDivisionError)) as caught:
        with claim as (_, number):
            claim.put("result", number)
            claim.extend(0.005)
            other = lose(space, claim, eventually)
            if fails:
                assert 1 // 0
    assert caught.type is (ZeroDivisionError if fails else ts.ClaimLost)
    if fails:  # the exception of the block goes on, and tells of the claim
        told = "TUP-007: your claim on ('job', 1) (ttl 30 s) is lost: the claim ran out"
        assert caught.value.__notes__[0].startswith(told)
    assert space.count(REST) == 0  # K3, K4
    other.done()


def test_a_claim_waits_for_a_match_in_line_with_takes(space, eventually):
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(space.claim, "job", int)
        eventually(lambda: space.stat()["waiters"] == 1)
        second = pool.submit(space.take, "job", int)
        eventually(lambda: space.stat()["waiters"] == 2)
        space.put("job", 1)
        claim = first.result()
        assert claim.tuple == ("job", 1)  # T3
        assert space.stat()["waiters"] == 1
        claim.abort()
        assert second.result() == ("job", 1)


@forgets_a_claim
def test_a_claim_finds_what_a_take_would(space):
    space.put_all([("job", 1), ("job", 5), ("job", 3)])
    assert space.claim("job", F > 1).tuple == ("job", 5)
    assert space.claim("job", int, order=F.max(1)).tuple == ("job", 5)
    assert space.claim("job", int, order="lifo").tuple == ("job", 3)
    assert space.claim(like("stop") | like("job", int)).tuple == ("job", 1)  # M8
    assert space.claim("job", REST).tuple == ("job", 1)


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_a_claim_that_finds_nothing_times_out(space, timeout):
    space.put("job", "1")
    with pytest.raises(ts.Timeout, match=r"field 1 is str there, :int in the template"):
        space.claim("job", int, timeout=timeout)
    assert space.stat()["waiters"] == 0


@forgets_a_claim
def test_what_python_can_not_represent_stays_in_the_space_and_no_attempt_is_counted(url):
    class Local:
        def __reduce__(self):
            return print, ("unpickled",)

    with ts.connect(url) as space, ts.connect(url, objects="strict") as strict:
        space.put("job", Local())
        with pytest.raises(ts.NotEncodable):
            strict.claim("job", ...)
        assert space.claim("job", ..., timeout=0).attempt == 1  # V3


def test_a_claim_of_a_space_that_was_closed_gives_the_tuple_back(space, url):
    space.put("job", 1)
    with ts.connect(url) as other:
        with pytest.raises(ts.SpaceClosed), other.claim("job", int):
            other.close()
    assert space.take("job", int, timeout=10) == ("job", 1)


def test_threads_claim_each_tuple_once(space):
    space.put_all(("job", n) for n in range(400))

    def work(_):
        mine = []
        while True:
            try:
                with space.claim("job", int, timeout=0) as (_, number):
                    mine.append(number)
            except ts.Timeout:
                return mine

    with ThreadPoolExecutor(4) as pool:
        numbers = [number for mine in pool.map(work, range(4)) for number in mine]
    assert sorted(numbers) == list(range(400))  # T1
    space.wait_none(REST, timeout=0)


@forgets_a_claim
def test_a_claim_shows_what_it_is(space):
    space.put("job", 7)
    claim = space.claim("job", int)
    assert repr(claim) == f"<Claim ('job', 7), attempt 1, fence {claim.fence}>"


def test_the_figures_tell_of_claims(space):
    space.put_all([("job", 7), ("job", 8)])
    claim = space.claim("job", int)
    (shape,) = space.stat()["shapes"]
    (figures,) = shape["claims"]
    assert shape["count"] == 1
    assert (figures["pid"], figures["fence"]) == (os.getpid(), claim.fence)
    assert figures["attempt"] == 1
    assert 0 < figures["expires_in_s"] <= 30
    claim.done()
    assert space.stat()["shapes"][0]["claims"] == []


@forgets_a_claim
def test_a_block_does_not_begin_with_a_claim_that_is_lost(space):
    space.put("job", 7)
    claim = space.claim("job", int, ttl=0.01)
    assert space.take("job", int) == ("job", 7)  # K2
    with pytest.raises(ts.ClaimLost), claim:
        pytest.fail("its work is another's")  # K3


@forgets_a_claim
def test_a_claim_that_is_forgotten_in_a_cycle_is_aborted(space):
    space.put("job", [1])
    claim = space.claim("job", list)
    claim.tuple[1].append(claim)
    del claim
    gc.collect()
    assert space.claim("job", list, timeout=0).attempt == 2


def test_what_could_never_be_stored_is_refused_at_once_and_the_claim_goes_on(space):
    space.put("job", 1)
    claim = space.claim("job", int)
    with pytest.raises(ts.LimitExceeded, match="64"):
        claim.put(*range(65))
    with pytest.raises(ts.SpaceFull) as refused:
        claim.put(bytes(65 << 20))
    assert not refused.value.may_pass
    claim.put("done", 1)
    claim.done()
    assert space.read_all(REST) == [("done", 1)]


def test_a_lease_and_an_after_under_a_claim_count_from_done_k4(space, eventually):
    space.put("work")
    claim = space.claim("work")
    claim.put("short", lease=0.05)
    claim.put("later", after=0.05)
    claim.put("plain")
    with pytest.raises(ts.Timeout):
        space.take("short", timeout=0.1)  # for longer than the lease
    claim.done()
    assert space.take("later", timeout=60) == ("later",)
    eventually(lambda: space.count("short") == 0)
    assert space.take("plain") == ("plain",)


def test_the_only_put_under_a_claim_may_have_a_lease_k4(space, eventually):
    space.put("work")
    claim = space.claim("work")
    claim.put("short", lease=0.02)
    claim.done()
    eventually(lambda: space.count("short") == 0)
    space.put("work")
    claim = space.claim("work")
    claim.put("later", after=0.02, lease=3600)
    claim.done()
    assert space.take("later", timeout=60) == ("later",)
