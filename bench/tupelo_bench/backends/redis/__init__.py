"""Redis on a Unix socket: a list per space, shape and key; Lua for a template without keys."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend
from tupelo_bench.backends.installed import lacking, said_by
from tupelo_bench.backends.redis.search import RedisSearch
from tupelo_bench.backends.redis.space import RedisSpace
from tupelo_bench.harness.lifetime import Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tupelo_bench.backends.base import Handle, VisitOrder


class Redis(Backend):
    """A server process without persistence."""

    name = "redis"
    title = "Redis"
    has_server = True
    how = (
        "A Unix socket, redis-py with hiredis, no persistence; a list per shape and key. A search"
        " in several spaces is one script, then BLPOP of all lists if it takes and has to wait; if"
        " it reads, it looks again, after twenty looks every millisecond."
    )
    how_to_install = "apt-get install redis-server; pip install redis hiredis"

    @classmethod
    def missing(cls) -> str | None:
        if shutil.which("redis-server") is None:
            return "no redis-server"
        return lacking("hiredis", "redis")

    @classmethod
    def version(cls) -> str:
        from importlib.metadata import version

        told = said_by("redis-server", "--version").split()
        return f"{told[2].removeprefix('v=')}, redis-py {version('redis')}"

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        self._socket = str(folder / "redis.sock")
        command = ["redis-server", "--port", "0", "--unixsocket", self._socket]
        command += ["--save", "", "--appendonly", "no", "--dir", str(folder)]
        self.server = Server(command, folder, cpus)
        self.server.wait_until(self._answers)

    def _client(self) -> Any:
        import redis

        # One connection, kept: to borrow one from a pool for each command adds a third. Nobody's
        # wait is cut short, and no call asks first whether it would wait, as with a time limit.
        return redis.Redis(
            unix_socket_path=self._socket, single_connection_client=True, socket_timeout=None
        )

    def _answers(self) -> bool:
        import redis

        try:
            return bool(self._client().ping())
        except redis.ConnectionError:
            return False

    def drop(self) -> None:
        self._client().flushall()

    def open(self, space: str) -> Handle:
        return RedisSpace(self._client(), self.schema, space)

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:
        return RedisSearch(spaces) if order == "round robin" else None

    def memory_bytes(self) -> int | None:
        memory: int = self._client().info("memory")["used_memory"]
        return memory
