"""swap and try_swap."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import tupelo as ts
from tupelo import REST, like


def test_swap_replaces_one_match_and_returns_the_old_one(space):
    space.put("counter", 1)
    assert space.swap("counter", int, to=("counter", 2)) == ("counter", 1)  # O8
    assert space.try_swap("counter", int, to=("counter", 3)) == ("counter", 2)
    assert space.read_all(REST) == [("counter", 3)]


def test_try_swap_without_a_match_changes_nothing(space):
    assert space.try_swap("counter", int, to=("counter", 1)) is None
    assert space.count(REST) == 0


def test_swap_may_change_the_shape(space):
    space.put("state", "idle")
    assert space.swap(like("state", str), to=("state", "busy", 3.5, [1])) == ("state", "idle")
    assert space.read_all(REST) == [("state", "busy", 3.5, [1])]


def test_the_new_tuple_may_hold_a_single_tuple(space):
    space.put("state")
    assert space.swap("state", to=((1, 2),)) == ("state",)
    assert space.take(tuple) == ((1, 2),)


def test_swap_waits_for_a_match(space, eventually):
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(space.swap, "state", str, to=("state", "new"), timeout=60)
        eventually(lambda: space.stat()["waiters"] == 1)
        space.put("state", "old")
        assert answer.result() == ("state", "old")
    assert space.read_all(REST) == [("state", "new")]


def test_a_swap_that_times_out_changes_nothing(space):
    space.put("state", 1)
    with pytest.raises(ts.Timeout, match=r"\(\"state\", :str\) within 0.01 s"):
        space.swap("state", str, to=("state", "new"), timeout=0.01)
    assert space.read_all(REST) == [("state", 1)]  # T5


def test_no_increment_is_lost_among_threads_o1_o8(space):
    space.put("counter", 0)

    def increment(_):
        while True:
            _, old = space.read("counter", int)
            if space.try_swap("counter", old, to=("counter", old + 1)) is not None:
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(increment, range(400)))
    assert space.read_all(REST) == [("counter", 400)]


@pytest.mark.parametrize("verb", ["swap", "try_swap"])
def test_the_new_tuple_must_be_a_tuple_that_can_be_stored(space, verb):
    space.put("state", 1)
    swap = getattr(space, verb)
    with pytest.raises(TypeError, match=rf"{verb}\(\) needs to, the new tuple"):
        swap("state", int)
    with pytest.raises(TypeError, match="to has the type list"):
        swap("state", int, to=["state", 2])
    with pytest.raises(ts.NotEncodable, match="field 1 is the type <class 'int'>"):
        swap("state", int, to=("state", int))
    assert space.read_all(REST) == [("state", 1)]
