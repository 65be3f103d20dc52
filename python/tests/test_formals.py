"""F: conditions on one field, and the order of a take."""

import pickle
from typing import Any

import pytest
from console import run

import tupelo as ts
from tupelo import REST, F, like

NUMBERS = [-2, 0, 1, 2, 2.5, 3, 2**70]


@pytest.fixture
def numbers(space):
    space.put_all(("n", n) for n in NUMBERS)
    space.put_all([("n", "2"), ("n", True), ("n", None), ("n", b"2"), ("n", float("nan"))])
    return space


def matching(space, formal):
    return [n for _, n in sorted(space.read_all("n", formal), key=lambda fields: str(fields[1]))]


@pytest.mark.parametrize(
    ("formal", "expected"),
    [
        (F > 2, [2.5, 3, 2**70]),
        (F >= 2, [2, 2.5, 3, 2**70]),
        (F < 1, [-2, 0]),
        (F <= 1, [-2, 0, 1]),
        (F.between(1, 3), [1, 2, 2.5, 3]),
        (F.between(1, 3, ends="()"), [2, 2.5]),
        (F.between(1, 3, ends="[)"), [1, 2, 2.5]),
        (F.between(1, 3, ends="(]"), [2, 2.5, 3]),
        (F.between(1.5, 2.5), [2, 2.5]),
        (F > 2**69, [2**70]),
        (F == 2, [2]),
        (F == 2.5, [2.5]),
        (F.in_({1, 2.5, "2"}), [1, "2", 2.5]),
        (F.in_([]) | (F < 0), [-2]),
        (F.number & (F < 0), [-2]),
        ((F > 2) & (F < 3), [2.5]),
        ((F < 0) | (F > 2.9), [-2, 3, 2**70]),
        ((F < 0) | str, [-2, "2"]),
        (str | (F < 0), [-2, "2"]),
        ((F > 2) & float, [2.5]),
        (float & (F > 2), [2.5]),
        ((F > 2**69) | None, [2**70, None]),
        (~(F >= -5) & F.number, [float("nan")]),
    ],
    ids=repr,
)
def test_a_condition_matches_what_it_says(numbers, formal, expected):
    found = matching(numbers, formal)  # M5
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


IMPOSSIBLE = [
    F.in_([]),
    F.between(9, 3),
    F.between(3, 3, ends="[)"),
    F.between("b", "a"),
    (F > 3) & (F < 2),
    (F > 3) & str,
    F.in_({1, 2}) & (F > 2),
    (F == 7) & (F > 8),
    F.in_([]) | F.between(9, 3),
]


@pytest.mark.parametrize("formal", IMPOSSIBLE, ids=repr)
def test_a_condition_that_no_value_matches_is_refused_at_the_call(space, formal):
    """M5: it would wait for ever. In every verb with a template, and where one is made."""
    calls = [
        lambda: space.take("n", formal),
        lambda: space.try_read("n", formal),
        lambda: space.count("n", formal, REST),
        lambda: space.claim("n", formal, timeout=0),
        lambda: space.take_future("n", formal),
        lambda: space.subscribe("n", formal),
        lambda: space.consume("n", formal),
        lambda: space.wait_none("n", formal),
        lambda: space.put_if_absent("n", 1, unless=("n", formal)),
        lambda: like("n", formal),
    ]
    for call in calls:
        with pytest.raises(ts.TemplateError, match=r"field 1 is .*, which no value matches"):
            call()
    assert space.stat()["waiters"] == 0


def test_the_command_line_refuses_what_no_value_matches(shm, shm_url):
    shm.put("n", 5)
    refused = run("take", shm_url, "n", "9..3")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "TUP-001: no value matches 9..3, which is asked of field 1" in refused.stderr
    assert run("take", shm_url, "n", "3..9", "--try").returncode == 0


def test_unequal_matches_every_field_that_equal_does_not(numbers):
    assert numbers.count("n", F == 2) == 1
    assert numbers.count("n", F != 2) == numbers.count("n", ...) - 1
    assert numbers.count("n", ~(F == 2)) == numbers.count("n", ...) - 1


def test_texts_and_bytes_have_an_order_of_their_own(space):
    space.put_all([("n", "a"), ("n", "b"), ("n", "ab"), ("n", b"a"), ("n", b"\xff")])
    assert matching(space, F >= "ab") == ["ab", "b"]
    assert matching(space, F >= b"b") == [b"\xff"]
    assert matching(space, F.prefix("a")) == ["a", "ab"]
    assert matching(space, F.prefix(b"\xff")) == [b"\xff"]


def test_a_glob_matches_whole_texts(space):
    names = ["img/a.png", "img/b/c.png", "img/a.jpg", "doc/a.png"]
    space.put_all(("file", name) for name in names)
    pngs = F.glob("img/*.png")
    assert space.read_all("file", pngs) == [("file", "img/a.png"), ("file", "img/b/c.png")]
    assert space.read_all("file", pngs & (F != "img/a.png")) == [("file", "img/b/c.png")]
    assert space.count("file", F.glob("img/[ab].???")) == 2


def test_number_is_int_or_float_and_not_bool(numbers):
    assert numbers.count("n", F.number) == len(NUMBERS) + 1  # and nan


@pytest.mark.parametrize(
    "condition",
    [
        lambda: 0 < F < 10,
        lambda: F > 3 and F < 9,
        lambda: bool(F),
        lambda: bool(F > 3),
        lambda: not F,
        lambda: 3 if F == 3 else 4,
    ],
    ids=["chain", "and", "bool of F", "bool", "not", "if"],
)
def test_a_condition_has_no_truth_value(condition):
    with pytest.raises(
        ts.TemplateError, match=r"write F.between\(0, 10, ends=\"\(\)\"\)"
    ) as caught:
        condition()
    assert caught.value.code == "TUP-001"
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: F > [1], ts.TemplateError, "list has no order here"),
        (lambda: F < None, ts.TemplateError, "null has no order here"),
        (lambda: F.between(1, "2"), ts.TemplateError, "a range from int to str can not match"),
        (lambda: F.between(float("nan"), 1), ts.TemplateError, "a bound can not be nan"),
        (lambda: F.between(1, 2, ends="<>"), ValueError, r"ends is \"<>\": give"),
        (lambda: F.glob("[a"), ts.TemplateError, "is never closed"),
        (lambda: F.prefix(3), ts.TemplateError, "a prefix is text or bytes, not int"),
        (lambda: F.in_(3), TypeError, "values has the type int: give an iterable of values"),
        (lambda: F.glob(3), TypeError, "pattern has the type int: give a str"),
        (lambda: F.between(1, 2, ends=3), TypeError, "ends has the type int: give a str"),
        (lambda: object() == F, ts.TemplateError, "the value to compare with is a object"),
        (lambda: F.in_([1, int]), ts.TemplateError, "the value to compare with is the type"),
        (lambda: (F > 3) & object(), ts.NotEncodable, "the operand is a object"),
        (lambda: (F > 3) | ts.REST, ts.TemplateError, "the operand is REST"),
        (lambda: F.max(-1), ValueError, "field -1 does not exist: .* a field, from 0 to 63"),
        (lambda: F.min(64), ValueError, "field 64 does not exist: .* a field, from 0 to 63"),
        (lambda: F.max(2**70), ValueError, "field 9223372036854775807 does not exist"),
        (lambda: F.max(True), TypeError, "field is True: give the number of a field"),
        (lambda: F.max(b"1"), TypeError, "field is b'1': give the number of a field, from 0 on"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_when_it_is_made(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_condition_nested_too_deeply_is_refused():
    def nested(condition, levels):
        return condition if levels == 0 else ~nested(condition, levels - 1)

    assert nested(F > 3, 100) is not None
    with pytest.raises(ts.TemplateError, match="nested over 128 levels"):
        nested(F > 3, 200)


def test_conditions_are_values():
    assert (F > 3) == (F > 3)
    assert (F > 3) != (F > 4)
    assert (F > 3) != 3
    assert len({F > 3, F > 3, F > 4}) == 2
    assert repr(F > 3) == "<Formal > 3>"
    assert repr(F) == "F"
    assert repr(ts.REST) == "REST"
    assert repr(F.max(2)) == "F.max(2)"
    assert repr(F.min("id")) == 'F.min("id")'
    for condition in (F > 3, F.glob("a*") & (F != "ab"), F.in_({1, "x"}), F == 2.5):
        assert pickle.loads(pickle.dumps(condition)) == condition
    assert pickle.loads(pickle.dumps(F)) is F
    assert pickle.loads(pickle.dumps(ts.REST)) is ts.REST


def test_a_condition_of_whatever_size_and_depth_comes_back_from_a_pickle():
    deep: list[Any] = []
    for _ in range(127):
        deep = [deep]
    for condition in (F.in_(range(200_000)), ~F.in_([deep]), deep == F, F.number, F.opaque | None):
        assert pickle.loads(pickle.dumps(condition)) == condition


def test_formals_can_be_subscripted_in_annotations():
    assert repr(ts.Formal[int]) == "tupelo.Formal[int]"
    assert repr(ts.Template[tuple[str, int]]) == "tupelo.Template[tuple[str, int]]"


class Third:
    def __index__(self):
        return 2


def test_an_order_takes_whatever_is_a_whole_number():
    assert repr(F.min(Third())) == "F.min(2)"
    with pytest.raises(TypeError, match=r"field is 1\.0: give the number of a field"):
        F.max(1.0)
