"""A search in several spaces of a database."""

from __future__ import annotations

import pickle
import time
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.base import Fields
    from tupelo_bench.backends.sql.space import SQLSpace


class SQLSearch:
    """Looks for a tuple that is in one of several spaces: one statement."""

    def __init__(self, spaces: Sequence[SQLSpace]) -> None:
        self._spaces = spaces
        self._places = {space.name: place for place, space in enumerate(spaces)}

    def take(self, *template: Any) -> Found:
        """Remove a match, waiting for one."""
        return self._search(template, take=True)

    def read(self, *template: Any) -> Found:
        """Return a match, waiting for one."""
        return self._search(template, take=False)

    def _search(self, template: Fields, *, take: bool) -> Found:
        own, names = self._spaces[0], list(self._places)
        visited, looks, waited_s = 0, 0, 0.0
        while (row := own.first_of(names, template, take=take)) is None:
            visited += len(names)
            begin = time.perf_counter()
            looks += 1
            own.pause(names, template, looks)
            waited_s += time.perf_counter() - begin
        place = self._places[row[0]]
        space, visited = self._spaces[place], visited + place + 1
        return Found(pickle.loads(row[1]), space, visited, waited_s, looks + 1)
