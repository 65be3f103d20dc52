"""A space in Rinda, by way of a Ruby program.

Rinda finds a tuple by its first field where that is a symbol, and else looks at all: so the first
field is made of space, tag and keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.batches import SelfTimed, in_batches
from tupelo_bench.backends.rinda.program import ANY, Program, as_json, from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo_bench.backends.base import Fields, Schema

BATCH = 1_000  # tuples per line of `put_all`


def fields_of(found: list[Any]) -> Fields:
    """The tuple that the Ruby program has found: behind the names of space and shelf."""
    return tuple(map(from_json, found[2:]))


class RindaSpace(SelfTimed):
    """One space, held by one process."""

    def __init__(self, program: Program, schema: Schema, space: str) -> None:
        self.program, self._schema, self._space = program, schema, space

    def told(self, fields: Fields) -> list[Any]:
        """A tuple or a template, as the Ruby program is told of it."""
        shape, key = self._schema.route(fields)
        shelf = f"{self._space}:{shape.tag}"
        first = ANY if key is None else {"shelf": f"{shelf}:{key}"}
        return [first, shelf, *map(as_json, fields)]

    def put_each(self, tuples: Sequence[Fields]) -> int:
        return int(self.program.tell("put_each", list(map(self.told, tuples))))

    def take_each(self, templates: Sequence[Fields]) -> tuple[int, list[Fields]]:
        take_ns, taken = self.program.tell("take_each", list(map(self.told, templates)))
        return int(take_ns), list(map(fields_of, taken))

    def _ask(self, verb: str, template: Fields) -> Any:
        found = self.program.tell(verb, self.told(template))
        return None if found is None else fields_of(found)

    def put(self, *fields: Any) -> None:
        self.program.tell("put", self.told(fields))

    def put_all(self, tuples: Iterable[Fields]) -> None:
        for batch in in_batches(tuples, BATCH):
            self.program.tell("put_all", list(map(self.told, batch)))

    def take(self, *template: Any) -> Fields:
        fields: Fields = self._ask("take", template)
        return fields

    def read(self, *template: Any) -> Fields:
        fields: Fields = self._ask("read", template)
        return fields

    def try_take(self, *template: Any) -> Fields | None:
        fields: Fields | None = self._ask("try_take", template)
        return fields

    def try_read(self, *template: Any) -> Fields | None:
        fields: Fields | None = self._ask("try_read", template)
        return fields

    def count(self, *template: Any) -> int:
        return int(self.program.tell("count", self.told(template)))

    def close(self) -> None:
        """Leave the program to the other spaces; it ends with this process."""


class InsideRindaSpace(RindaSpace):
    """A space in a program of its own."""

    def close(self) -> None:
        self.program.close()
