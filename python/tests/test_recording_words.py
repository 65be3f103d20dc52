"""The words of a record, and what is counted of its lines."""

import json
import math
import os
import random
import struct

import pytest

import tupelo as ts
from tupelo._native import record_words
from tupelo.record import merge
from tupelo.recording import LONG_BYTES


def words(*fields, **named):
    return tuple(map(json.loads, record_words(fields, named)))


def test_a_template_has_a_kind_and_a_word_for_each_field():
    expected = ["str", "int", "null", "array", "other", "other"], [
        '"a"', ":int", ":null", ":array", "_", "..."
    ]  # fmt: skip
    template = ("a", int, type(None), memoryview, ..., ts.REST)
    assert words(*template) == expected
    assert words(ts.like(*template)) == expected


def test_what_is_more_than_its_fields_is_one_word():
    either = ts.like("a", int) | ts.like("b")
    assert words(either) == (["other"], ['("a", :int) | ("b")'])
    assert words("a", int, where="f[1] > 3") == (["other"], ['("a", :int) where "f[1] > 3"'])


def test_an_object_that_has_no_text_is_told_by_its_class():
    assert words("a", object(), 1) == (
        ["str", "other", "int"], ['"a"', 'tuple("tupelo.object", "object")', "1"]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("x" * LONG_BYTES, "x" * (LONG_BYTES + 1)),
        (b"x" * LONG_BYTES, b"x" * (LONG_BYTES + 1)),
        ([1], [7] * LONG_BYTES),
        ((1,), (7,) * LONG_BYTES),
        ({"a": 1}, {"a": "x" * LONG_BYTES}),
        (memoryview(b"x" * LONG_BYTES), memoryview(b"x" * (LONG_BYTES + 1))),
    ],
)
def test_a_long_value_is_a_digest_of_its_kind_and_equal_values_have_the_same(short, long):
    kinds, (tag, word) = words("a", long)
    assert "digest " in word
    assert len(word) < 2 * LONG_BYTES
    assert words(ts.like("a", long)) == (kinds, [tag, word])
    assert kinds == words("a", short)[0]
    assert "digest" not in words("a", short)[1][1]


def test_any_number_and_text_has_the_words_that_the_text_notation_reads_back():
    seed = int(os.environ.get("TUPELO_SEED", random.randrange(1 << 32)))
    print(f"TUPELO_SEED={seed}")  # noqa: T201 - shown if it fails
    choice = random.Random(seed)
    for _ in range(500):
        (number,) = struct.unpack("d", choice.randbytes(8))
        text = "".join(map(chr, choice.choices(range(1, 0x250), k=choice.randrange(1, 9))))
        values = ("tag", text, number, choice.getrandbits(80) - (1 << 79))
        kinds, told = words(*values)
        assert kinds == ["str", "str", "float", "int"]
        assert ts.parse(", ".join(told)) == ts.like(*values)
        if math.isfinite(number):
            assert float(told[2]) == number


def test_a_call_that_may_wait_is_one_operation(tmp_path):
    verbs = ("put", "waits", "take")
    text = "".join(json.dumps({"time_ns": n, "verb": v}) + "\n" for n, v in enumerate(verbs))
    (tmp_path / "1.jsonl").write_text(text)
    with (tmp_path / "out").open("w") as out:
        assert merge(tmp_path, out) == (2, 0)
    assert (tmp_path / "out").read_text() == text
