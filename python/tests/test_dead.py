"""dead and requeue: tuples whose last attempt has failed (K5)."""

import pytest

import tupelo as ts
from tupelo import REST


def fail(space, *reasons, max_attempts):
    for reason in reasons:
        space.claim("job", int, timeout=0, max_attempts=max_attempts).abort(reason)


def test_after_the_last_attempt_a_tuple_is_dead_with_the_reasons(space):
    space.put("job", 7)
    fail(space, "no wheels", None, "no road", max_attempts=3)
    assert space.count(REST) == 0
    (letter,) = space.dead("job", int)
    assert letter == (("job", 7), 3, ["no wheels", "aborted, no reason given", "no road"])  # K5
    assert (letter.tuple, letter.attempts) == (("job", 7), 3)
    assert letter.reasons[-1] == "no road"
    assert isinstance(letter, ts.DeadLetter)


def test_before_its_last_attempt_a_tuple_is_alive(space):
    space.put("job", 7)
    fail(space, "once", "twice", max_attempts=3)
    assert space.dead(REST) == []
    claim = space.claim("job", int, timeout=0)
    assert claim.attempt == 3
    claim.done()


def test_without_a_limit_a_tuple_never_dies(space):
    space.put("job", 7)
    fail(space, *["again"] * 20, max_attempts=None)
    assert space.dead(REST) == []
    assert space.count("job", 7) == 1


@pytest.mark.parametrize(
    ("exception", "reason"),
    [
        (ValueError("no such customer"), "ValueError: no such customer"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (ts.Timeout("late"), "Timeout: TUP-003: late"),
    ],
    ids=repr,
)
def test_an_exception_is_the_reason(space, exception, reason):
    space.put("job", 7)
    with pytest.raises(type(exception)), space.claim("job", int, max_attempts=1):
        raise exception
    assert space.dead("job", int)[0].reasons == [reason]


def test_an_exception_without_a_text_is_known_by_its_class(space):
    class BrokenError(Exception):
        def __str__(self):
            raise RuntimeError

    space.put("job", 7)
    with pytest.raises(BrokenError), space.claim("job", int, max_attempts=1):
        raise BrokenError
    (letter,) = space.dead("job", int)
    assert letter.reasons[0].endswith("BrokenError")


def test_silence_is_a_reason_too(space, eventually):
    space.put("job", 7)
    claim = space.claim("job", int, ttl=0.005, max_attempts=1)
    eventually(lambda: len(space.dead("job", int)) == 1)
    assert space.dead("job", int)[0].reasons[0].endswith("did not renew its claim in time")
    with pytest.raises(ts.ClaimLost):
        claim.done()


def test_only_what_matches_is_listed_and_the_oldest_comes_first(space):
    space.put_all([("job", 1), ("job", 2), ("job", 3)])
    for n in (2, 3, 1):
        space.claim("job", n, max_attempts=1).abort()
    assert [letter.tuple for letter in space.dead("job", ...)] == [("job", n) for n in (1, 2, 3)]
    assert [letter.tuple for letter in space.dead("job", ts.F > 1)] == [("job", 2), ("job", 3)]
    assert space.dead("other", int) == []
    assert len(space.dead(REST)) == 3


def test_requeue_puts_what_matches_back_at_its_place_with_a_clean_slate(space):
    space.put_all([("job", 1), ("job", 2), ("job", 3)])
    for n in (1, 3):
        space.claim("job", n, max_attempts=1).abort("why")
    assert space.requeue("job", 1) == 1
    assert space.requeue("job", 1) == 0
    assert [letter.tuple for letter in space.dead(REST)] == [("job", 3)]
    claim = space.claim("job", int, max_attempts=1)
    assert (claim.tuple, claim.attempt) == (("job", 1), 1)  # K5
    claim.abort("again")
    assert space.dead("job", 1)[0].reasons == ["again"]
    assert space.requeue(REST) == 2
    assert space.take_all("job", int) == [("job", 1), ("job", 2), ("job", 3)]


def test_a_dead_tuple_is_not_waited_for(space):
    space.put("job", 1)
    fail(space, "why", max_attempts=1)
    space.wait_none(REST, timeout=0)
    assert space.put_if_absent("job", 2, unless=("job", int))
    (shape,) = space.stat()["shapes"]
    assert (shape["count"], shape["dead"]) == (1, 1)


def test_requeue_serves_who_waits(space, eventually):
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    space.put("job", 1)
    fail(space, "why", max_attempts=1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(space.take, "job", int)
        eventually(lambda: space.stat()["waiters"] == 1)
        assert space.requeue("job", int) == 1
        assert waiting.result() == ("job", 1)
