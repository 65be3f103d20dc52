"""The words of a record, and what is counted of its lines."""

import json
import math
import os
import random
import struct

import pytest

from tupelo.record import merge
from tupelo.recording import lines


class Odd(int):
    """A number that is more than one."""


PLAIN = (
    "tag", 'say "a"', "back\\slash", "a\tb", "\x7f", "~ {}", "ü", "", "x" * 64, "x" * 65, "\ud800",
    0, -7, 1 << 70, 0.0, -0.0, 1.0, 0.1, 1e-4, 9e-5, 1e-5, 1e15, 1e16, 1e300, float("-inf"),
)  # fmt: skip
OTHER = (
    float("nan"),
    True,
    None,
    b"raw",
    int,
    str,
    float,
    type(None),
    bool,
    ...,
    Odd(7),
    [1],
    (1,),
)


def test_what_most_tuples_are_has_the_words_that_the_long_way_finds(monkeypatch):
    values = (*PLAIN, *OTHER)
    fast = [lines.words(("tag", value)) for value in values]
    assert [lines.words(("tag", value)) for value in values] == fast  # now known by heart
    monkeypatch.setattr(lines, "_quick_words", lambda _: None)
    assert [lines.words(("tag", value)) for value in values] == fast


def test_any_number_and_text_has_the_words_that_the_long_way_finds():
    seed = int(os.environ.get("TUPELO_SEED", random.randrange(1 << 32)))
    print(f"TUPELO_SEED={seed}")  # noqa: T201 - shown if it fails
    choice = random.Random(seed)
    for _ in range(2_000):
        (number,) = struct.unpack("d", choice.randbytes(8))
        text = "".join(map(chr, choice.choices(range(0x250), k=choice.randrange(1, 9))))
        values = (
            "tag",
            text,
            number,
            choice.uniform(-1, 1) * 10 ** choice.randrange(18),
            choice.getrandbits(80) - (1 << 79),
        )
        fast = lines.words(values)
        if math.isfinite(number):
            assert float(json.loads(fast[1])[2]) == number
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines, "_quick_words", lambda _: None)
            assert lines.words(values) == fast


def test_a_call_that_may_wait_is_one_operation(tmp_path):
    verbs = ("put", "waits", "take")
    text = "".join(json.dumps({"time_ns": n, "verb": v}) + "\n" for n, v in enumerate(verbs))
    (tmp_path / "1.jsonl").write_text(text)
    with (tmp_path / "out").open("w") as out:
        assert merge(tmp_path, out) == (2, 0)
    assert (tmp_path / "out").read_text() == text
