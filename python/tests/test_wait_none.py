"""wait_none."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import tupelo as ts


def test_nothing_to_wait_for(space):
    space.put("other")
    assert space.wait_none("job", ...) is None  # O9


def test_it_returns_when_the_last_match_is_gone(space, eventually):
    space.put_all(("job", n) for n in range(3))
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(space.wait_none, "job", int, timeout=60)
        eventually(lambda: space.stat()["waiters"] == 1)
        for _ in range(3):
            assert not answer.done()
            space.take("job", int)
        assert answer.result() is None  # T6


def test_a_timeout_says_how_many_are_left(space):
    space.put_all(("job", n) for n in range(3))
    with pytest.raises(
        ts.Timeout, match=r"\(\"job\", :int\) still matched after 0\.01 s"
    ) as caught:
        space.wait_none("job", int, timeout=0.01)
    assert caught.value.hint == "3 of them are there now"
    assert space.count("job", int) == 3


def test_a_timeout_says_in_whose_hands_the_last_one_is(space):
    space.put("job", 7)
    with space.claim("job", int):
        with pytest.raises(ts.Timeout) as caught:
            space.wait_none("job", int, timeout=0.01)
        assert "is claimed by process" in caught.value.hint  # O9
    space.wait_none("job", int, timeout=0)


def test_a_timeout_of_many_does_not_count_what_a_transaction_has_read(space):
    space.put_all(("job", n) for n in range(3))
    with space.transaction() as t:
        t.read("job", 1)
        with pytest.raises(ts.Timeout, match="2 of 3 tuples matched") as caught:
            space.take_many("job", int, n=3, timeout=0.01)
        assert "1 of which was read by an open transaction" in caught.value.hint  # X3
    assert len(space.take_many("job", int, n=3)) == 3
