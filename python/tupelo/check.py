"""`tupelo check FILE`: tuples of a recorded run that nobody took, and templates without match.

The question is SETTLE's (Fiedler and others, 2005): which definition of a tuple reaches which use?
Three kinds of findings, per space:

* tuples that were put, and at the end neither taken nor ever read;
* templates that never matched any tuple that was ever put;
* for such templates, near misses: tuples that match but for one field. They show a tag that is
  written in one way and asked for in another, or an int where a float was put.

Tuples of Tupelo's own that stand for a state (a lock, a counter, a mark of `finish`) are no
finding. Nor are templates that only Tupelo itself waits with.

Matching is the engine's own: the tuples of the record are put into a space, and counted there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import tupelo as ts
from tupelo.common_options import add_common_options
from tupelo.recorded import (
    SIZE,
    BadRecordError,
    History,
    load,
    matches,
    matching,
    pattern_of,
    put_words,
)
from tupelo.recording import LONG_BYTES

FOUND = 1  # exit codes
UNREADABLE = 2

OWN_TAG = '"tupelo.'
"""How the first field of Tupelo's own tuples begins."""
WHOLE = re.compile(r"\(|[A-Za-z_][\w.]*\{")
"""How a text begins that is more than a field: a template with a condition, or an entry's."""
DIGEST = '"digest '
"""A mark in the text of a value that is recorded as a digest."""
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
KINDS = re.compile(r":\w+(?:\|:\w+)*")
CONDITION = re.compile(r"\.\.|[<>|]|!=|\b(?:glob|prefix|in|where)\b")
"""The operators of a pattern that asks for more than a kind or one value."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable
    from typing import Any, Self


@dataclass(frozen=True)
class NearMiss:
    """The tuples that a template would have matched if one of its fields were different."""

    field: int
    """Its number, from 0."""
    asked: str
    found: str
    """The other value, in a tuple that matched otherwise."""
    tuples: int

    def __str__(self) -> str:
        """A sentence."""
        return (
            f"with {self.found} instead of {self.asked} as field {self.field}"
            f" it would match {_times(self.tuples, 'tuple')}"
        )


def findings(history: History) -> list[str]:
    """The findings of one space, a sentence each."""
    said = []
    for fields, copies in _grouped(history.unused()):
        example = ", ".join(fields)
        said.append(f"{_times(copies, 'tuple')} like ({example}) put, never taken and never read")
    with Tuples(history.put) as tuples:
        for template, times in history.asked.items():
            is_own = bool(template) and template[0].startswith(
                (OWN_TAG, f"tuple({OWN_TAG}", f"({OWN_TAG}")
            )
            if is_own or template in history.matched or tuples.are_there(template):
                continue
            if may_match_digest(template, history.put):
                said.append(f"{_whole(template)} may have been there: a long value is not recorded")
                continue
            said.append(f"{_whole(template)} asked for {_times(times, 'time')}, never there")
            said += [f"  {miss}" for miss in near_misses(tuples, template)]
    return said


def may_match_digest(template: tuple[str, ...], tuples: Iterable[tuple[str, ...]]) -> bool:
    """Whether a range, a form or a condition is over a value of which there is only a digest."""
    loose = {place for place, word in enumerate(template) if _is_loose(word)}
    digests = [fields for fields in tuples if any(DIGEST in word for word in fields)]
    if not loose or not digests:
        return False
    if len(template) == 1 and WHOLE.match(template[0]):
        return True  # of fields that are one word nothing more is known
    weaker = tuple("_" if place in loose else word for place, word in enumerate(template))
    return any(
        any(DIGEST in fields[place] for place in loose) for fields in matching(weaker, digests)
    )


def _is_loose(word: str) -> bool:
    """Whether a digest does not tell if its value would match."""
    if any(len(literal) > LONG_BYTES for literal in LITERAL.findall(word)):
        return True  # one inside of a pattern, which is recorded as it is
    return CONDITION.search(KINDS.sub("", LITERAL.sub("", word))) is not None


class Tuples:
    """All tuples that were put, to be matched; equal tuples are stored once, with their number."""

    def __init__(self, put: Counter[tuple[str, ...]]) -> None:
        """Put them into spaces, of which the block's end is the end."""
        with ExitStack() as unless_put:
            # One space has each tuple once. Of the others, space number n has the tuples of which
            # 2^n more were put. So a million equal tuples take twenty, and one count is a count in
            # each space.
            numbers = range((max(put.values(), default=1) - 1).bit_length())
            self._each = unless_put.enter_context(_space("each"))
            self._more = [unless_put.enter_context(_space(f"more-{number}")) for number in numbers]
            for fields, copies in put.items():
                put_words(self._each, fields)
                for number, space in enumerate(self._more):
                    if (copies - 1) >> number & 1:
                        put_words(space, fields)
            self._spaces = unless_put.pop_all()

    def __enter__(self) -> Self:
        """Begin the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop them."""
        self._spaces.close()

    def are_there(self, template: tuple[str, ...]) -> bool:
        """Whether any was put that matches."""
        return matches(self._each, template) > 0

    def count(self, template: tuple[str, ...]) -> int:
        """How many were put that match."""
        more = (matches(space, template) << number for number, space in enumerate(self._more))
        return matches(self._each, template) + sum(more)

    def first(self, template: tuple[str, ...]) -> tuple[Any, ...] | None:
        """The first that was put and matches."""
        found: tuple[Any, ...] | None = self._each.try_read(pattern_of(template))
        return found


def _space(name: str) -> ts.Space:
    return ts.connect(f"mem://tupelo-check-{name}", fresh=True, size=SIZE)


def near_misses(tuples: Tuples, template: tuple[str, ...]) -> list[NearMiss]:
    """The fields that, if they were different, would let the template match; best first."""
    found: list[NearMiss] = []
    if len(template) == 1 and WHOLE.match(template[0]):
        return found
    for place, asked in enumerate(template):
        weaker = (*template[:place], "_", *template[place + 1 :])
        example = tuples.first(weaker)
        if example is not None:
            there = str(ts.like(example[place], ...))[1 : -len(", _)")]
            count = tuples.count((*template[:place], there, *template[place + 1 :]))
            found.append(NearMiss(place, asked, there, count))
    return sorted(found, key=lambda miss: -miss.tuples)


def _whole(template: tuple[str, ...]) -> str:
    """The template in the text notation."""
    if len(template) == 1 and WHOLE.match(template[0]):
        return template[0]
    return f"({', '.join(template)})"


def _grouped(unused: Counter[tuple[str, ...]]) -> list[tuple[tuple[str, ...], int]]:
    """Tuples by arity and first field: an example of each group, and how many there are."""
    groups: dict[tuple[int, str], tuple[tuple[str, ...], int]] = {}
    for fields, copies in unused.items():
        key = (len(fields), fields[0] if fields else "")
        example, before = groups.get(key, (fields, 0))
        groups[key] = (example, before + copies)
    return list(groups.values())


def _times(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def main() -> int:
    """Print the findings; 1 if there are any, 2 if the file is no record."""
    parser = argparse.ArgumentParser(
        prog="tupelo check",
        description="Lists the tuples that a recorded run never took, and the templates that never"
        " matched.",
    )
    parser.add_argument("file", type=Path, help="what `tupelo record` wrote")
    parser.add_argument("--json", action="store_true", help="one object: findings by space")
    add_common_options(parser)
    arguments = parser.parse_args()
    path = arguments.file
    try:
        said = {url: findings(history) for url, history in load(path).items()}
    except (BadRecordError, OSError) as error:
        sys.stderr.write(f"tupelo check: {_shown(str(error))}\n")
        return UNREADABLE
    code = FOUND if any(said.values()) else 0
    if arguments.quiet:
        return code
    if arguments.json:
        sys.stdout.write(f"{json.dumps(said, ensure_ascii=True)}\n")
        return code
    if not said:
        sys.stdout.write(f"{path} has no operations: did the program use a space?\n")
    for url, lines in said.items():
        for line in (f"{url}:", *(f"  {line}" for line in lines or ["fine"])):
            sys.stdout.write(f"{_shown(line)}\n")
    return code


def _shown(text: str) -> str:
    """A text as it may be sent to a terminal: its writer must not move the cursor."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


if __name__ == "__main__":
    sys.exit(main())
