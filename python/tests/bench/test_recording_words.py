"""The words of a record, and what is counted of its lines."""

import json

from tupelo.record import merge
from tupelo.recording import lines


class Odd(int):
    """A number that is more than one."""


PLAIN = ("tag", 'say "a"', "x" * 64, "x" * 65, "\ud800", 0, -7, 1 << 70, 0.0, -0.0, 1.0, 1e300)
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
    monkeypatch.setattr(lines, "_is_plain", lambda _: False)
    assert [lines.words(("tag", value)) for value in values] == fast


def test_a_call_that_may_wait_is_one_operation(tmp_path):
    verbs = ("put", "waits", "take")
    text = "".join(json.dumps({"time_ns": n, "verb": v}) + "\n" for n, v in enumerate(verbs))
    (tmp_path / "1.jsonl").write_text(text)
    with (tmp_path / "out").open("w") as out:
        assert merge(tmp_path, out) == (2, 0)
    assert (tmp_path / "out").read_text() == text
