"""The statements that both databases use: a table per shape, an index on (space, key)."""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING, Any, Protocol

from tupelo.bench.backends.base import Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.bench.backends.base import Fields, Schema

Texts = dict[tuple[str, bool], str]
"""By the tag of the shape, and by whether the template names the keys."""


class SQLSpace(Protocol):
    """A space in a database, as a search sees it."""

    name: str

    def first_of(self, names: Sequence[str], template: Fields, *, take: bool) -> Any:
        """The row of a match in one of these spaces; None if there is none."""

    def pause(self, template: Fields, looks: int) -> None:
        """Wait until it may be worth while to look again, after so many looks in vain."""


class Statements:
    """The texts for the shapes of a schema."""

    def __init__(self, schema: Schema, mark: str, *, lock: str = "") -> None:
        """`mark` is the driver's place holder, `lock` follows the search of a take."""
        self.put: dict[str, str] = {}
        self.read: Texts = {}
        self.take: Texts = {}
        self.count: Texts = {}
        self._mark, self._lock = mark, lock
        self._tables = {shape.tag: f"shape{number}" for number, shape in enumerate(schema.shapes)}
        for number, shape in enumerate(schema.shapes):
            table = f"shape{number}"
            marks = ", ".join([mark] * 3)
            self.put[shape.tag] = f"INSERT INTO {table} (space, key, body) VALUES ({marks})"
            for keyed in (False, True):
                # The index has the ids of one key in order; among all keys any tuple will do.
                where = f"{table} WHERE space = {mark}"
                oldest = f"{where} AND key = {mark} ORDER BY id" if keyed else where
                use = (shape.tag, keyed)
                self.read[use] = f"SELECT body FROM {oldest} LIMIT 1"
                self.take[use] = (
                    f"DELETE FROM {table} WHERE id = (SELECT id FROM {oldest} LIMIT 1{lock})"
                    " RETURNING body"
                )
                self.count[use] = f"SELECT count(*) FROM {where}" + (
                    f" AND key = {mark}" if keyed else ""
                )

    def first_of(self, tag: str, spaces: int, *, take: bool) -> str:
        """A search for a key in so many spaces: finds the name of the space, and the tuple."""
        table, mark = self._tables[tag], self._mark
        marks = ", ".join([mark] * spaces)
        where = f"{table} WHERE space IN ({marks}) AND key = {mark} LIMIT 1"
        if not take:
            return f"SELECT space, body FROM {where}"
        chosen = f"SELECT id FROM {where}{self._lock}"
        return f"DELETE FROM {table} WHERE id = ({chosen}) RETURNING space, body"


class SQLSearch:
    """Looks for a tuple that is in one of several spaces: one statement."""

    def __init__(self, spaces: Sequence[SQLSpace]) -> None:
        self._spaces = spaces
        self._places = {space.name: place for place, space in enumerate(spaces)}

    def take(self, *template: Any) -> Found:
        """Remove a match, waiting for one."""
        return self._search(template, take=True)

    def read(self, *template: Any) -> Found:
        """Return a match, waiting for one."""
        return self._search(template, take=False)

    def _search(self, template: Fields, *, take: bool) -> Found:
        own, names = self._spaces[0], list(self._places)
        visited, looks, waited_s = 0, 0, 0.0
        while (row := own.first_of(names, template, take=take)) is None:
            visited += len(names)
            begin = time.perf_counter()
            looks += 1
            own.pause(template, looks)
            waited_s += time.perf_counter() - begin
        place = self._places[row[0]]
        space, visited = self._spaces[place], visited + place + 1
        return Found(pickle.loads(row[1]), space, visited, waited_s, looks + 1)
