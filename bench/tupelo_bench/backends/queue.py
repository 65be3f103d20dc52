"""`multiprocessing.Queue`: a queue per space and shape; without keys, without reads."""

from __future__ import annotations

import platform
from io import UnsupportedOperation
from queue import Empty
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend, Fields, Handle, Schema
from tupelo_bench.harness.workers import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NO_READS = "a queue can not be looked into without taking: {}"


class Queue(Backend):
    """A pipe with a lock at each end, and a thread that fills it."""

    name = "mp-queue"
    title = "multiprocessing.Queue"
    how = (
        "A queue per shape. A put returns when the tuple is in a list of the putting process; a"
        " thread of its own pickles and sends it later. No reads, no keys."
    )
    no_memory = (
        "a queue has no store: what does not fit into its pipe of 64 KiB stays in the putting"
        " process, as the objects that this had anyway"
    )

    @classmethod
    def version(cls) -> str:
        return platform.python_version()

    def lacks(self, schema: Schema) -> str | None:
        if schema.outlive:
            return "what does not fit into a pipe stays in the process that put it"
        keyed = [shape.tag for shape in schema.shapes if shape.keys]
        return f"a queue can not be asked for a key ({', '.join(keyed)})" if keyed else None

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        super().create(schema, spaces, size_bytes)
        self._queues: Mapping[tuple[str, str], Any] = {
            (space, shape.tag): CONTEXT.Queue() for space in spaces for shape in schema.shapes
        }

    def drop(self) -> None:
        for queue in self._queues.values():
            queue.close()
        self._queues = {}

    def open(self, space: str) -> Handle:
        return QueueSpace(
            {tag: queue for (of, tag), queue in self._queues.items() if of == space}, self.schema
        )


class QueueSpace(Handle):
    """One space, held by one process."""

    def __init__(self, queues: Mapping[str, Any], schema: Schema) -> None:
        self._queues, self._schema = queues, schema

    def put(self, *fields: Any) -> None:
        self._queues[self._schema.route(fields)[0].tag].put(fields)

    def take(self, *template: Any) -> Fields:
        fields: Fields = self._queues[self._schema.route(template)[0].tag].get()
        return fields

    def try_take(self, *template: Any) -> Fields | None:
        try:
            fields: Fields = self._queues[self._schema.route(template)[0].tag].get_nowait()
        except Empty:
            return None
        return fields

    def read(self, *template: Any) -> Fields:
        raise UnsupportedOperation(_NO_READS.format(template))

    def try_read(self, *template: Any) -> Fields | None:
        raise UnsupportedOperation(_NO_READS.format(template))

    def count(self, *template: Any) -> int:
        count: int = self._queues[self._schema.route(template)[0].tag].qsize()
        return count

    def close(self) -> None:
        """Leave it to the end of the process, which first sends what it has put."""

    def abandon(self) -> None:
        """Let the process end without sending what it has put: nobody reads it."""
        for queue in self._queues.values():
            queue.cancel_join_thread()
