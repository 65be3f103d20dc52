"""`tupelo check FILE`: what a recorded run put and never took, and asked for in vain.

The question is SETTLE's (Fiedler and others, 2005): which definition of a tuple reaches which use?
Three kinds of findings, per space:

* tuples that were put, and at the end neither taken nor ever read;
* templates that never matched any tuple that was ever put;
* for those, near misses: what would have matched if one field were different. A tag that is
  written in one way and asked for in another is found so, and an int where a float was put.

Tuples of Tupelo's own that stand for a state (a lock, a counter, a mark of `finish`) are no
finding, nor are templates that only Tupelo itself waits with.

Matching is the engine's own: the tuples of the record are put into a space, and counted there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tupelo as ts
from tupelo._native import put_text
from tupelo.batteries.core import barrier, locks, queue, values
from tupelo.recording.lines import LONG_BYTES

FOUND = 1  # exit codes
UNREADABLE = 2

SIZE = "4G"
"""Room for whatever a record has; it is used only as tuples come."""

OWN_TAG = '"tupelo.'
"""How the first field of Tupelo's own tuples begins."""
WHOLE = re.compile(r"\(|[A-Za-z_][\w.]*\{")
"""How a text begins that is more than a field: a template with a condition, or an entry's."""
DIGEST = '"digest '
"""What is in the text of a value that is recorded as a digest."""
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
KINDS = re.compile(r":\w+(?:\|:\w+)*")
CONDITION = re.compile(r"\.\.|[<>|]|!=|\b(?:glob|prefix|in|where)\b")
"""What a pattern has that asks for more than a kind or one value, besides literals and kinds."""
STATES = frozenset(f'"{tag}"' for core in (barrier, locks, queue, values) for tag in core.STATES)
"""Those that stay: each stands for a state that somebody may look at later."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class BadRecordError(Exception):
    """A file is not what `tupelo record` writes."""


@dataclass(frozen=True)
class Transfer:
    """A `move_to` or `copy_to`."""

    template: tuple[str, ...]
    source: str
    target: str
    is_move: bool
    count: int


@dataclass(frozen=True)
class Search:
    """A template that was looked for in several spaces together, and not found at once."""

    template: tuple[str, ...]
    spaces: tuple[str, ...]


@dataclass
class History:
    """What happened in one space."""

    put: Counter[tuple[str, ...]] = field(default_factory=Counter)
    taken: Counter[tuple[str, ...]] = field(default_factory=Counter)
    read: set[tuple[str, ...]] = field(default_factory=set)
    asked: Counter[tuple[str, ...]] = field(default_factory=Counter)
    matched: set[tuple[str, ...]] = field(default_factory=set)

    def add(self, event: dict[str, Any]) -> None:
        """Note one line of the record."""
        verb = event["verb"]
        fields = event.get("tuple")
        found = None if fields is None else tuple(fields)
        if verb == "put" and found is not None:
            self.put[found] += 1
            return
        self.ask(tuple(event["template"]), was_there=found is not None)
        if found is not None:
            if verb == "take":
                self.taken[found] += 1
            else:
                self.read.add(found)

    def ask(self, template: tuple[str, ...], *, was_there: bool, times: int = 1) -> None:
        """Note that somebody looked for matches."""
        self.asked[template] += times
        if was_there:
            self.matched.add(template)

    def unused(self) -> Counter[tuple[str, ...]]:
        """The tuples that were left and that nobody ever read."""
        used = self.read
        return Counter(
            {
                fields: n
                for fields, n in (self.put - self.taken).items()
                if fields not in used and not (fields and fields[0] in STATES)
            }
        )


@dataclass(frozen=True)
class NearMiss:
    """What a template would have matched if one of its fields were different."""

    field: int
    """Its number, from 0."""
    asked: str
    found: str
    """What stood there, in a tuple that matched otherwise."""
    tuples: int

    def __str__(self) -> str:
        """A sentence."""
        return (
            f"with {self.found} instead of {self.asked} as field {self.field}"
            f" it would match {_times(self.tuples, 'tuple')}"
        )


def load(path: Path) -> dict[str, History]:
    """Read a record; the history of each space.

    Raises:
        BadRecordError: it is none.
        OSError: it can not be read.
    """
    histories: dict[str, History] = {}
    transfers: list[Transfer] = []
    searches: Counter[Search] = Counter()
    with path.open("rb") as lines:  # what is no text either is refused as the line that it is in
        for number, line in enumerate(lines, 1):
            try:
                event = json.loads(line)
                history = histories.setdefault(event["space"], History())
                if event["verb"] in ("move", "copy"):
                    transfers.append(_transfer(event))
                    history.ask(tuple(event["template"]), was_there=event["count"] > 0)
                elif "spaces" in event:
                    searches[Search(tuple(event["template"]), tuple(event["spaces"]))] += 1
                else:
                    history.add(event)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                message = f"{path}:{number} is no line of `tupelo record`: {error!r}"
                raise BadRecordError(message) from error
    for transfer in transfers:
        _carry_out(transfer, histories)
    for search, times in searches.items():
        _ask_together(search, times, histories)
    return histories


def _transfer(event: dict[str, Any]) -> Transfer:
    is_move = event["verb"] == "move"
    template, count = tuple(event["template"]), int(event["count"])
    return Transfer(template, event["space"], str(event["to"]), is_move, count)


def _carry_out(transfer: Transfer, histories: dict[str, History]) -> None:
    """Move tuples from one history into the other: of those that match, those that can have gone.

    The record says how many went, not which. What nobody has taken at the source is what was moved;
    what was copied may have been taken there since.
    """
    source = histories[transfer.source]
    target = histories.setdefault(transfer.target, History())
    left = transfer.count
    there = source.put - source.taken if transfer.is_move else source.put.copy()
    for fields in _matching(transfer.template, there):
        went = min(left, there[fields])
        if went:
            target.put[fields] += went
            left -= went
            if transfer.is_move:
                source.taken[fields] += went
            else:
                source.read.add(fields)


def _ask_together(search: Search, times: int, histories: dict[str, History]) -> None:
    """Ask in each space for what was searched in all: found in one, it is missing in none."""
    asked = [histories.setdefault(url, History()) for url in search.spaces]
    was_there = any(
        search.template in history.matched or _is_any(search.template, history.put)
        for history in asked
    )
    for history in asked:
        history.ask(search.template, was_there=was_there, times=times)


def _matching(
    template: tuple[str, ...], tuples: Iterable[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """Those of the tuples that the template matches, one after the other.

    Each is moved away when it was tried: to take it would need the class of an entry.
    """
    with (
        ts.connect("mem://tupelo-check-one", fresh=True) as space,
        ts.connect("mem://tupelo-check-tried", fresh=True, size=SIZE) as tried,
    ):
        for fields in tuples:
            put_text(space, ", ".join(fields))
            if _matches(space, template):
                yield fields
            space.move_to(tried, ts.REST)


def _is_any(template: tuple[str, ...], tuples: Iterable[tuple[str, ...]]) -> bool:
    return any(True for _ in _matching(template, tuples))


def findings(history: History) -> list[str]:
    """What is to be said about one space, a sentence each."""
    said = []
    for fields, copies in _grouped(history.unused()):
        example = ", ".join(fields)
        said.append(f"{_times(copies, 'tuple')} like ({example}) put, never taken and never read")
    with ts.connect("mem://tupelo-check", fresh=True, size=SIZE) as space:
        for fields in history.put:
            put_text(space, ", ".join(fields))
        for template, times in history.asked.items():
            is_own = bool(template) and template[0].startswith(
                (OWN_TAG, f"tuple({OWN_TAG}", f"({OWN_TAG}")
            )
            if is_own or template in history.matched or _matches(space, template):
                continue
            if may_match_digest(template, history.put):
                said.append(f"{_whole(template)} may have been there: a long value is not recorded")
                continue
            said.append(f"{_whole(template)} asked for {_times(times, 'time')}, never there")
            said += [f"  {miss}" for miss in near_misses(space, template)]
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
        any(DIGEST in fields[place] for place in loose) for fields in _matching(weaker, digests)
    )


def _is_loose(word: str) -> bool:
    """Whether a digest does not tell if its value would match."""
    if any(len(literal) > LONG_BYTES for literal in LITERAL.findall(word)):
        return True  # one inside of a pattern, which is recorded as it is
    return CONDITION.search(KINDS.sub("", LITERAL.sub("", word))) is not None


def near_misses(space: ts.Space, template: tuple[str, ...]) -> list[NearMiss]:
    """The fields that, if they were different, would let the template match; best first."""
    found: list[NearMiss] = []
    if len(template) == 1 and WHOLE.match(template[0]):
        return found
    for place, asked in enumerate(template):
        weaker = (*template[:place], "_", *template[place + 1 :])
        count = _matches(space, weaker)
        if count:
            example = space.read(ts.parse(", ".join(weaker)))
            there = str(ts.like(example[place], ...))[1 : -len(", _)")]
            found.append(NearMiss(place, asked, there, count))
    return sorted(found, key=lambda miss: -miss.tuples)


def _matches(space: ts.Space, template: tuple[str, ...]) -> int:
    return space.count(ts.parse(", ".join(template)))


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
        description="Says what a recorded run put and never took, and asked for in vain.",
    )
    parser.add_argument("file", type=Path, help="what `tupelo record` wrote")
    path = parser.parse_args().file
    try:
        histories = load(path)
    except (BadRecordError, OSError) as error:
        sys.stderr.write(f"tupelo check: {error}\n")
        return UNREADABLE
    found = False
    for url, history in histories.items():
        said = findings(history)
        found = found or bool(said)
        sys.stdout.write("\n".join([f"{url}:", *(f"  {line}" for line in said or ["fine"])]) + "\n")
    return FOUND if found else 0


if __name__ == "__main__":
    sys.exit(main())
