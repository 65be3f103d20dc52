"""A space in SQLite.

There is no waiting in SQLite: who finds nothing looks again, soon at first and then every
millisecond, as programs that use it as a queue do.
"""

from __future__ import annotations

import os
import pickle
import time
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.sql.space import SQLSpace
from tupelo_bench.backends.sql.statements import Statements, Texts

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from tupelo_bench.backends.base import Fields, Schema

LOOKS_SOON = 20  # looks without a pause, before a program gives way to the others
PAUSE_S = 0.001


class SQLiteSpace(SQLSpace):
    """One space, held by one process."""

    def __init__(self, connection: sqlite3.Connection, schema: Schema, space: str) -> None:
        super().__init__(schema, space, Statements(schema, "?"))
        self._connection = connection

    def put(self, *fields: Any) -> None:
        shape, key = self._schema.route(fields)
        body = pickle.dumps(fields, pickle.HIGHEST_PROTOCOL)
        self._connection.execute(self._statements.put[shape.tag], (self.name, key, body))

    def put_all(self, tuples: Iterable[Fields]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for fields in tuples:
            self.put(*fields)
        self._connection.execute("COMMIT")

    def _one(self, texts: Texts, template: Fields) -> Any:
        shape, key = self._schema.route(template)
        arguments = (self.name,) if key is None else (self.name, key)
        # What a statement changes it has changed when all its rows were asked for.
        rows = self._connection.execute(texts[shape.tag, key is not None], arguments).fetchall()
        return rows[0][0] if rows else None

    def _wait_until_there(self, template: Fields) -> Fields:
        looks = 0
        while (found := self.try_read(*template)) is None:
            looks += 1
            pause(looks)
        return found

    def first_of(self, names: Sequence[str], template: Fields, *, take: bool) -> Any:
        shape, key = self._schema.route(template)
        text = self._statements.first_of(shape.tag, len(names), take=take)
        rows = self._connection.execute(text, (*names, key)).fetchall()
        return rows[0] if rows else None

    def pause(self, names: Sequence[str], template: Fields, looks: int) -> None:
        """Let others run; there is nothing to wait for."""
        del names, template
        pause(looks)

    def take(self, *template: Any) -> Fields:
        while (found := self._look(self._statements.take, template)) is None:
            # Reads take no lock: who waits does not hold up who puts.
            self._wait_until_there(template)
        return found

    def read(self, *template: Any) -> Fields:
        return self._wait_until_there(template)

    def close(self) -> None:
        self._connection.close()


def pause(looks: int) -> None:
    """Let others run: on one processor nobody could put anything meanwhile."""
    if looks > LOOKS_SOON:
        time.sleep(PAUSE_S)
    else:
        os.sched_yield()
