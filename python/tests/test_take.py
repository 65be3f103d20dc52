"""take, read, try_take, try_read."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

import tupelo as ts
from tupelo import REST, F, _native, like


def test_take_removes_and_read_does_not(space):
    space.put("job", 17, b"resize")
    assert space.read("job", int, ...) == ("job", 17, b"resize")
    assert space.take("job", int, ...) == ("job", 17, b"resize")
    assert space.count(REST) == 0


def test_trying_answers_none_when_nothing_matches(space):
    assert space.try_take("job", int) is None  # O4
    assert space.try_read("job", int) is None
    space.put("job", "seventeen")
    assert space.try_take("job", int) is None
    assert space.try_read("job", str) == ("job", "seventeen")
    assert space.try_take("job", str) == ("job", "seventeen")


def test_the_oldest_goes_first(space):
    space.put_all(("job", n) for n in range(5))
    assert [space.take("job", int)[1] for _ in range(5)] == [0, 1, 2, 3, 4]  # T2


def test_of_several_shapes_the_oldest_goes_first(space):
    space.put_all([("job", 1), ("job", "one")])
    assert {space.take("job", ...)[1], space.take("job", ...)[1]} == {1, "one"}
    values = ["two", 2, 2.5, "three", b"x", 3, None, "four"]
    space.put_all(("job", value) for value in values)
    assert space.read("job", ...) == ("job", "two")
    assert space.take("job", ..., order="lifo") == ("job", "four")
    with space.claim("job", ...) as job:
        assert job == ("job", "two")
    assert space.take("job", F.in_([2, 2.5])) == ("job", 2)
    assert space.take("job", ..., where="f[0] == 'job'") == ("job", 2.5)
    assert space.take_all("job", ..., limit=1) == [("job", "three")]
    assert [space.take("job", ..., timeout=0)[1] for _ in range(3)] == [b"x", 3, None]  # T2


def test_no_shape_starves_while_others_are_put(space):
    space.put_all([("job", "old"), ("job", 0)])
    for number in range(1, 5):
        space.put("job", number)
        if space.take("job", ...) == ("job", "old"):
            return
    pytest.fail("the oldest of all was never taken")  # T2


def test_by_chance_goes_by_the_number_of_tuples_of_each_shape(space):
    space.put_all(("job", number) for number in range(9))
    space.put("job", "rare")
    drawn = [space.read("job", ..., order="random")[1] for _ in range(600)]
    assert 10 < drawn.count("rare") < 150  # T2


@pytest.mark.parametrize("verb", ["take", "read", "try_take", "try_read"])
@pytest.mark.parametrize(
    ("order", "answers"),
    [
        ("fifo", {2}),
        ("lifo", {1}),
        ("random", {1, 2, 3}),
        ("any", {1, 2, 3}),
        (F.max(1), {3}),
        (F.min(1), {1}),
    ],
    ids=str,
)
def test_the_order_can_be_chosen(space, verb, order, answers):
    space.put_all(("job", n) for n in (2, 3, 1))
    assert getattr(space, verb)("job", int, order=order)[1] in answers  # T2


def test_a_timeout_says_what_was_wanted_and_what_is_there(space):
    space.put("job", "17")
    with pytest.raises(ts.Timeout) as caught:
        space.take("job", int, timeout=0.01)
    message = str(caught.value)
    assert message.startswith('TUP-003: nothing matched ("job", :int) within 0.01 s in ')
    assert "field 1 is str there, :int in the template" in message
    assert caught.value.space == space.url
    assert caught.value.hint is not None
    assert space.read_all(REST) == [("job", "17")]  # T5


def test_timeout_is_the_builtin_one_too(space):
    with pytest.raises(TimeoutError):
        space.read("job", timeout=0)


@pytest.mark.parametrize("timeout", [0, 0.0, timedelta(0), timedelta(milliseconds=1), 0.001])
def test_a_timeout_is_seconds_or_a_timedelta(space, timeout):
    with pytest.raises(ts.Timeout):
        space.take("job", timeout=timeout)
    space.put("job")
    assert space.take("job", timeout=timeout) == ("job",)


@pytest.mark.parametrize("verb", ["take", "read"])
def test_a_blocked_call_gets_what_is_put_later(space, verb, eventually):
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(getattr(space, verb), "job", int, timeout=60)
        eventually(lambda: space.stat()["waiters"] == 1)
        space.put("job", "not this one")
        space.put("job", 17)
        assert answer.result() == ("job", 17)  # O3, T6
    assert space.count("job", int) == (0 if verb == "take" else 1)


def test_one_put_serves_every_reader_and_one_taker(space, eventually):
    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(space.read, "news", ...) for _ in range(3)]
        taker = pool.submit(space.take, "news", ...)
        eventually(lambda: space.stat()["waiters"] == 4)
        space.put("news", 1)
        assert [reader.result() for reader in readers] == [("news", 1)] * 3  # T3
        assert taker.result() == ("news", 1)
    assert space.count("news", ...) == 0


def test_each_tuple_is_taken_by_one_of_many_threads(space):
    space.put_all(("job", n) for n in range(2_000))

    def take_until_empty(_):
        taken = []
        while (found := space.try_take("job", int)) is not None:
            taken.append(found[1])
        return taken

    with ThreadPoolExecutor(4) as pool:
        taken = [n for part in pool.map(take_until_empty, range(4)) for n in part]
    assert sorted(taken) == list(range(2_000))  # T1


def test_a_template_of_alternatives_takes_exactly_one(space):
    space.put("stop")
    assert space.take(like("job", int) | like("stop")) == ("stop",)  # M8
    space.put("job", 1)
    space.put("stop")
    assert space.take(like("job", int) | like("stop")) in [("job", 1), ("stop",)]
    assert space.count(REST) == 1


def test_what_comes_back_is_as_it_was_put_even_where_an_actual_found_it(space):
    space.put("zero", -0.0)
    assert str(space.take("zero", 0.0)) == "('zero', -0.0)"  # V3: the bits are kept
    space.put("one", 1)
    assert type(space.take("one", 1)[1]) is int


def test_rest_stands_for_any_number_of_further_fields(space):
    space.put("log")
    space.put("log", 1, 2.0, None)
    assert space.count("log", REST) == 2  # M1
    assert space.count("log", int, REST) == 1
    assert space.count(REST) == 2


def test_more_fields_than_a_tuple_can_have_are_refused(space):
    with pytest.raises(ts.LimitExceeded, match="64") as caught:
        space.put(*range(65))
    assert caught.value.hint == "put some of them together in a list, which is one field"
    with pytest.raises(ts.TemplateError, match="65 fields are over the limit of 64"):
        space.take(*range(65))
    space.put(*range(64))
    assert space.take(*range(64)) == tuple(range(64))


def test_closing_ends_a_wait(space, eventually):
    with ThreadPoolExecutor(1) as pool, ts.connect(space.url) as second:
        blocked = pool.submit(space.take, "never")
        eventually(lambda: second.stat()["waiters"] == 1)
        space.close()
        with pytest.raises(ts.SpaceClosed):
            blocked.result()
        eventually(lambda: second.stat()["waiters"] == 0)


def test_an_order_goes_by_a_field_that_is_there(space):
    space.put_all([("n", 1), ("n", 2)])
    with space.transaction() as t:
        verbs = [space.take, space.read, space.try_take, space.try_read, space.claim]
        for verb in [*verbs, space.try_claim, t.take, t.read, t.try_take, t.try_read]:
            with pytest.raises(ts.TemplateError, match=r"goes by field 7, .* has 2 fields"):
                verb("n", int, order=F.max(7))
    assert space.take("n", REST, order=F.max(7)) == ("n", 1)
    assert space.take("n", int, order=F.max(1)) == ("n", 2)


def test_a_wait_that_ends_keeps_nothing_from_others_and_has_what_came_in_time(space):
    place = _native.waiter(space, "take", like("job", int))
    assert not place.end_wait()
    space.put("job", 1)
    assert place.finish_now() is None
    assert space.try_take("job", int) == ("job", 1)  # T5
    place = _native.waiter(space, "take", like("job", int))
    space.put("job", 2)
    assert place.end_wait()
    assert space.try_take("job", int) is None  # O9
    assert place.finish_now() == ("job", 2)


@pytest.mark.parametrize("timeout", [math.inf, 1e10, 10**400, timedelta(days=20_000)], ids=str)
def test_a_time_that_is_longer_than_anybody_waits_is_for_ever_o3(space, timeout):
    space.put("there")
    assert space.take("there", timeout=timeout) == ("there",)
    waiting = threading.Thread(target=lambda: space.take("later", timeout=timeout))
    waiting.start()
    space.put("later")
    waiting.join()
    space.wait_none("there", timeout=timeout)
