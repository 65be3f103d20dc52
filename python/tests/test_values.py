"""Every kind of value goes in and comes back as it was (V1 to V4), or is refused with advice."""

import enum
import math
import re
import struct
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Optional, Union
from uuid import UUID

import pytest

import tupelo as ts
from tupelo import REST, F, like
from tupelo._native import parse_tuple, put_text

# The older spelling, which is an object of another class.
OLD_OPTIONAL = Optional[int]  # noqa: UP045
OLD_UNION = Union[int, str, float]  # noqa: UP007

EAST = timezone(timedelta(hours=5, minutes=30))

VALUES = {
    type(None): [None],
    bool: [True, False],
    int: [0, -1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, -(2**200), 10**300],
    float: [0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324, 1.7976931348623157e308],
    str: ["", "job", "grün", "日本", "\U0001f600", "a\0b", "x" * 100_000],
    bytes: [b"", b"\0\xff", bytes(range(256)) * 400],
    Decimal: [
        Decimal("1.50"),
        Decimal("-0"),
        Decimal("1E+30"),
        Decimal("-7E-400"),
        Decimal(10**40),
    ],
    datetime: [
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2031, 5, 4, 16, 20, 0, 123456, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=EAST),
    ],
    UUID: [UUID(int=0), UUID("0f8fad5b-d9cb-469f-a165-70867728950e")],
    list: [[], [1, "two", 3.0, None], [[[]]], [1, [2, (3, {"k": [b"v"]})]]],
    tuple: [(), (1,), (1, (2, [3]))],
    dict: [{}, {"a": 1}, {1: "int", "1": "str", None: [], (1, 2): {"nested": True}}],
}
PAIRS = [(kind, value) for kind, values in VALUES.items() for value in values]


def shown(value):
    return repr(value)[:40]


def test_a_dict_comes_back_in_its_order_which_no_template_looks_at_v3_v4(space):
    first, second = {"z": 1, "a": {"y": 2, "b": 3}}, {"a": {"b": 3, "y": 2}, "z": 1}
    space.put("order", first)
    space.put("order", [{2: 0, 1: 0}, first])
    assert space.count("order", second) == 1  # M2
    assert space.count("order", F.in_([second])) == 1
    _, back = space.take("order", dict)
    assert (list(back), list(back["a"])) == (["z", "a"], ["y", "b"])
    _, (numbers, back) = space.take("order", [{1: 0, 2: 0}, second])
    assert (list(numbers), list(back), list(back["a"])) == ([2, 1], ["z", "a"], ["y", "b"])
    assert str(like("order", first)) == str(like("order", second))


@pytest.mark.parametrize(("kind", "value"), PAIRS, ids=shown)
def test_a_value_comes_back_equal_and_of_the_same_type_and_any_matches_it_v3_m2_m3_m4(
    space, kind, value
):
    for template in [("x", ...), ("x", kind), ("x", value)]:
        space.put("x", value)
        assert space.read(*template, timeout=0) == ("x", value)  # V3, M2, M3, M4
        assert space.count(*template, ...) == 0  # `...` is one field
        _, back = space.take(*template, timeout=0)
        assert back == value
        assert type(back) is type(value)
        assert repr(back) == repr(value) or kind is datetime


@pytest.mark.parametrize(("kind", "value"), PAIRS, ids=shown)
def test_a_formal_matches_its_own_kind_only(space, kind, value):
    space.put("x", value)
    others = [other for other in VALUES if other is not kind]
    assert [other for other in others if space.count("x", other)] == []  # M3


def test_equal_looking_values_of_different_kinds_are_different(space):
    space.put_all([("x", 1), ("x", 1.0), ("x", True), ("x", Decimal(1)), ("x", "1"), ("x", b"1")])
    for value in (1, 1.0, True, Decimal(1), "1", b"1"):
        assert space.read_all("x", value) == [("x", value)]  # M2
        assert type(space.read("x", value)[1]) is type(value)


def test_nan_matches_nan_and_keeps_its_bits(space):
    odd_nan = struct.unpack(">d", bytes.fromhex("7ff8dead0000beef"))[0]
    space.put("x", odd_nan)
    _, back = space.take("x", math.nan)  # M2
    assert struct.pack(">d", back).hex() == "7ff8dead0000beef"  # V4


def test_negative_zero_matches_zero_and_keeps_its_sign(space):
    space.put("x", -0.0)
    assert math.copysign(1, space.take("x", 0.0)[1]) == -1.0


def test_decimals_match_as_numbers_and_keep_their_exponent(space):
    space.put("x", Decimal("1.50"))
    assert str(space.take("x", Decimal("1.5"))[1]) == "1.50"  # M2, V4


def test_a_moment_comes_back_in_utc(space):
    space.put("x", datetime(2031, 5, 4, 21, 50, tzinfo=EAST))
    _, back = space.take("x", datetime(2031, 5, 4, 16, 20, tzinfo=UTC))
    assert back == datetime(2031, 5, 4, 16, 20, tzinfo=UTC)
    assert back.tzinfo is UTC


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Name(enum.StrEnum):
    BOB = "bob"


class Meters(float):
    pass


class Word(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("given", "stored"),
    [(Level.HIGH, 3), (Name.BOB, "bob"), (Meters(2.5), 2.5), (Word("w"), "w"), (True, True)],
    ids=shown,
)
def test_subclasses_of_plain_types_are_stored_as_what_they_derive_from(space, given, stored):
    space.put("x", given)
    assert space.count("x", given) == 1
    _, back = space.take("x", stored)
    assert back == stored
    assert type(back) is type(stored)


def endless_list():
    endless: list[Any] = [1]
    endless.append(endless)
    return endless


def endless_dict():
    endless: dict[str, Any] = {}
    endless["self"] = [endless]
    return endless


def deep(levels):
    nested: list[Any] = []
    for _ in range(levels - 1):
        nested = [nested]
    return nested


REFUSED = [
    (int, "field 1 is the type <class 'int'>, which is for templates", "put a value"),
    (..., "field 1 is the Ellipsis `...`, which is for templates", "put a value"),
    (Any, "field 1 is .*typing.Any.*, which is for templates", "put a value"),
    (int | str, r"field 1 is int \| str, which is for templates", "put a value"),
    (OLD_OPTIONAL, r"field 1 is typing.Optional\[int\], which is for templates", "put a value"),
    (F > 3, "field 1 is <Formal > 3>, which is for templates", "put a value"),
    (F, "field 1 is F, which is for templates", "put a value"),
    (REST, "field 1 is REST, which is for templates", "put a value"),
    (ts.like("a"), r"field 1 is <Template \(\"a\"\)>, which is for templates", "put a value"),
    ([1, {"k": str}], r"field 1\[1\]\['k'\] is the type <class 'str'>", "put a value"),
    ({str: 1}, r"field 1's keys is the type <class 'str'>", "put a value"),
    (endless_list(), r"field 1\[1\] is a list that contains itself", "a stored value is a copy"),
    (endless_dict(), r"field 1\['self'\]\[0\] is a dict that contains itself", "is a copy"),
    (deep(129), r"is a list nested over the limit of 128 levels", "flatten it"),
    ("a\ud800b", "field 1 is a str with a lone surrogate at position 1", "surrogatepass"),
    (["\udfff"], r"field 1\[0\] is a str with a lone surrogate at position 0", "surrogatepass"),
    (bytearray(b"x"), "field 1 is a bytearray, which can change", r"put bytes\(x\)"),
    (datetime(2031, 5, 4), "field 1 is a datetime without a zone", r"datetime.now\(UTC\)"),  # noqa: DTZ001
    (Color.RED, "field 1 is a member of the Enum Color", "put its .value"),
    (Decimal("NaN"), "field 1 is the decimal NaN, which is no number", "put a float"),
    (Decimal("-Infinity"), "field 1 is the decimal -Infinity", "put a float"),
    (1 << 600_000, "an integer of 75001 bytes is over the limit", "put it as bytes"),
    ({math.nan: 1, -math.nan: 2}, "is there twice", "keys are the same when they match"),
]


@pytest.mark.parametrize(
    ("value", "message", "hint"), REFUSED, ids=[message for _, message, _ in REFUSED]
)
def test_what_can_not_be_stored_is_refused_with_its_place_and_what_to_do(
    space, value, message, hint
):
    with pytest.raises(ts.NotEncodable, match=message) as caught:
        space.put("x", value)
    assert caught.value.code == "TUP-004"
    assert isinstance(caught.value, TypeError)
    assert re.search(hint, str(caught.value))
    assert space.count(REST) == 0


@pytest.mark.parametrize("pattern", [int, ..., int | str, F > 3, F, REST, ts.like("a")], ids=repr)
def test_a_pattern_is_never_stored_and_what_looks_like_one_is_a_text_m6(space, pattern):
    with pytest.raises(ts.NotEncodable, match="which is for templates"):
        space.put("x", pattern)
    with pytest.raises(ts.NotEncodable, match="which is for templates"):
        space.put_all([("x", 1), ("x", [pattern])])
    assert space.count(REST) == 0
    space.put("x", ":int")
    assert space.try_take("x", int) is None
    assert space.take("x", str, timeout=0) == ("x", ":int")


def test_nesting_up_to_the_limit_is_stored(space):
    space.put("x", deep(128))
    assert space.take("x", list) == ("x", deep(128))


def test_the_same_list_may_occur_twice_side_by_side(space):
    shared = [1]
    space.put("x", [shared, shared, {"again": shared}])
    assert space.take("x", list) == ("x", [[1], [1], {"again": [1]}])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "timestamp('2031-05-04T16:20:00.123456789Z')",
            "whose nanoseconds a datetime can not hold",
        ),
        ("map(1: 'int', 1.0: 'float')", "keys that Python calls equal"),
        ("map(list(1): 'x')", "which no dict can have"),
        ("opaque('marshal', 'some.Type', b'')", 'encoded by "marshal", which Python can not read'),
        ("opaque('pickle', 'some.Type', b'')", 'objects="strict"'),
    ],
)
def test_what_python_can_not_represent_is_refused_with_its_kind(text, what):
    with pytest.raises(ts.NotEncodable, match="field 0 is") as caught:
        parse_tuple(text)
    assert what in str(caught.value)  # V3


@pytest.mark.parametrize("is_trapped", [True, False])
def test_a_decimal_beyond_those_of_python_is_refused_and_stays(space, is_trapped):
    largest = 10**18 - 1
    put_text(space, f'"x", decimal("10E{largest}")')
    with localcontext() as context:
        context.traps[InvalidOperation] = is_trapped
        for verb in (space.take, space.try_take, space.take_all, space.read):
            with pytest.raises(ts.NotEncodable, match=r"field 1 is a decimal with .* 10{18}, for"):
                verb("x", Decimal)
    assert space.count("x", Decimal) == 1  # V3
    put_text(space, f'"y", decimal("-9E{largest}"), decimal("1E-{largest}")')
    _, far, near = space.take("y", Decimal, Decimal)
    assert (str(far), str(near)) == (f"-9E+{largest}", f"1E-{largest}")


@pytest.mark.parametrize("given", [OrderedDict(a=1), frozenset({1}), 1 + 2j, range(3)], ids=shown)
def test_containers_of_other_classes_keep_their_class(space, given):
    space.put("x", given)
    assert space.count("x", dict) == space.count("x", tuple) == 0
    _, back = space.take("x", F.opaque)
    assert back == given
    assert type(back) is type(given)


def test_unions_of_types_match_either(space):
    space.put_all([("x", 1), ("x", "s"), ("x", None), ("x", 1.5)])
    assert space.count("x", int | str) == 2  # M3
    assert space.count("x", OLD_OPTIONAL) == 2
    assert space.count("x", int | None) == 2
    assert space.count("x", OLD_UNION) == 3
    assert space.count("x", Any) == 4
    assert space.count("x", int | Any) == 4
