"""SQLite: one table per shape and an index on its keys, in a file on the memory file system."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, ClassVar

from tupelo_bench.backends.base import Backend
from tupelo_bench.backends.sql.search import SQLSearch
from tupelo_bench.backends.sqlite.space import SQLiteSpace
from tupelo_bench.harness.folders import file_system

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tupelo_bench.backends.base import Handle, Schema, VisitOrder

LOCK_PATIENCE_S = 300.0
# By default 2 MB and none, beside fills of hundreds. Each space of each process may have that much
# of a cache; with a mapped file it needs little of it.
CACHE_KIB, MAPPED_BYTES = 64 << 10, 1 << 30
MEMORY_FILES = "/dev/shm"  # noqa: S108 - where shm:// is too
IN_MEMORY = ("tmpfs", "ramfs")
FOLDER = "tupelo-bench-sqlite-"  # and which process it belongs to


class SQLite(Backend):
    """SQLite in write-ahead mode; nothing survives a power loss, as with the others."""

    name = "sqlite"
    title = "SQLite"
    how = (
        "A table per shape with an index on its keys, DELETE … RETURNING in one statement, WAL,"
        " synchronous = OFF, the file in /dev/shm and mapped, a cache of 64 MB. A take that"
        " finds nothing polls; who finds the file locked sleeps as SQLite's own handler does, a"
        " millisecond at first and then longer."
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
        import os
        import shutil
        import tempfile
        from pathlib import Path

        del private
        for left in Path(MEMORY_FILES).glob(f"{FOLDER}*"):  # of runs that live, or were killed
            owner = left.name.removeprefix(FOLDER).partition("-")[0]
            if not Path("/proc", owner).exists():
                shutil.rmtree(left, ignore_errors=True)  # another run may be faster
        return Path(tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-", dir=MEMORY_FILES))

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        del cpus  # it runs inside its clients
        place = self.folder(folder)
        self._folder, self._file = str(place), str(place / "tuples.db")

    def stop(self) -> None:
        import shutil

        if self._folder:
            shutil.rmtree(self._folder)
            self._folder = ""

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
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
        return connection

    def open(self, space: str) -> Handle:
        return SQLiteSpace(self.connect(), self.schema, space)

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:
        return SQLSearch(spaces) if order == "round robin" else None

    def memory_bytes(self) -> int | None:
        from pathlib import Path

        # The log of a new file has grown to its 4 MB by the time some thousand tuples are there,
        # and then is written again from its beginning: no tuple needs it.
        connection = self.connect()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.close()
        return sum(file.stat().st_size for file in Path(self._folder).iterdir())


class DurableSQLite(SQLite):
    """The same on disk, every transaction on it before it counts."""

    name = "sqlite-durable"
    title = "SQLite, durable"
    how = "As SQLite, with the file on disk and synchronous = FULL."
    synchronous: ClassVar[str] = "FULL"
    share = 0.5
    how_to_install = "TMPDIR=/var/tmp tupelo bench …, or another folder on a disk"

    @classmethod
    def missing(cls) -> str | None:
        import tempfile
        from pathlib import Path

        folder = Path(tempfile.gettempdir())
        kind = file_system(folder)
        return f"{folder} is in memory ({kind})" if kind in IN_MEMORY else None

    def folder(self, private: Path) -> Path:
        return private

    def stop(self) -> None:
        """Leave the folder to its owner."""
