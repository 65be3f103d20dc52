"""Plain structures behind a lock, within one process: what a space could be compared with.

A dictionary has a queue for each shape and key. A list has all tuples, and looks through them.
Neither is shared with another process, and neither survives its own.
"""

from __future__ import annotations

import platform
from abc import abstractmethod
from collections import deque
from threading import Condition
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend, Handle, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.base import Fields

NO_MEMORY = "it shares the memory of the program that measures"


class PlainHandle(Handle):
    """One space: a structure, and the lock of it."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._changed = Condition()

    @abstractmethod
    def _add(self, fields: Fields) -> None:
        """Add a tuple, behind all of its shape and key."""

    @abstractmethod
    def _find(self, template: Fields, *, take: bool) -> Fields | None:
        """Return the oldest match, and remove it if it is taken; None if there is none."""

    def put(self, *fields: Any) -> None:
        with self._changed:
            self._add(fields)
            self._changed.notify_all()

    def _wait(self, template: Fields, *, take: bool) -> Fields:
        with self._changed:
            while (found := self._find(template, take=take)) is None:
                self._changed.wait()
            return found

    def take(self, *template: Any) -> Fields:
        return self._wait(template, take=True)

    def read(self, *template: Any) -> Fields:
        return self._wait(template, take=False)

    def try_take(self, *template: Any) -> Fields | None:
        with self._changed:
            return self._find(template, take=True)

    def try_read(self, *template: Any) -> Fields | None:
        with self._changed:
            return self._find(template, take=False)

    def close(self) -> None:
        """Leave it to the backend, which holds it."""


class DictHandle(PlainHandle):
    """A queue for each shape and key."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self._queues: dict[str, dict[str, deque[Fields]]] = {}

    def _add(self, fields: Fields) -> None:
        shape, key = self._schema.route(fields)
        self._queues.setdefault(shape.tag, {}).setdefault(key or "", deque()).append(fields)

    def _find(self, template: Fields, *, take: bool) -> Fields | None:
        shape, key = self._schema.route(template)
        queues = self._queues.get(shape.tag)
        if not queues:
            return None
        if key is None:
            key = next(iter(queues))
        queue = queues.get(key)
        if queue is None:
            return None
        if not take:
            return queue[0]
        fields = queue.popleft()
        if not queue:
            del queues[key]
        return fields

    def count(self, *template: Any) -> int:
        shape, key = self._schema.route(template)
        with self._changed:
            queues = self._queues.get(shape.tag, {})
            if key is not None:
                return len(queues.get(key, ()))
            return sum(map(len, queues.values()))


class ListHandle(PlainHandle):
    """All tuples in the order in which they came."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self._tuples: list[tuple[str, str, Fields]] = []

    def _add(self, fields: Fields) -> None:
        shape, key = self._schema.route(fields)
        self._tuples.append((shape.tag, key or "", fields))

    def _find(self, template: Fields, *, take: bool) -> Fields | None:
        shape, key = self._schema.route(template)
        for place, (tag, its_key, fields) in enumerate(self._tuples):
            if tag == shape.tag and key in (None, its_key):
                if take:
                    del self._tuples[place]
                return fields
        return None

    def count(self, *template: Any) -> int:
        shape, key = self._schema.route(template)
        with self._changed:
            return sum(tag == shape.tag and key in (None, k) for tag, k, _ in self._tuples)


class PlainDict(Backend):
    """Dictionaries of queues."""

    name = "plain-dict"
    title = "a dictionary behind a lock"
    how = "A dictionary of queues by key, and a condition variable, within one process."
    one_process = True
    no_memory = NO_MEMORY
    handle: type[PlainHandle] = DictHandle

    def __init__(self) -> None:
        super().__init__()
        self._handles: dict[str, PlainHandle] = {}

    @classmethod
    def version(cls) -> str:
        return platform.python_version()

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        super().create(schema, spaces, size_bytes)
        self._handles = {}

    def drop(self) -> None:
        self._handles = {}

    def open(self, space: str) -> Handle:
        # Made by the process that uses it: nobody else could.
        return self._handles.setdefault(space, self.handle(self.schema))


class PlainList(PlainDict):
    """A list that is looked through."""

    name = "plain-list"
    title = "a list behind a lock"
    how = "A list that each take looks through from its oldest tuple on, within one process."
    handle = ListHandle
