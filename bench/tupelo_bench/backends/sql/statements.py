"""The statements that both databases use: a table per shape, an index on (space, key)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tupelo_bench.backends.base import Schema

Texts = dict[tuple[str, bool], str]
"""By the tag of the shape, and by whether the template names the keys."""


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
