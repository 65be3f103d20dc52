"""take_all, read_all, take_many, count."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from forgetting import forgets_a_claim

import tupelo as ts
from tupelo import REST


def test_all_matches_of_one_moment(space):
    space.put_all([("job", 1), ("job", 2), ("other", 3)])
    assert space.read_all("job", int) == [("job", 1), ("job", 2)]  # O6
    assert space.take_all("job", int) == [("job", 1), ("job", 2)]
    assert space.take_all("job", int) == []
    assert space.read_all(REST) == [("other", 3)]


def test_a_limit_takes_the_oldest(space):
    space.put_all(("job", n) for n in range(5))
    assert space.read_all("job", int, limit=2) == [("job", 0), ("job", 1)]
    assert space.take_all("job", int, limit=2) == [("job", 0), ("job", 1)]
    assert space.take_all("job", int, limit=0) == []
    assert space.count("job", int) == 3


def test_take_many_takes_n_in_one_step(space):
    space.put_all(("squared", n, n * n) for n in range(4))
    assert space.take_many("squared", int, int, n=3) == [
        ("squared", 0, 0),
        ("squared", 1, 1),
        ("squared", 2, 4),
    ]
    assert space.count("squared", int, int) == 1


def test_take_many_is_content_with_at_least(space):
    space.put_all(("job", n) for n in range(3))
    assert len(space.take_many("job", int, n=10, at_least=2)) == 3
    assert space.take_many("job", int, n=10, at_least=0) == []


def test_take_many_waits_until_enough_are_there(space, eventually):
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(space.take_many, "job", int, n=3, timeout=60)
        eventually(lambda: space.stat()["waiters"] == 1)
        for number in range(3):
            assert not answer.done()
            space.put("job", number)
        assert answer.result() == [("job", 0), ("job", 1), ("job", 2)]
    assert space.stat()["waiters"] == 0


def test_a_timeout_of_take_many_says_how_many_there_were_and_removes_none(space):
    space.put_all(("squared", n) for n in range(999))
    with pytest.raises(ts.Timeout, match=r"999 of 1 000 tuples matched \(\"squared\", :int\)"):
        space.take_many("squared", int, n=1_000, timeout=0.01)
    assert space.count("squared", int) == 999  # T5


def test_counting_counts_matches_only(space):
    space.put_all([("a", 1), ("a", 1.0), ("a", True), ("b", 1)])
    assert space.count("a", int) == 1  # M3
    assert space.count("a", ...) == 3
    assert space.count(..., ...) == 4
    assert space.count() == 0


def test_a_hundred_thousand_tuples_go_in_and_out_at_once(space):
    numbers = range(100_000)
    assert space.put_all(("n", n) for n in numbers) == len(numbers)
    assert [n for _, n in space.take_all("n", int)] == list(numbers)


@pytest.mark.parametrize("limit", [None, 1_000])
def test_a_full_space_is_emptied_in_one_step(url, limit):
    with ts.connect(url, size="2M") as space:
        count = 0
        with pytest.raises(ts.SpaceFull):
            while True:
                space.put("job", count)
                count += 1
        taken = space.take_all("job", int, limit=limit)  # B1, O6
        assert taken == [("job", number) for number in range(limit or count)]
        assert space.count("job", int) == count - len(taken)


class Odd(int):
    """A number that can not be shown."""

    def __repr__(self):
        raise KeyboardInterrupt


@forgets_a_claim
def test_an_argument_is_shown_only_where_it_is_wrong(space):
    # Showing one runs code of its class, where Ctrl-C may strike.
    space.put_all([("job", n) for n in range(4)])
    assert len(space.read_all("job", int, limit=Odd(2))) == 2
    assert len(space.take_many("job", int, n=Odd(3), at_least=Odd(1))) == 3
    assert space.claim("job", int, max_attempts=Odd(3)).attempt == 1
    with pytest.raises(TypeError, match="limit is True: give how many"):
        space.take_all("job", int, limit=True)


def test_what_is_discarded_is_counted_and_gone_o6(space):
    space.put_all(("job", n) for n in range(5))
    assert space.discard("job", int, limit=2) == 2
    assert space.read_all("job", int) == [("job", 2), ("job", 3), ("job", 4)]
    assert space.discard("job", int, where="f[1] > 3") == 1
    assert space.discard(REST) == 2
    assert space.discard(REST) == 0
