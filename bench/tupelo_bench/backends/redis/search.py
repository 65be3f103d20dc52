"""A search in several spaces of Redis: a script, then BLPOP of all lists if it has to wait.

For a read there is no such command: BLMOVE waits for one list. So a read looks again, soon at first
and then every millisecond, as in a database that sends no notifications. Many readers that look
without a pause would take the one thread of the server from the writers.
"""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.redis.space import RedisSpace

LOOKS_SOON = 20  # looks without a pause
PAUSE_S = 0.001

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
        visited, trips, waited_s = 0, 1, 0.0
        while (found := self._first_of(names, ["read"])) is None:
            visited += len(names)
            if trips > LOOKS_SOON:
                begin = time.perf_counter()
                time.sleep(PAUSE_S)
                waited_s += time.perf_counter() - begin
            trips += 1
        return self._found(found[0] - 1, found[1], visited, waited_s, trips)

    def _found(
        self, place: int, body: bytes, visited: int, waited_s: float, trips: int = 1
    ) -> Found:
        space, visited = self._spaces[place], visited + place + 1
        return Found(pickle.loads(body), space, visited, waited_s, trips)
