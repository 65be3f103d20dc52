"""A space in the manager's store, and a search in several: one round trip per operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Fields, Found, Handle, Schema
from tupelo_bench.backends.batches import in_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo_bench.backends.manager.store import Shelf

BATCH = 1_000  # tuples per call of `put_all`: larger ones were not faster


class ManagerSpace(Handle):
    """One space, held by one process."""

    def __init__(self, proxy: Any, schema: Schema, space: str) -> None:
        self._call, self._schema, self.name = proxy.call, schema, space

    def first_of(self, spaces: Sequence[ManagerSpace], template: Fields, *, take: bool) -> Found:
        """A match in the first of these spaces that has one, in one round trip."""
        shape, key = self._schema.route(template)
        shelves = [(space.name, shape.tag) for space in spaces]
        place, fields, waited_s = self._call("get_first", shelves, key, take)
        looks = len(spaces) if waited_s else 0
        return Found(fields, spaces[place], looks + place + 1, waited_s, 1)

    def _item(self, fields: Fields) -> tuple[Shelf, str, Fields]:
        shape, key = self._schema.route(fields)
        return (self.name, shape.tag), key or "", fields

    def put(self, *fields: Any) -> None:
        self._call("put", [self._item(fields)])

    def put_all(self, tuples: Iterable[Fields]) -> None:
        for batch in in_batches(tuples, BATCH):
            self._call("put", [self._item(fields) for fields in batch])

    def _get(self, template: Fields, *, take: bool, wait: bool) -> Any:
        shape, key = self._schema.route(template)
        return self._call("get", (self.name, shape.tag), key, take, wait)

    def take(self, *template: Any) -> Fields:
        fields: Fields = self._get(template, take=True, wait=True)
        return fields

    def read(self, *template: Any) -> Fields:
        fields: Fields = self._get(template, take=False, wait=True)
        return fields

    def try_take(self, *template: Any) -> Fields | None:
        fields: Fields | None = self._get(template, take=True, wait=False)
        return fields

    def try_read(self, *template: Any) -> Fields | None:
        fields: Fields | None = self._get(template, take=False, wait=False)
        return fields

    def count(self, *template: Any) -> int:
        shape, key = self._schema.route(template)
        count: int = self._call("count", (self.name, shape.tag), key)
        return count

    def close(self) -> None:
        """Leave the connection to the end of the process."""


class ManagerSearch:
    """Looks for a tuple that is in one of several spaces."""

    def __init__(self, spaces: Sequence[ManagerSpace]) -> None:
        self._spaces = spaces

    def take(self, *template: Any) -> Found:
        """Remove a match, waiting for one."""
        return self._spaces[0].first_of(self._spaces, template, take=True)

    def read(self, *template: Any) -> Found:
        """Return a match, waiting for one."""
        return self._spaces[0].first_of(self._spaces, template, take=False)
