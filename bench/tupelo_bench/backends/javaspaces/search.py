"""A search in several spaces of JavaSpaces: one question to one server, which waits.

A take is given a template per space (`JavaSpace05.take` of a collection). There is no such call for
a read. It is given a template of the shape itself, which its subclasses match. Rejected: a thread
per space, whose takes would have to be given back. Rejected, too: events (`notify` or
`registerForAvailabilityEvent`). They need a look, a registration, a second look, the event and a
third look, where one call is enough. They would be the means if the spaces were on several servers.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.javaspaces.space import JavaSpace


class JavaSpaceSearch:
    """Looks for a tuple that is in one of several spaces."""

    def __init__(self, spaces: Sequence[JavaSpace]) -> None:
        self._spaces, first = spaces, spaces[0]
        self._proxy, self._tools, self._forever = first.proxy, first.tools, first.forever

    def take(self, *template: Any) -> Found:
        """Remove a match, waiting for one."""
        templates = [space.entry(template) for space in self._spaces]
        asked = self._tools.listOf(templates)
        # A first look of its own tells what is a look from what is waiting.
        if (taken := self._tools.takeAny(self._proxy, asked, 0)) is not None:
            return self._found(taken, templates, 0, 0.0)
        begin = perf_counter()
        taken = self._tools.takeAny(self._proxy, asked, self._forever)
        return self._found(taken, templates, len(templates), perf_counter() - begin)

    def read(self, *template: Any) -> Found:
        """Return a match, waiting for one."""
        templates = [space.entry(template) for space in self._spaces]
        of_all = self._spaces[0].template_of_all(template)
        looks, waited_s = 0, 0.0
        if (seen := self._proxy.readIfExists(of_all, None, 0)) is None:
            begin = perf_counter()
            seen = self._proxy.read(of_all, None, self._forever)
            looks, waited_s = len(templates), perf_counter() - begin
        classes = list(map(type, templates))
        trips = 1
        while seen is None or type(seen) not in classes:
            # It is in a space that was not asked for, so that waiting would end at once. No
            # experiment has such tuples.
            seen = self._tools.readAny(self._proxy, self._tools.listOf(templates))
            looks, trips = looks + len(templates), trips + 1
        return self._found(seen, templates, looks, waited_s, trips)

    def _found(
        self, entry: Any, templates: Sequence[Any], looks: int, waited_s: float, trips: int = 1
    ) -> Found:
        place = list(map(type, templates)).index(type(entry))
        space = self._spaces[place]
        return Found(space.fields(entry), space, looks + place + 1, waited_s, trips)
