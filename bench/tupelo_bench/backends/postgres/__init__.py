"""PostgreSQL: an unlogged table per shape, FOR UPDATE SKIP LOCKED, NOTIFY for those who wait."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend
from tupelo_bench.backends.installed import lacking, said_by
from tupelo_bench.backends.postgres.server import PROGRAMS, start_server
from tupelo_bench.backends.postgres.space import PostgresSpace
from tupelo_bench.backends.sql.search import SQLSearch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tupelo_bench.backends.base import Handle, Schema, VisitOrder


class Postgres(Backend):
    """A server of its own on a Unix socket; nothing survives it."""

    name = "postgres"
    title = "PostgreSQL"
    has_server = True
    how = (
        "Unlogged tables with an index on the keys, DELETE … (SELECT … FOR UPDATE SKIP LOCKED)"
        " RETURNING, prepared statements, NOTIFY for tuples that are waited for, fsync off,"
        " shared_buffers = 1 GB."
    )
    how_to_install = "apt-get install postgresql; pip install 'psycopg[binary]'"

    @classmethod
    def missing(cls) -> str | None:
        if not PROGRAMS:
            return "no PostgreSQL server"
        if lack := lacking("psycopg"):
            return lack
        from psycopg import pq

        # Several times as slow, and nobody who wants speed has it.
        return "psycopg without its part in C" if pq.__impl__ == "python" else None

    @classmethod
    def version(cls) -> str:
        from importlib.metadata import version

        told = said_by(str(PROGRAMS[0] / "postgres"), "--version")
        return f"{told.split()[2]}, psycopg {version('psycopg')}"

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        self._folder = str(folder)
        self.server = start_server(folder, cpus)
        self.server.wait_until(self._answers)

    def connect(self) -> Any:
        """A connection, of the process that calls it."""
        import psycopg

        connection = psycopg.connect(
            host=self._folder, user="bench", dbname="postgres", autocommit=True
        )
        connection.prepare_threshold = 0
        return connection

    def _answers(self) -> bool:
        import psycopg

        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        super().create(schema, spaces, size_bytes)
        with self.connect() as connection:
            for number, _ in enumerate(schema.shapes):
                connection.execute(
                    f"CREATE UNLOGGED TABLE shape{number}"
                    " (id bigserial PRIMARY KEY, space text, key text, body bytea)"
                )
                connection.execute(f"CREATE INDEX ON shape{number} (space, key, id)")
                # By default it would compress what is larger than a page is meant for.
                external = "ALTER COLUMN body SET STORAGE EXTERNAL"
                connection.execute(f"ALTER TABLE shape{number} {external}")

    def drop(self) -> None:
        with self.connect() as connection:
            for number, _ in enumerate(self.schema.shapes):
                connection.execute(f"DROP TABLE shape{number}")

    def open(self, space: str) -> Handle:
        # A server has a hundred connections: fifteen workers with sixteen spaces each share theirs.
        connection, listening = shared(self._folder, os.getpid(), self)
        return PostgresSpace(connection, listening, self.schema, space)

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:
        return SQLSearch(spaces) if order == "round robin" else None

    def memory_bytes(self) -> int | None:
        with self.connect() as connection:
            sizes = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname ~ '^shape'"
            row = connection.execute(sizes + " AND relkind = 'r'").fetchone()
            return int(row[0] or 0)


@cache
def shared(folder: str, process: int, server: Postgres) -> tuple[Any, set[str]]:
    """The one connection of this process, for all its spaces, and the channels it listens to."""
    del folder, process  # a forked child has another number, and so a connection of its own
    return server.connect(), set()
