"""SQLite: one table per shape and an index on its keys, in a file on the memory file system.

There is no waiting in SQLite: who finds nothing looks again, soon at first and then every
millisecond, as programs that use it as a queue do.
"""

from __future__ import annotations

import pickle
import sqlite3
import time
from typing import TYPE_CHECKING, Any, ClassVar

from tupelo.bench.backends.base import Backend, Fields, Handle, Schema
from tupelo.bench.backends.sql import SQLSearch, Statements, Texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tupelo.bench.backends.base import VisitOrder

LOOKS_SOON = 20  # looks without a pause, before a program gives way to the others
PAUSE_S = 0.001
LOCK_PATIENCE_S = 300.0
MEMORY_FILES = "/dev/shm"  # noqa: S108 - where shm:// is too


class SQLite(Backend):
    """SQLite in write-ahead mode; nothing survives a power loss, as with the others."""

    name = "sqlite"
    title = "SQLite"
    how = (
        "A table per shape with an index on its keys, DELETE … RETURNING in one statement, WAL,"
        " synchronous = OFF, the file in /dev/shm. A take that finds nothing polls."
    )
    synchronous: ClassVar[str] = "OFF"

    @classmethod
    def version(cls) -> str:
        return sqlite3.sqlite_version

    def __init__(self) -> None:
        super().__init__()
        self._folder = ""
        self._file = ""

    def folder(self, private: Path) -> Path:
        """Where the file lies."""
        import tempfile
        from pathlib import Path

        del private
        return Path(tempfile.mkdtemp(prefix="tupelo-bench-sqlite-", dir=MEMORY_FILES))

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        del cpus  # it runs inside its clients
        place = self.folder(folder)
        self._folder, self._file = str(place), str(place / "tuples.db")

    def stop(self) -> None:
        import shutil

        if self._folder:
            shutil.rmtree(self._folder)

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        super().create(schema, spaces, size_bytes)
        with self.connect() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            for number, _ in enumerate(schema.shapes):
                connection.execute(
                    f"CREATE TABLE shape{number}"
                    " (id INTEGER PRIMARY KEY, space TEXT, key TEXT, body BLOB)"
                )
                connection.execute(f"CREATE INDEX by_key{number} ON shape{number} (space, key, id)")
        connection.close()

    def drop(self) -> None:
        from pathlib import Path

        for file in Path(self._folder).iterdir():
            file.unlink()

    def connect(self) -> sqlite3.Connection:
        """A connection, of the process that calls it."""
        connection = sqlite3.connect(
            self._file, timeout=LOCK_PATIENCE_S, isolation_level=None, cached_statements=256
        )
        connection.execute(f"PRAGMA synchronous = {self.synchronous}")
        return connection

    def open(self, space: str) -> Handle:
        return SQLiteSpace(self.connect(), self.schema, space)

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:
        return SQLSearch(spaces) if order == "round robin" else None

    def memory_bytes(self) -> int | None:
        from pathlib import Path

        return sum(file.stat().st_size for file in Path(self._folder).iterdir())


class DurableSQLite(SQLite):
    """The same on disk, every transaction on it before it counts."""

    name = "sqlite-durable"
    title = "SQLite, durable"
    how = "As SQLite, with the file on disk and synchronous = FULL."
    synchronous: ClassVar[str] = "FULL"
    share = 0.5

    def folder(self, private: Path) -> Path:
        return private

    def stop(self) -> None:
        """Leave the folder to its owner."""


class SQLiteSpace(Handle):
    """One space, held by one process."""

    def __init__(self, connection: sqlite3.Connection, schema: Schema, space: str) -> None:
        self._connection = connection
        self._schema = schema
        self.name = space
        self._statements = Statements(schema, "?")

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

    def _look(self, texts: Texts, template: Fields) -> Fields | None:
        body = self._one(texts, template)
        return None if body is None else pickle.loads(body)

    def _wait_until_there(self, template: Fields) -> Fields:
        looks = 0
        while (found := self.try_read(*template)) is None:
            looks += 1
            if looks > LOOKS_SOON:
                time.sleep(PAUSE_S)
        return found

    def first_of(self, names: Sequence[str], template: Fields, *, take: bool) -> Any:
        """The row of a match in one of these spaces; None if there is none."""
        shape, key = self._schema.route(template)
        text = self._statements.first_of(shape.tag, len(names), take=take)
        rows = self._connection.execute(text, (*names, key)).fetchall()
        return rows[0] if rows else None

    def pause(self, template: Fields, looks: int) -> None:
        """Let others run; there is nothing to wait for."""
        del template
        time.sleep(PAUSE_S if looks > LOOKS_SOON else 0)

    def take(self, *template: Any) -> Fields:
        while (found := self._look(self._statements.take, template)) is None:
            # Reads take no lock: who waits does not hold up who puts.
            self._wait_until_there(template)
        return found

    def read(self, *template: Any) -> Fields:
        return self._wait_until_there(template)

    def try_take(self, *template: Any) -> Fields | None:
        return self._look(self._statements.take, template)

    def try_read(self, *template: Any) -> Fields | None:
        return self._look(self._statements.read, template)

    def count(self, *template: Any) -> int:
        count: int = self._one(self._statements.count, template)
        return count

    def close(self) -> None:
        self._connection.close()
