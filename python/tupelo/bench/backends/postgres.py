"""PostgreSQL: an unlogged table per shape, FOR UPDATE SKIP LOCKED, and NOTIFY for those who wait.

A put of a tuple that somebody may wait for notifies in the same statement; a take that finds
nothing listens, looks once more, and sleeps until it is told.
"""

from __future__ import annotations

import os
import pickle
import pwd
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Fields, Handle, Schema
from tupelo.bench.backends.installed import lacking
from tupelo.bench.backends.sql import SQLSearch, Statements, Texts
from tupelo.bench.harness.lifetime import Server, ServerFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo.bench.backends.base import VisitOrder

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
ACCOUNT = "postgres"  # which Debian's package makes; the server refuses to run as root
LISTEN_S = 1.0  # then it looks again, in case a notification came between
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum_naptime": "5s",
    "listen_addresses": "",
    # In its folder, and not in /dev/shm, where they would stay if it were killed.
    "dynamic_shared_memory_type": "mmap",
}


class Postgres(Backend):
    """A server of its own on a Unix socket; nothing survives it."""

    name = "postgres"
    title = "PostgreSQL"
    has_server = True
    how = (
        "Unlogged tables with an index on the keys, DELETE … (SELECT … FOR UPDATE SKIP LOCKED)"
        " RETURNING, prepared statements, NOTIFY for tuples that are waited for, fsync off."
    )
    how_to_install = "apt-get install postgresql; pip install 'psycopg[binary]'"

    @classmethod
    def missing(cls) -> str | None:
        if not PROGRAMS:
            return "no PostgreSQL server"
        return lacking("psycopg")

    @classmethod
    def version(cls) -> str:
        from importlib.metadata import version

        told = subprocess.run(
            [PROGRAMS[0] / "postgres", "--version"], capture_output=True, text=True, check=True
        )
        return f"{told.stdout.split()[2]}, psycopg {version('psycopg')}"

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        self._folder = str(folder)
        data = folder / "data"
        data.mkdir()
        account: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam(ACCOUNT)
            account = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            for each in (folder, data):
                shutil.chown(each, user.pw_uid, user.pw_gid)
        made = subprocess.run(
            [PROGRAMS[0] / "initdb", "-D", data, "-A", "trust", "-U", "bench", "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            **account,
        )
        if made.returncode:
            raise ServerFailedError(made.stderr.strip())
        settings = [word for pair in SETTINGS.items() for word in ("-c", "=".join(pair))]
        program = str(PROGRAMS[0] / "postgres")
        command = [program, "-D", str(data), "-k", str(folder), *settings]
        self.server = Server(command, folder, cpus, **account)
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
        return PostgresSpace(shared(self._folder, os.getpid(), self), self.schema, space)

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:
        return SQLSearch(spaces) if order == "round robin" else None

    def memory_bytes(self) -> int | None:
        with self.connect() as connection:
            sizes = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname ~ '^shape'"
            row = connection.execute(sizes + " AND relkind = 'r'").fetchone()
            return int(row[0] or 0)


@cache
def shared(folder: str, process: int, server: Postgres) -> Any:
    """The one connection of this process, for all its spaces."""
    del folder, process  # a forked child has another number, and so a connection of its own
    return server.connect()


class PostgresSpace(Handle):
    """One space, held by one process."""

    def __init__(self, connection: Any, schema: Schema, space: str) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._schema, self.name = schema, space
        self._statements = Statements(schema, "%s", lock=" FOR UPDATE SKIP LOCKED")
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

    def _look(self, texts: Texts, template: Fields) -> Fields | None:
        body = self._one(texts, template)
        return None if body is None else pickle.loads(body)

    def first_of(self, names: Sequence[str], template: Fields, *, take: bool) -> Any:
        """The row of a match in one of these spaces; None if there is none."""
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

    def try_take(self, *template: Any) -> Fields | None:
        return self._look(self._statements.take, template)

    def try_read(self, *template: Any) -> Fields | None:
        return self._look(self._statements.read, template)

    def count(self, *template: Any) -> int:
        count: int = self._one(self._statements.count, template)
        return count

    def close(self) -> None:
        """Leave the connection to the other spaces; it ends with this process."""
