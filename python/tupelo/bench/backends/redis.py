"""Redis on a Unix socket: a list per space, shape and key; Lua for a template without keys.

RPUSH puts, BLPOP takes and waits, LPOP takes at once, LINDEX reads. A blocking read is BLMOVE of a
list's head onto its own head: it waits, and changes nothing.
"""

from __future__ import annotations

import pickle
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Fields, Found, Handle, Schema
from tupelo.bench.backends.installed import lacking
from tupelo.bench.harness.lifetime import Server

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tupelo.bench.backends.base import VisitOrder

BATCH = 10_000  # commands per pipeline

# The first list with tuples among those of a shape; KEYS is no scan of tuples, but of list names.
ANY_OF = """
local total = 0
for _, name in ipairs(redis.call('KEYS', ARGV[1])) do
  if ARGV[2] == 'count' then total = total + redis.call('LLEN', name)
  elseif ARGV[2] == 'take' then return redis.call('LPOP', name)
  else return redis.call('LINDEX', name, 0) end
end
return ARGV[2] == 'count' and total or nil
"""

# The first of some lists that has a tuple.
FIRST_OF = """
for place, name in ipairs(KEYS) do
  local found
  if ARGV[1] == 'take' then found = redis.call('LPOP', name)
  else found = redis.call('LINDEX', name, 0) end
  if found then return {place, found} end
end
return nil
"""


class Redis(Backend):
    """A server process without persistence."""

    name = "redis"
    title = "Redis"
    has_server = True
    how = (
        "A Unix socket, redis-py with hiredis, no persistence; a list per shape and key. A search"
        " in several spaces is one script, then BLPOP of all lists if it takes and has to wait."
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

        told = subprocess.run(
            ["redis-server", "--version"], capture_output=True, text=True, check=True
        ).stdout.split()
        return f"{told[2].removeprefix('v=')}, redis-py {version('redis')}"

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        self._socket = str(folder / "redis.sock")
        command = ["redis-server", "--port", "0", "--unixsocket", self._socket]
        command += ["--save", "", "--appendonly", "no", "--dir", str(folder)]
        self.server = Server(command, folder, cpus)
        self.server.wait_until(self._answers)

    def _client(self) -> Any:
        import redis

        # One connection, kept: to borrow one from a pool for each command adds a third.
        return redis.Redis(unix_socket_path=self._socket, single_connection_client=True)

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


class RedisSpace(Handle):
    """One space, held by one process."""

    def __init__(self, client: Any, schema: Schema, space: str) -> None:
        self.client, self._schema, self._space = client, schema, space
        self._any_of = client.register_script(ANY_OF)

    def list_of(self, fields: Fields) -> str:
        """The list of a tuple or template; a pattern for all of the shape without its keys."""
        shape, key = self._schema.route(fields)
        return f"{self._space}:{shape.tag}:{'*' if key is None else key}"

    def put(self, *fields: Any) -> None:
        self.client.rpush(self.list_of(fields), pickle.dumps(fields, pickle.HIGHEST_PROTOCOL))

    def put_all(self, tuples: Iterable[Fields]) -> None:
        pipeline = self.client.pipeline(transaction=False)
        for fields in tuples:
            pipeline.rpush(self.list_of(fields), pickle.dumps(fields, pickle.HIGHEST_PROTOCOL))
            if len(pipeline) == BATCH:
                pipeline.execute()
        pipeline.execute()

    def take(self, *template: Any) -> Fields:
        name = self.list_of(template)
        if name.endswith("*"):
            message = f"waiting without a key is not foreseen: {template!r}"
            raise ValueError(message)
        fields: Fields = pickle.loads(self.client.blpop([name])[1])
        return fields

    def read(self, *template: Any) -> Fields:
        name = self.list_of(template)
        body = self.client.lindex(name, 0) or self.client.blmove(name, name, 0, "LEFT", "LEFT")
        fields: Fields = pickle.loads(body)
        return fields

    def try_take(self, *template: Any) -> Fields | None:
        name = self.list_of(template)
        if name.endswith("*"):
            return self._loaded(self._any_of(args=[name, "take"]))
        return self._loaded(self.client.lpop(name))

    def try_read(self, *template: Any) -> Fields | None:
        name = self.list_of(template)
        if name.endswith("*"):
            return self._loaded(self._any_of(args=[name, "read"]))
        return self._loaded(self.client.lindex(name, 0))

    def _loaded(self, body: bytes | None) -> Fields | None:
        return None if body is None else pickle.loads(body)

    def count(self, *template: Any) -> int:
        name = self.list_of(template)
        count = self._any_of(args=[name, "count"]) if "*" in name else self.client.llen(name)
        return int(count)

    def close(self) -> None:
        self.client.close()


class RedisSearch:
    """Looks for a tuple that is in one of several spaces."""

    def __init__(self, spaces: Sequence[RedisSpace]) -> None:
        self._spaces = spaces
        self._client = spaces[0].client
        self._first_of = self._client.register_script(FIRST_OF)

    def take(self, *template: Any) -> Found:
        """Remove a match, waiting for one in all lists at once."""
        names = [space.list_of(template) for space in self._spaces]
        if (found := self._first_of(names, ["take"])) is not None:
            return self._found(found[0] - 1, found[1], 0, 0.0)
        begin = time.perf_counter()
        name, body = self._client.blpop(names)
        waited_s = time.perf_counter() - begin
        return self._found(names.index(name.decode()), body, len(names), waited_s)

    def read(self, *template: Any) -> Found:
        """Return a match; Redis can not wait for one without taking it, so this looks again."""
        names = [space.list_of(template) for space in self._spaces]
        visited, trips = 0, 1
        while (found := self._first_of(names, ["read"])) is None:
            visited += len(names)
            trips += 1
        return self._found(found[0] - 1, found[1], visited, 0.0, trips)

    def _found(
        self, place: int, body: bytes, visited: int, waited_s: float, trips: int = 1
    ) -> Found:
        space, visited = self._spaces[place], visited + place + 1
        return Found(pickle.loads(body), space, visited, waited_s, trips)
