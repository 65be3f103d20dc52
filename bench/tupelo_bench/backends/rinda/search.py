"""A search in several spaces of Rinda: a look at each in one message, then one template for all.

A pattern of Rinda is whatever `===` takes for one, so a regular expression over the names of the
spaces waits in all of them at once. Rejected: `notify`, which tells of every tuple that is written
and leaves the take to be tried; and a thread per space, whose takes would have to be given back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Found
from tupelo_bench.backends.rinda.space import fields_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.base import Fields
    from tupelo_bench.backends.rinda.space import RindaSpace


class RindaSearch:
    """Looks for a tuple that is in one of several spaces."""

    def __init__(self, spaces: Sequence[RindaSpace]) -> None:
        self._spaces = spaces

    def take(self, *template: Any) -> Found:
        """Remove a match, waiting for one."""
        return self._search("take", template)

    def read(self, *template: Any) -> Found:
        """Return a match, waiting for one."""
        return self._search("read", template)

    def _search(self, verb: str, template: Fields) -> Found:
        told = [space.told(template) for space in self._spaces]
        place, found, waited_ns = self._spaces[0].program.tell("search", [verb, told])
        looks = len(told) if waited_ns else 0
        return Found(
            fields_of(found), self._spaces[place], looks + place + 1, waited_ns / 1e9, trips=1
        )
