"""A space in PostgreSQL.

A put of a tuple that somebody may wait for notifies in the same statement; a take that finds
nothing listens, looks once more, and sleeps until it is told.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.sql.space import SQLSpace
from tupelo.bench.backends.sql.statements import Statements, Texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo.bench.backends.base import Fields, Schema

LISTEN_S = 1.0  # then it looks again, in case a notification came between


class PostgresSpace(SQLSpace):
    """One space, held by one process."""

    def __init__(self, connection: Any, schema: Schema, space: str) -> None:
        super().__init__(schema, space, Statements(schema, "%s", lock=" FOR UPDATE SKIP LOCKED"))
        self._connection = connection
        self._execute = connection.execute
        self._puts = {
            shape.tag: self._notifying(self._statements.put[shape.tag], number)
            if shape.awaited
            else self._statements.put[shape.tag]
            for number, shape in enumerate(schema.shapes)
        }
        self._channels = {shape.tag: f"wait{n}" for n, shape in enumerate(schema.shapes)}
        self._listening: set[str] = set()

    def _notifying(self, put: str, number: int) -> str:
        return f"WITH put AS ({put} RETURNING id) SELECT pg_notify('wait{number}', '') FROM put"

    def put(self, *fields: Any) -> None:
        shape, key = self._schema.route(fields)
        body = pickle.dumps(fields, pickle.HIGHEST_PROTOCOL)
        self._execute(self._puts[shape.tag], (self.name, key, body), binary=True)

    def put_all(self, tuples: Iterable[Fields]) -> None:
        by_tag: dict[str, list[tuple[str, str | None, bytes]]] = {}
        for fields in tuples:
            shape, key = self._schema.route(fields)
            body = pickle.dumps(fields, pickle.HIGHEST_PROTOCOL)
            by_tag.setdefault(shape.tag, []).append((self.name, key, body))
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for tag, rows in by_tag.items():
                table = f"shape{[shape.tag for shape in self._schema.shapes].index(tag)}"
                with cursor.copy(f"COPY {table} (space, key, body) FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)
                self._execute(f"NOTIFY {self._channels[tag]}")

    def _one(self, texts: Texts, template: Fields) -> Any:
        shape, key = self._schema.route(template)
        arguments = (self.name,) if key is None else (self.name, key)
        row = self._execute(texts[shape.tag, key is not None], arguments, binary=True).fetchone()
        return None if row is None else row[0]

    def first_of(self, names: Sequence[str], template: Fields, *, take: bool) -> Any:
        shape, key = self._schema.route(template)
        text = self._statements.first_of(shape.tag, len(names), take=take)
        return self._execute(text, (*names, key), binary=True).fetchone()

    def pause(self, template: Fields, looks: int) -> None:
        """Wait until such a tuple was put; the first time, listen from now on."""
        del looks
        shape = self._schema.route(template)[0]
        if not shape.awaited or not self._listens(self._channels[shape.tag]):
            return
        for _ in self._connection.notifies(timeout=LISTEN_S, stop_after=1):
            pass

    def _listens(self, channel: str) -> bool:
        """Whether it listened before; it does now."""
        if channel in self._listening:
            return True
        self._execute(f"LISTEN {channel}")
        self._listening.add(channel)
        return False

    def _wait(self, texts: Texts, template: Fields) -> Fields:
        if (found := self._look(texts, template)) is not None:
            return found
        self._listens(self._channels[self._schema.route(template)[0].tag])
        while (found := self._look(texts, template)) is None:
            for _ in self._connection.notifies(timeout=LISTEN_S, stop_after=1):
                pass
        return found

    def take(self, *template: Any) -> Fields:
        return self._wait(self._statements.take, template)

    def read(self, *template: Any) -> Fields:
        return self._wait(self._statements.read, template)

    def close(self) -> None:
        """Leave the connection to the other spaces; it ends with this process."""
