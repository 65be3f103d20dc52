"""A space in JavaSpaces; in a batch, Java times the puts and takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.batches import SelfTimed, in_batches
from tupelo_bench.backends.javaspaces.bridge import Bridge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo_bench.backends.base import Fields, Schema

BATCH = 1_000  # entries per call of `put_all`


class JavaSpace(SelfTimed):
    """One space, held by one process."""

    def __init__(self, jpype: Any, proxy: Any, schema: Schema, space: str) -> None:
        self._jpype, self.proxy = jpype, proxy
        self.tools = jpype.JClass("Entries")
        self.forever = jpype.JClass("java.lang.Long").MAX_VALUE
        bridge = Bridge(jpype, schema, space)
        self.entry, self.fields = bridge.entry, bridge.fields
        self.template_of_all = bridge.template_of_all

    def _found(self, entry: Any) -> Fields | None:
        return None if entry is None else self.fields(entry)

    def put(self, *fields: Any) -> None:
        self.proxy.write(self.entry(fields), None, self.forever)

    def put_all(self, tuples: Iterable[Fields]) -> None:
        for batch in in_batches(tuples, BATCH):
            self.tools.writeAll(self.proxy, list(map(self.entry, batch)))

    def put_each(self, tuples: Sequence[Fields]) -> int:
        return int(self.tools.writeEach(self.proxy, list(map(self.entry, tuples))))

    def take_each(self, templates: Sequence[Fields]) -> tuple[int, list[Fields]]:
        taken = self._jpype.JArray(self._jpype.JClass("Entries$Shape"))(len(templates))
        take_ns = self.tools.takeEach(self.proxy, list(map(self.entry, templates)), taken)
        return int(take_ns), list(map(self.fields, taken))

    def take(self, *template: Any) -> Fields:
        return self.fields(self.proxy.take(self.entry(template), None, self.forever))

    def read(self, *template: Any) -> Fields:
        return self.fields(self.proxy.read(self.entry(template), None, self.forever))

    def try_take(self, *template: Any) -> Fields | None:
        return self._found(self.proxy.takeIfExists(self.entry(template), None, 0))

    def try_read(self, *template: Any) -> Fields | None:
        return self._found(self.proxy.readIfExists(self.entry(template), None, 0))

    def count(self, *template: Any) -> int:
        return int(self.tools.count(self.proxy, self.entry(template)))

    def close(self) -> None:
        """Leave the machine to the end of the process."""
