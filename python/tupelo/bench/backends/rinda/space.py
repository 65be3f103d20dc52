"""A space in Rinda, by way of a Ruby program.

Rinda finds a tuple by its first field where that is a symbol, and else looks at all: so the first
field is made of space, tag and keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.batches import SelfTimed, in_batches
from tupelo.bench.backends.rinda.program import ANY, Program, as_json, from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo.bench.backends.base import Fields, Schema

BATCH = 1_000  # tuples per line of `put_all`


class RindaSpace(SelfTimed):
    """One space, held by one process."""

    def __init__(self, program: Program, schema: Schema, space: str) -> None:
        self._program, self._schema, self._space = program, schema, space

    def _told(self, fields: Fields) -> list[Any]:
        shape, key = self._schema.route(fields)
        shelf = f"{self._space}:{shape.tag}"
        first = ANY if key is None else {"shelf": f"{shelf}:{key}"}
        return [first, shelf, *map(as_json, fields)]

    def put_each(self, tuples: Sequence[Fields]) -> int:
        return int(self._program.tell("put_each", list(map(self._told, tuples))))

    def take_each(self, templates: Sequence[Fields]) -> tuple[int, list[Fields]]:
        take_ns, taken = self._program.tell("take_each", list(map(self._told, templates)))
        return int(take_ns), [tuple(map(from_json, found[2:])) for found in taken]

    def _ask(self, verb: str, template: Fields) -> Any:
        found = self._program.tell(verb, self._told(template))
        return None if found is None else tuple(map(from_json, found[2:]))

    def put(self, *fields: Any) -> None:
        self._program.tell("put", self._told(fields))

    def put_all(self, tuples: Iterable[Fields]) -> None:
        for batch in in_batches(tuples, BATCH):
            self._program.tell("put_all", list(map(self._told, batch)))

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
        return int(self._program.tell("count", self._told(template)))

    def close(self) -> None:
        """Leave the program to the other spaces; it ends with this process."""


class InsideRindaSpace(RindaSpace):
    """A space in a program of its own."""

    def close(self) -> None:
        self._program.close()
