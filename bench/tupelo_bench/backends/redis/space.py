"""A space in Redis.

RPUSH puts, BLPOP takes and waits, LPOP takes at once, LINDEX reads. A blocking read is BLMOVE of a
list's head onto its own head: it waits, and changes nothing.
"""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Fields, Handle, Schema, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable

BATCH = 10_000  # commands per pipeline
SPECIAL = re.compile(r"[*?[\\]")  # in a pattern of KEYS

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
        """The list of a tuple, or of a template that names its keys."""
        shape, key = self._schema.route(fields)
        if key is None:
            message = f"waiting without a key is not foreseen: {fields!r}"
            raise ValueError(message)
        return self._name(shape, key)

    def _name(self, shape: Shape, key: str) -> str:
        return f"{self._space}:{shape.tag}:{key}"

    def _all_of(self, shape: Shape) -> str:
        """A pattern for all lists of a shape."""
        return SPECIAL.sub(r"\\\g<0>", self._name(shape, "")) + "*"

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
        fields: Fields = pickle.loads(self.client.blpop([self.list_of(template)])[1])
        return fields

    def read(self, *template: Any) -> Fields:
        name = self.list_of(template)
        body = self.client.lindex(name, 0) or self.client.blmove(name, name, 0, "LEFT", "LEFT")
        fields: Fields = pickle.loads(body)
        return fields

    def try_take(self, *template: Any) -> Fields | None:
        shape, key = self._schema.route(template)
        if key is None:
            return self._loaded(self._any_of(args=[self._all_of(shape), "take"]))
        return self._loaded(self.client.lpop(self._name(shape, key)))

    def try_read(self, *template: Any) -> Fields | None:
        shape, key = self._schema.route(template)
        if key is None:
            return self._loaded(self._any_of(args=[self._all_of(shape), "read"]))
        return self._loaded(self.client.lindex(self._name(shape, key), 0))

    def _loaded(self, body: bytes | None) -> Fields | None:
        return None if body is None else pickle.loads(body)

    def count(self, *template: Any) -> int:
        shape, key = self._schema.route(template)
        if key is None:
            count = self._any_of(args=[self._all_of(shape), "count"])
        else:
            count = self.client.llen(self._name(shape, key))
        return int(count)

    def close(self) -> None:
        self.client.close()
