"""put, put_all, put_if_absent."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import tupelo as ts
from tupelo import REST, like


def test_put_returns_nothing_and_the_tuple_is_there(space):
    assert space.put("job", 17, 3.5) is None
    assert space.read_all(REST) == [("job", 17, 3.5)]  # O2


def test_the_empty_tuple_is_a_tuple(space):
    space.put()
    assert space.count() == 1
    assert space.take(timeout=0) == ()


def test_duplicates_are_kept_and_counted(space):
    space.put("job")
    space.put("job")
    assert space.count("job") == 2


def test_the_space_keeps_a_copy(space):
    numbers = [1, 2]
    space.put("numbers", numbers)
    numbers.append(3)
    first = space.read("numbers", list)[1]
    first.append(4)
    assert space.read("numbers", list) == ("numbers", [1, 2])  # V2


def test_put_all_takes_any_iterable_and_says_how_many(space):
    assert space.put_all([]) == 0
    assert space.put_all(("square", n) for n in range(1_000)) == 1_000  # O5
    assert space.put_all({("square", -1): "a key is a tuple too"}) == 1
    assert space.count("square", int) == 1_001


def test_put_all_stores_nothing_if_one_tuple_can_not_be_stored(space):
    with pytest.raises(ts.NotEncodable, match=r"tuple 1, field 1 is the type <class 'int'>"):
        space.put_all([("job", 1), ("job", int)])
    assert space.count(REST) == 0  # O5


def test_put_all_stores_nothing_if_the_iterable_fails(space):
    def tuples():
        yield ("job", 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        space.put_all(tuples())
    assert space.count(REST) == 0


def test_put_all_of_mixed_tuples_keeps_every_field(space):
    tuples = [(), (1,), ("a", [1], b"b"), (None, 2**70, {"k": (1.5, "v")}), ("plain", 1, 2.0)]
    assert space.put_all(tuples) == 5
    assert sorted(space.take_all(REST), key=repr) == sorted(tuples, key=repr)


def test_put_if_absent_puts_once(space):
    assert space.put_if_absent("leader", 1, unless=("leader", int)) is True
    assert space.put_if_absent("leader", 2, unless=("leader", int)) is False  # O8
    assert space.read_all(REST) == [("leader", 1)]


def test_put_if_absent_compares_with_its_own_fields_by_default(space):
    assert space.put_if_absent("tag", 1)
    assert not space.put_if_absent("tag", 1)
    assert space.put_if_absent("tag", 2)


def test_put_if_absent_takes_a_template_too(space):
    assert not space.put_if_absent("a", unless=like("b") | like(REST)) or space.count("a") == 1
    assert not space.put_if_absent("c", unless=like("x") | like("a"))


def test_what_must_be_absent_may_be_a_single_tuple(space):
    assert space.put_if_absent("seen", 1, unless=((1, 2),))
    space.put_all([((1, 2),)])
    assert not space.put_if_absent("seen", 2, unless=((1, 2),))


def test_of_several_racers_exactly_one_puts(space):
    def race(number):
        return space.put_if_absent("winner", number, unless=("winner", int))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(race, range(200))) == 1  # O8
    assert space.count("winner", int) == 1


def test_a_full_space_refuses_a_put_and_keeps_what_it_has(url):
    with ts.connect(url, tuples_max=2) as space:
        space.put("job", 1)
        space.put("job", 2)
        with pytest.raises(ts.SpaceFull) as caught:
            space.put("job", 3)
        assert caught.value.code == "TUP-005"
        assert caught.value.space == url
        told = "is full: 2 tuples, and it was created for 2; 100 % of them are (str, int)"
        assert told in str(caught.value)
        assert space.count("job", int) == 2  # B1


def test_a_space_that_is_full_of_what_nobody_can_take_says_so(url):
    with ts.connect(url, tuples_max=3) as space:
        space.put("job", 1)
        space.put("job", 2)
        space.put("later", after=60)
        with space.claim("job", 1), pytest.raises(ts.SpaceFull) as caught:
            space.put("job", 3)
        assert "is full: 3 tuples, and it was created for 3; " in str(caught.value)
        assert "; 2 of them nobody can take now (claimed, dead, in a " in str(caught.value)


def test_put_waits_for_room_when_given_time(url, eventually):
    with ts.connect(url, tuples_max=1) as space, ThreadPoolExecutor(1) as pool:
        space.put("job", 1)
        late = pool.submit(space.put, "job", 2, timeout=60)
        eventually(lambda: space.stat()["waiters"] == 1)
        assert space.take("job", int) == ("job", 1)
        assert late.result() is None
        assert space.take("job", int) == ("job", 2)  # B1


def test_put_on_a_space_that_stays_full_is_refused_when_the_time_is_over(url):
    with ts.connect(url, tuples_max=1) as space:
        space.put("job", 1)
        with pytest.raises(ts.SpaceFull):
            space.put("job", 2, timeout=0.01)
        assert space.read_all(REST) == [("job", 1)]


def test_a_value_larger_than_the_space_is_refused(url):
    with ts.connect(url, size="1M") as space:
        with pytest.raises(ts.SpaceFull):
            space.put("blob", bytes(20_000_000))
        space.put("blob", bytes(100_000))
        assert space.take("blob", bytes) == ("blob", bytes(100_000))
