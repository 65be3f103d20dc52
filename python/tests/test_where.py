"""Conditions over a whole tuple (rule M9)."""

import asyncio
import threading
from dataclasses import dataclass

import pytest

import tupelo as ts
import tupelo.aio
from tupelo import like


@dataclass
class Order:
    id: int
    wanted: int = 0
    there: int = 0


EVEN = "f[1] % 2 == 0"


def jobs(space, count=6):
    space.put_all(("job", n) for n in range(1, count + 1))


def test_every_verb_takes_a_condition_m9(space, url, new_url):
    jobs(space)
    assert space.try_read("job", int, where=EVEN) == ("job", 2)
    assert space.read("job", int, where=EVEN, timeout=0) == ("job", 2)
    assert space.try_take("job", int, where=EVEN) == ("job", 2)
    assert space.take("job", int, where=EVEN, order="lifo") == ("job", 6)
    assert space.count("job", int, where="f[1] > 3") == 2
    assert space.read_all("job", int, where="f[1] > 3") == [("job", 4), ("job", 5)]
    assert space.take_all("job", int, where="f[1] > 3", limit=1) == [("job", 4)]
    assert list(space.scan("job", int, where="f[1] != 3")) == [("job", 1), ("job", 5)]
    assert space.take_many("job", int, n=1, where="f[1] == 5", timeout=0) == [("job", 5)]
    assert space.swap("job", int, to=("job", 8), where="f[1] == 3", timeout=0) == ("job", 3)
    assert space.try_swap("job", int, to=("job", 9), where="f[1] == 3") is None
    assert not space.put_if_absent("job", 7, unless=(like("job", int, where="f[1] > 7"),))
    space.wait_none("job", int, where="f[1] > 8", timeout=0)
    with ts.connect(new_url(url.partition(":")[0])) as other:
        assert space.copy_to(other, "job", int, where="f[1] > 7") == 1
        assert space.move_to(other, "job", int, where="f[1] == 1") == 1
        assert sorted(other.take_all("job", int)) == [("job", 1), ("job", 8)]
    with space.claim("job", int, where="f[1] == 8", timeout=0) as tuple_:
        assert tuple_ == ("job", 8)
    assert space.explain("job", int, where="f[1] == 9").matches == 0


def test_a_claim_that_fails_is_dead_by_its_condition_m9_k5(space):
    jobs(space, 2)
    for n in (1, 2):
        space.claim("job", n, max_attempts=1).abort("no")
    assert [one.tuple for one in space.dead("job", int, where=EVEN)] == [("job", 2)]
    assert space.requeue("job", int, where=EVEN) == 1
    assert space.take("job", int, timeout=0) == ("job", 2)


def test_a_waiting_call_gets_the_first_tuple_that_fulfils_its_condition_m9_o3(space):
    got = []
    waiting = [
        threading.Thread(target=lambda: got.append(space.take("job", int, where=EVEN))),
        threading.Thread(target=lambda: got.append(space.read("job", ..., where="f[1] == 5"))),
    ]
    for thread in waiting:
        thread.start()
    for n in (1, 3, 5, 4):
        space.put("job", n)
    for thread in waiting:
        thread.join()
    assert sorted(got) == [("job", 4), ("job", 5)]
    assert space.take_all("job", int) == [("job", 1), ("job", 3), ("job", 5)]


def test_a_timeout_says_that_the_condition_is_not_true_of_what_fits_m9(space):
    jobs(space, 3)
    with pytest.raises(ts.Timeout, match=r'where "f\[1\] > 9"') as caught:
        space.take("job", int, where="f[1] > 9", timeout=0.01)
    assert "3 tuples fit the fields, of which the condition (where) is not true" in str(
        caught.value
    )
    assert space.count("job", int) == 3


def test_futures_and_consume_take_a_condition_m9(space):
    later = space.take_future("job", int, where=EVEN)
    jobs(space, 3)
    assert later.result(timeout=30) == ("job", 2)
    assert space.read_future("job", int, where="f[1] > 2").result(timeout=30) == ("job", 3)
    space.finish("job", int, where="f[1] > 1")
    assert list(space.consume("job", int, where="f[1] > 1")) == [("job", 3)]
    assert space.take_all("job", int) == [("job", 1)]


def test_tasks_wait_with_a_condition_and_cancelling_loses_nothing_m9_t5(url):
    async def main():
        async with tupelo.aio.connect(url) as space:
            taken = asyncio.create_task(space.take("job", int, where=EVEN))
            gone = asyncio.create_task(space.take("job", int, where="f[1] == 3"))
            await asyncio.sleep(0)
            gone.cancel()
            for n in (1, 3, 4):
                await space.put("job", n)
            assert await taken == ("job", 4)
            with pytest.raises(asyncio.CancelledError):
                await gone
            async with space.claim("job", int, where="f[1] == 3", timeout=5) as claimed:
                assert claimed == ("job", 3)
            assert await space.count("job", int, where="f[1] == 1") == 1
            with pytest.raises(TypeError, match='no keyword argument "wear"; did you mean "where"'):
                await space.take("job", int, wear=EVEN)

    asyncio.run(main())


def test_the_fields_of_an_entry_are_names_m7_m9(space):
    space.put_all([Order(1, wanted=3, there=9), Order(2, wanted=7, there=2)])
    assert space.take(Order, where="there < wanted") == Order(2, 7, 2)
    assert space.take(Order, id=1, where="there >= wanted", timeout=0) == Order(1, 3, 9)
    why = r'expected a field of Order \(id, there, wanted\) .*; did you mean "there"\?'
    with pytest.raises(ts.TemplateError, match=why):
        space.take(Order, where="their < wanted")
    with pytest.raises(ts.TemplateError, match="expected a field of Order"):
        like(Order, where="f[0] == 1")


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("f[1] +", "expected a value, such as .* at character 7, found the end"),
        ("f[1] = 2", "expected a CEL expression, .* at character 6"),
        ("id == 2", "expected `f`, the tuple, as in f.0. at character 1, .*; only entries have"),
        ("0 < f[1] < 10", r"expected && .* at character 10, .*; write `0 < f\[1\] && f\[1\] < 10`"),
        ("f[1] == None", "expected `null` at character 9, found `None`"),
        ("f[-1] == 2", r"expected an index from 0 .*; the last field is f\[size\(f\) - 1\]"),
        ("matches(f[0], 'j')", "expected one of the functions size, startsWith, .* at character 8"),
        ("f.exists(x, x == 1)", "expected no loop: .* at character 9"),
        ("f[1] + 1", "expected what is true or false instead of a number"),
        ("f[1] == " + "1 + " * 60 + "1", "expected at most 48 levels of nesting"),
        ("f[1] == '" + "x" * 3000 + "'", "expected at most 2048 bytes instead of 3010"),
        (7, "where is 7, which is no text"),
        (lambda t: t[1] > 3, "where is .*lambda.*, which is no text"),
    ],
)
def test_a_condition_that_can_not_be_is_refused_with_its_place_m9(space, condition, why):
    jobs(space, 1)
    for verb in (space.try_take, space.count, space.scan, like):
        with pytest.raises(ts.TemplateError, match=why):
            verb("job", int, where=condition)
    assert space.count("job", int) == 1


def test_a_tuple_without_an_answer_is_no_match_and_counted_m9(space):
    space.put_all([("job", "x"), ("job", 0), ("job", 5)])
    before = space.stat()["where_errors"]
    assert space.take("job", ..., where="10 / f[1] == 2", timeout=0) == ("job", 5)
    assert space.stat()["where_errors"] == before + 2
    assert space.count("job", ..., where="f[2] == 1") == 0
    assert space.stat()["where_errors"] == before + 4


def test_a_template_keeps_its_condition_m9(space):
    template = like("job", int, where=EVEN) | like("stop")
    assert str(template) == '("job", :int) where "f[1] % 2 == 0" | ("stop")'
    assert ts.parse(str(template)) == template
    assert hash(ts.parse(str(template))) == hash(template)
    jobs(space, 3)
    assert space.take_all(template, where="size(f) == 1 || f[1] < 3") == [("job", 2)]
    assert like("job", int, where=None) == like("job", int)


def test_none_is_no_condition_and_put_has_none(space):
    space.put("job", 1)
    assert space.take("job", int, where=None) == ("job", 1)
    with pytest.raises(TypeError, match=r"put\(\) has no keyword argument \"where\""):
        space.put("job", 1, where=EVEN)


def test_of_many_takers_each_tuple_goes_to_one_t1_m9(space):
    count, workers = 600, 4
    taken = []

    def take(rest):
        while (got := space.try_take("job", int, where=f"f[1] % 2 == {rest}")) is not None:
            taken.append(got[1])

    jobs(space, count)
    threads = [threading.Thread(target=take, args=(number % 2,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, count + 1))


def test_a_transaction_takes_a_condition_m9_x2(space):
    jobs(space, 4)
    with space.transaction() as t:
        assert t.take("job", int, where="f[1] == 2") == ("job", 2)
        assert t.read("job", int, where="f[1] > 2") == ("job", 3)
        assert t.try_take("job", int, where="f[1] == 3") == ("job", 3)
        t.put("job", 9)
        assert t.try_take("job", int, where="f[1] == 9") == ("job", 9)
        assert space.try_take("job", int, where="f[1] == 3") is None
    assert space.take_all("job", int) == [("job", 1), ("job", 4)]
