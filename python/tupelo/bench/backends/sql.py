"""The statements that both databases use: a table per shape, an index on (space, key)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tupelo.bench.backends.base import Schema

Texts = dict[tuple[str, bool], str]


class Statements:
    """SQL texts by the tag of the shape, and by whether the template names the keys."""

    def __init__(self, schema: Schema, mark: str, *, lock: str = "") -> None:
        """`mark` is the driver's place holder, `lock` follows the search of a take."""
        self.put: dict[str, str] = {}
        self.read: Texts = {}
        self.take: Texts = {}
        self.count: Texts = {}
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
