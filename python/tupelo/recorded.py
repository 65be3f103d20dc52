"""The contents of a record of `tupelo record`: the history of each space.

A file that is no record is refused, whatever is in it. Matching is the engine's own: tuples are put
into a space in the text notation, and counted there.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import tupelo as ts
from tupelo._native import put_text
from tupelo.batteries.core import barrier, locks, queue, values
from tupelo.consuming import SIGN
from tupelo.recording import NOWHERE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = [
    "SIZE",
    "BadRecordError",
    "History",
    "load",
    "matches",
    "matching",
    "pattern_of",
    "put_words",
]

SIZE = "4G"
"""Room for whatever a record has; it is used only as tuples come."""
OF_PROCESS = " of process "
WHY_MAX = 200  # characters of an error about a line, which may be megabytes
VERBS = frozenset({"put", "take", "read", "count", "waits"})
TRANSFERS = frozenset({"move", "copy"})
STATES = frozenset(
    (
        *(f'"{tag}"' for core in (barrier, locks, queue, values) for tag in core.STATES),
        f'"{SIGN}"',
    )
)
"""Tags of tuples that stay: each stands for a state that a program may look at later."""


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
    leased: set[tuple[str, ...]] = field(default_factory=set)
    """Tuples that were put with a lease: they go by themselves, as their program wants it."""
    taken: Counter[tuple[str, ...]] = field(default_factory=Counter)
    read: set[tuple[str, ...]] = field(default_factory=set)
    asked: Counter[tuple[str, ...]] = field(default_factory=Counter)
    matched: set[tuple[str, ...]] = field(default_factory=set)

    def add(self, event: dict[str, Any]) -> None:
        """Note one line of the record."""
        verb = event["verb"]
        found = None if event.get("tuple") is None else _words(event["tuple"])
        if verb == "put" and found is not None:
            self.put[found] += 1
            if event.get("lease") is not None:
                self.leased.add(found)
            return
        self.ask(_words(event["template"]), was_there=found is not None)
        if found is not None:
            if verb == "take":
                self.taken[found] += 1
            else:
                self.read.add(found)

    def ask(self, template: tuple[str, ...], *, was_there: bool, times: int = 1) -> None:
        """Note a look for matches."""
        self.asked[template] += times
        if was_there:
            self.matched.add(template)

    def unused(self) -> Counter[tuple[str, ...]]:
        """The tuples that were left and never read."""
        used = self.read | self.leased
        return Counter(
            {
                fields: n
                for fields, n in (self.put - self.taken).items()
                if fields not in used and not (fields and fields[0] in STATES)
            }
        )


def load(path: Path) -> dict[str, History]:
    """Read a record; the history of each space.

    Raises:
        BadRecordError: it is none.
        OSError: the file cannot be read.
    """
    histories: dict[str, History] = {}
    transfers: list[Transfer] = []
    searches: Counter[Search] = Counter()
    with path.open("rb") as lines:  # bytes that are no text are refused with their line
        for number, line in enumerate(lines, 1):
            try:
                event = _event(line)
                history = histories.setdefault(event["space"], History())
                if event["verb"] in TRANSFERS:
                    transfers.append(_transfer(event))
                    history.ask(_words(event["template"]), was_there=event["count"] > 0)
                elif "spaces" in event:
                    spaces = tuple(_space(url, event) for url in event["spaces"])
                    searches[Search(_words(event["template"]), spaces)] += 1
                else:
                    history.add(event)
            except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
                why = f"{error!r:.{WHY_MAX}}"
                message = f"{path}:{number} is no line of `tupelo record`: {why}"
                raise BadRecordError(message) from error
    for transfer in transfers:
        _carry_out(transfer, histories)
    for search, times in searches.items():
        _ask_together(search, times, histories)
    return _named(histories)


def _event(line: bytes) -> dict[str, Any]:
    """The content of a line. A `mem://` space is another one in each process.

    Raises:
        ValueError: it is no event, or none of these verbs.
        LookupError: it lacks something.
    """
    event = json.loads(line)
    if not isinstance(event, dict) or event["verb"] not in VERBS | TRANSFERS:
        message = "no operation that it writes"
        raise ValueError(message)
    event["space"] = _space(event["space"], event)
    return event


def _space(url: Any, event: dict[str, Any]) -> str:
    """The name of a space in the histories.

    Raises:
        TypeError: it is no text.
    """
    if not isinstance(url, str):
        message = f"the space is {url!r}"
        raise TypeError(message)
    return f"{url}{OF_PROCESS}{int(event['pid'])}" if url.startswith("mem://") else url


def _named(histories: dict[str, History]) -> dict[str, History]:
    """Histories by their URLs alone, where one process has a space of that name."""
    urls = Counter(name.partition(OF_PROCESS)[0] for name in histories)
    short = {name: name.partition(OF_PROCESS)[0] for name in histories}
    return {
        short[name] if urls[short[name]] == 1 else name: history
        for name, history in histories.items()
    }


def _words(words: Any) -> tuple[str, ...]:
    """The words of a tuple or template.

    Raises:
        TypeError: they are none.
    """
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        message = f"the words are {words!r}"
        raise TypeError(message)
    return tuple(words)


def _transfer(event: dict[str, Any]) -> Transfer:
    is_move = event["verb"] == "move"
    template, count = _words(event["template"]), int(event["count"])
    return Transfer(template, event["space"], _space(event["to"], event), is_move, count)


def _carry_out(transfer: Transfer, histories: dict[str, History]) -> None:
    """Move tuples from one history into the other: those matches that can have gone.

    The record says how many went, not which. Tuples that were never taken at the source count as
    moved. Copied tuples may have been taken there since.
    """
    source = histories[transfer.source]
    # Discarded tuples go to a space that does not exist.
    name = transfer.target.partition("://")[2].partition(OF_PROCESS)[0]
    is_none = f"mem://{name}" == NOWHERE
    target = History() if is_none else histories.setdefault(transfer.target, History())
    left = transfer.count
    there = source.put - source.taken if transfer.is_move else source.put.copy()
    for fields in matching(transfer.template, there):
        went = min(left, there[fields])
        if went:
            target.put[fields] += went
            left -= went
            if transfer.is_move:
                source.taken[fields] += went
            else:
                source.read.add(fields)


def _ask_together(search: Search, times: int, histories: dict[str, History]) -> None:
    """Ask in each space for a tuple of a search: found in one, it is missing in none."""
    asked = [histories.setdefault(url, History()) for url in search.spaces]
    was_there = any(
        search.template in history.matched or _is_any(search.template, history.put)
        for history in asked
    )
    for history in asked:
        history.ask(search.template, was_there=was_there, times=times)


def matching(
    template: tuple[str, ...], tuples: Iterable[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """The tuples that the template matches, one after the other.

    Each is moved away when it was tried: to take it would need the class of an entry.
    """
    with (
        ts.connect("mem://tupelo-check-one", fresh=True) as space,
        ts.connect("mem://tupelo-check-tried", fresh=True, size=SIZE) as tried,
    ):
        for fields in tuples:
            put_words(space, fields)
            if matches(space, template):
                yield fields
            space.move_to(tried, ts.REST)


def _is_any(template: tuple[str, ...], tuples: Iterable[tuple[str, ...]]) -> bool:
    return any(True for _ in matching(template, tuples))


def put_words(space: ts.Space, fields: tuple[str, ...]) -> None:
    """Put a tuple of a record.

    Raises:
        BadRecordError: its words are none.
    """
    text = notation(fields)
    try:
        put_text(space, text)
    except (ValueError, ts.TupeloError) as error:
        message = f"({text:.{WHY_MAX}}) is no tuple: {error!s:.{WHY_MAX}}"
        raise BadRecordError(message) from error


def matches(space: ts.Space, template: tuple[str, ...]) -> int:
    """How many tuples match a template of a record.

    Raises:
        BadRecordError: its words are none.
    """
    return space.count(pattern_of(template))


def pattern_of(template: tuple[str, ...]) -> ts.Template[Any]:
    """A template of a record.

    Raises:
        BadRecordError: its words are none.
    """
    text = notation(template)
    try:
        return ts.parse(text)
    except (ValueError, ts.TupeloError) as error:
        message = f"({text:.{WHY_MAX}}) is no template: {error!s:.{WHY_MAX}}"
        raise BadRecordError(message) from error


def notation(words: tuple[str, ...]) -> str:
    """Words in the text notation: the empty tuple has one, too."""
    return ", ".join(words) if words else "()"
