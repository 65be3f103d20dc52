"""What has failed in a `map`: raised in its place, or returned there; nothing is ever left out."""

import asyncio
import itertools

import calls
import pytest

import tupelo as ts
from tupelo import REST
from tupelo.aio.batteries import Pool as AioPool
from tupelo.batteries import Failure, Pool


def test_results_stand_at_the_places_of_their_values_up_to_what_has_failed(space):
    """As with `concurrent.futures`: pairs with the values are never shifted."""
    with Pool(space.url, workers=2) as pool:
        results = pool.map(calls.half_of_even, [2, 4, 3, 6])
        pairs = []
        with pytest.raises(ts.RemoteError, match=r"half_of_even\(3\) failed") as caught:
            for pair in zip([2, 4, 3, 6], results, strict=True):
                pairs.append(pair)  # noqa: PERF402 - those before it count
        assert pairs == [(2, 1), (4, 2)]
        assert isinstance(caught.value.__cause__, ValueError)
        assert list(results) == []  # it is over
        assert list(pool.map(calls.double, [1])) == [2]  # and the pool goes on
    assert space.count(REST) == 0


def test_what_was_raised_takes_back_the_tasks_that_nobody_has_begun(space):
    with Pool(space.url, workers=1) as pool:
        with pytest.raises(ts.RemoteError, match=r"half_of_even\(1\) failed"):
            list(pool.map(calls.half_of_even, itertools.count()))
        assert pool.failures[0].args == (1,)
    assert space.count(REST) == 0


def test_exceptions_are_returned_in_place_of_results_if_asked_for(space):
    with Pool(space.url, workers=2, retries=2) as pool:
        results = list(pool.map(calls.half_of_even, range(6), return_exceptions=True))
        failures = pool.failures
    assert results[::2] == [0, 1, 2]
    assert sorted(failure.args for failure in failures) == [(1,), (3,), (5,)]
    assert {failure.attempts for failure in failures} == {3}
    assert {id(failure.error) for failure in failures} == set(map(id, results[1::2]))
    for number, error in zip((1, 3, 5), results[1::2], strict=True):
        assert isinstance(error, ts.RemoteError)
        assert f"half_of_even({number}) failed" in str(error)
        assert "attempt 3 of 3" in str(error)
        assert isinstance(error.__cause__, ValueError)
    assert isinstance(failures[0], Failure)
    assert space.count(REST) == 0


def test_the_fastest_first_come_with_their_exceptions_too(space):
    with Pool(space.url, workers=2) as pool:
        halves = pool.map(calls.half_of_even, range(6), as_completed=True, return_exceptions=True)
        kinds = [type(half).__name__ for half in halves]
    assert sorted(kinds) == ["RemoteError"] * 3 + ["int"] * 3


def test_the_fastest_first_hand_out_what_is_done_before_they_raise(space):
    with Pool(space.url, workers=1) as pool:
        results = pool.map(calls.half_of_even, [0, 2, 1], as_completed=True)
        got = []
        with pytest.raises(ts.RemoteError, match=r"half_of_even\(1\) failed"):
            got.extend(results)
    assert got == [0, 1]


@pytest.mark.parametrize("looks", [False, True])
def test_looking_at_failures_changes_nothing(space, looks):
    with pytest.raises(ts.RemoteError, match=r"half_of_even\(3\) failed"):
        with Pool(space.url, workers=1) as pool:
            results = pool.map(calls.half_of_even, [2, 0, 3])
            assert next(results) == 1
            pool.submit(calls.double, 1).result(60)  # behind all of them
            if looks:
                assert pool.failures == pool.failures
    assert [failure.args for failure in pool.failures] == [(3,)]


def test_an_exception_that_was_raised_is_not_raised_again_at_the_end(space):
    with Pool(space.url, workers=1) as pool:
        with pytest.raises(ts.RemoteError):
            list(pool.map(calls.half_of_even, [1, 3]))


def test_asyncio_raises_and_returns_them_in_the_same_places(space):
    async def main():
        async with AioPool(space.url, workers=2) as pool:
            got = []
            with pytest.raises(ts.RemoteError, match=r"half_of_even\(3\) failed"):
                async for half in pool.map(calls.half_of_even, [2, 4, 3, 6]):
                    got.append(half)  # noqa: PERF401 - those before it count
            assert got == [1, 2]
            results = pool.map(calls.half_of_even, range(4), return_exceptions=True)
            kinds = [type(half).__name__ async for half in results]
            assert kinds == ["int", "RemoteError", "int", "RemoteError"]
            assert pool.failures[0].args == (3,)

    asyncio.run(main())
    assert space.count(REST) == 0
