"""`multiprocessing.Manager`: one server process, one call to it per operation.

Driven as its documentation advises for what the ready-made proxies can not do: a class of our own
is registered, so that an operation is one round trip, and waiting happens in the server's thread
for that client. A dictionary of queues by key for each shape: no search, ever. A put hands its
tuple to who has waited longest for it, and wakes nobody else: with a condition for all, each put
would wake as many threads as there are clients, all but one of them in vain.
"""

from __future__ import annotations

import os
import platform
from multiprocessing.managers import BaseManager, BaseProxy
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Fields, Found, Handle, Schema
from tupelo.bench.backends.batches import in_batches
from tupelo.bench.backends.manager_store import Shelf, Store
from tupelo.bench.harness.lifetime import ServerFailedError, die_with_parent
from tupelo.bench.harness.workers import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tupelo.bench.backends.base import VisitOrder

BATCH = 1_000  # tuples per call of `put_all`: larger ones were not faster


class StoreProxy(BaseProxy):
    """One round trip per call."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the store."""
        return self._callmethod(method, arguments)


class StoreManager(BaseManager):
    """The server process; it listens on a Unix socket."""


STORE = Store()


def the_store() -> Store:
    """Return the one store of the server process."""
    return STORE


StoreManager.register(
    "store",
    the_store,
    StoreProxy,
    exposed=("put", "get", "get_first", "count", "clear", "memory_bytes"),
)


class Manager(Backend):
    """One process that holds everything."""

    name = "mp-manager"
    title = "multiprocessing.Manager"
    has_server = True
    how = (
        "A class of our own behind a manager on a Unix socket: one round trip per operation. A put"
        " hands its tuple to who has waited longest, and wakes nobody else."
    )
    _manager: StoreManager | None = None

    @classmethod
    def version(cls) -> str:
        return platform.python_version()

    def __getstate__(self) -> dict[str, Any]:
        """Without the manager: a client connects to its address."""
        return self.__dict__ | {"_manager": None}

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        self._address, self._secret = str(folder / "manager.sock"), os.urandom(16)
        # Not a fork of this process, whose free memory the first tuples would fill unseen.
        manager = StoreManager(self._address, self._secret, ctx=CONTEXT)
        try:
            manager.start(prepare, (tuple(cpus),))
        except EOFError as error:
            message = f"the manager did not start at {self._address} (107 bytes at most, TMPDIR)"
            raise ServerFailedError(message) from error
        self._manager = manager

    def stop(self) -> None:
        if self._manager is not None:
            self._manager.shutdown()
            self._manager = None

    def _proxy(self) -> Any:
        manager = StoreManager(self._address, self._secret)
        manager.connect()
        return manager.store()  # type: ignore[attr-defined]

    def drop(self) -> None:
        self._proxy().call("clear")

    def open(self, space: str) -> Handle:
        return ManagerSpace(self._proxy(), self.schema, space)

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:
        return ManagerSearch(spaces) if order == "round robin" else None

    def memory_bytes(self) -> int | None:
        memory: int = self._proxy().call("memory_bytes")
        return memory


def prepare(cpus: tuple[int, ...]) -> None:
    """Begin of the server process."""
    die_with_parent()
    os.sched_setaffinity(0, cpus)


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
