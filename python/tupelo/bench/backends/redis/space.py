"""A space in Redis.

RPUSH puts, BLPOP takes and waits, LPOP takes at once, LINDEX reads. A blocking read is BLMOVE of a
list's head onto its own head: it waits, and changes nothing.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Fields, Handle, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

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
