"""A space in PostgreSQL.

A put of a tuple that somebody may wait for notifies in the same statement, and says of which space
and key it is. Who may have to wait listens before it looks, and sleeps until it is told of such a
tuple: what it is told of others costs no statement.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.sql.space import SQLSpace
from tupelo_bench.backends.sql.statements import Statements, Texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo_bench.backends.base import Fields, Schema, Shape

LISTEN_S = 1.0  # then it looks again, whatever happened
BETWEEN = "\x1f"  # the name of a space and the keys


class PostgresSpace(SQLSpace):
    """One space, held by one process."""

    def __init__(self, connection: Any, listening: set[str], schema: Schema, space: str) -> None:
        """`listening` has the channels that the connection is told of, by whichever space of it."""
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
        self._listening = listening

    def _notifying(self, put: str, number: int) -> str:
        return f"WITH put AS ({put} RETURNING id) SELECT pg_notify('wait{number}', %s) FROM put"

    def put(self, *fields: Any) -> None:
        shape, key = self._schema.route(fields)
        body = pickle.dumps(fields, pickle.HIGHEST_PROTOCOL)
        told = (f"{self.name}{BETWEEN}{key}",) if shape.awaited else ()
        self._execute(self._puts[shape.tag], (self.name, key, body, *told), binary=True)

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

    def pause(self, names: Sequence[str], template: Fields, looks: int) -> None:
        """Wait until such a tuple was put; the first time, listen from now on."""
        del looks
        shape, key = self._schema.route(template)
        if shape.awaited and self._listens(self._channels[shape.tag]):
            self._sleep(names, shape, key)

    def _sleep(self, names: Sequence[str], shape: Shape, key: str | None) -> None:
        """Sleep until a tuple of this shape was put into one of these spaces, with that key."""
        channel = self._channels[shape.tag]
        for told in self._connection.notifies(timeout=LISTEN_S):
            name, _, its_key = told.payload.partition(BETWEEN)
            of_these = not name or (name in names and key in (None, its_key))
            if told.channel == channel and of_these:
                break
        # The next look sees all that was told so far: nobody has to look again for each.
        for _ in self._connection.notifies(timeout=0):
            pass

    def _listens(self, channel: str) -> bool:
        """Whether it listened before; it does now."""
        if channel in self._listening:
            return True
        self._execute(f"LISTEN {channel}")
        self._listening.add(channel)
        return False

    def _wait(self, texts: Texts, template: Fields) -> Fields:
        shape, key = self._schema.route(template)
        # Before the look: what is put after it is heard of.
        if shape.awaited:
            self._listens(self._channels[shape.tag])
        while (found := self._look(texts, template)) is None:
            self._sleep((self.name,), shape, key)
        return found

    def take(self, *template: Any) -> Fields:
        return self._wait(self._statements.take, template)

    def read(self, *template: Any) -> Fields:
        return self._wait(self._statements.read, template)

    def close(self) -> None:
        """Leave the connection to the other spaces; it ends with this process."""
