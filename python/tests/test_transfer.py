"""move_to and copy_to."""

import pytest

import tupelo as ts
from tupelo import REST, F


@pytest.fixture
def other(url_beside):
    with ts.connect(url_beside, size="64M") as other:
        yield other


def test_moving_takes_from_here_and_puts_there(space, other):
    space.put_all(("job", n) for n in range(5))
    other.put("job", 5)
    assert space.move_to(other, "job", F >= 2) == 3  # O7
    assert space.read_all(REST) == [("job", 0), ("job", 1)]
    assert other.read_all(REST) == [("job", 5), ("job", 2), ("job", 3), ("job", 4)]


def test_copying_leaves_them_here(space, other):
    space.put_all(("job", n, [n]) for n in range(3))
    assert space.copy_to(other, "job", int, ...) == 3  # O7
    assert space.read_all(REST) == other.read_all(REST) == [("job", n, [n]) for n in range(3)]


def test_one_end_may_be_private_memory_and_the_other_shared_o7(new_url):
    with ts.connect(new_url("mem"), size="64M") as here, ts.connect(new_url("shm")) as there:
        here.put_all(("job", n) for n in range(3))
        assert here.copy_to(there, "job", 0) == 1
        assert here.move_to(there, "job", F > 0) == 2
        assert here.read_all(REST) == [("job", 0)]
        assert there.move_to(here, "job", int) == 3
        assert here.read_all(REST) == [("job", 0), ("job", 0), ("job", 1), ("job", 2)]
        assert there.count(REST) == 0


def test_nothing_to_transfer(space, other):
    assert space.move_to(other, "job", int) == 0
    assert space.copy_to(other, "job", int) == 0


@pytest.mark.parametrize("verb", ["move_to", "copy_to"])
def test_the_first_argument_is_the_other_space(space, verb):
    with pytest.raises(TypeError, match=rf"{verb}\(\) begins with the other space"):
        getattr(space, verb)("job", int)
    with pytest.raises(TypeError, match=rf"{verb}\(\) begins with the other space"):
        getattr(space, verb)()


def test_a_refused_transfer_changes_neither(new_url):
    with ts.connect(new_url("mem")) as here, ts.connect(new_url("mem"), tuples_max=1) as there:
        here.put_all([("job", 1), ("job", 2)])
        with pytest.raises(ts.SpaceFull):
            here.move_to(there, "job", int)
        assert here.count("job", int) == 2
        assert there.count(REST) == 0
