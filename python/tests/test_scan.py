"""scan."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import tupelo as ts
from tupelo import REST


def test_a_scan_sees_every_match_once(space):
    space.put_all(("job", n) for n in range(1_000))
    space.put("other")
    assert sorted(n for _, n in space.scan("job", int)) == list(range(1_000))  # O6
    assert space.count(REST) == 1_001


def test_what_is_there_throughout_comes_once_whatever_happens_meanwhile(space):
    space.put_all(("stays", n) for n in range(300))
    space.put_all(("goes", n) for n in range(300))
    seen = []
    for number, (name, n) in enumerate(space.scan(str, int)):
        seen.append((name, n))
        space.try_take("goes", int)
        if number < 300:
            space.put("comes", number)
    assert sorted(n for name, n in seen if name == "stays") == list(range(300))  # O6
    assert len(set(seen)) == len(seen)


def test_an_iterator_of_a_closed_space_says_so(space):
    space.put("job", 1)
    scan = space.scan("job", int)
    space.close()
    with pytest.raises(ts.SpaceClosed):
        next(scan)


def test_an_iterator_that_has_ended_stays_so(space):
    space.put("job", 1)
    scan = space.scan(..., ...)
    assert list(scan) == [("job", 1)]
    space.put("a shape", "that there was not")
    assert list(scan) == []
    space.close()
    assert list(scan) == []


def test_what_was_fetched_before_the_space_was_closed_is_not_given_after_it(space):
    space.put_all(("job", n) for n in range(3))
    scan = space.scan("job", int)
    next(scan)
    space.close()
    for _ in range(2):
        with pytest.raises(ts.SpaceClosed):
            next(scan)
    with ts.connect(space.url, create=False) as again:
        assert again.count("job", int) == 3


def test_threads_may_share_one_scan(space):
    space.put_all(("job", n) for n in range(1_000))
    scan = space.scan("job", int)

    def walk(_):
        seen = []
        while True:
            try:
                seen.append(next(scan)[1])
            except StopIteration:
                return seen
            except RuntimeError as busy:
                assert "another thread is in this iterator" in str(busy)  # noqa: PT017

    with ThreadPoolExecutor(4) as pool:
        seen = [n for part in pool.map(walk, range(4)) for n in part]
    assert sorted(seen) == list(range(1_000))
