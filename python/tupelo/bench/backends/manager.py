"""`multiprocessing.Manager`: one server process, one call to it per operation.

Driven as its documentation advises for what the ready-made proxies can not do: a class of our own
is registered, so that an operation is one round trip, and waiting happens in the server's thread
for that client. A dictionary of queues by key for each shape: no search, ever. A put hands its
tuple to who has waited longest for it, and wakes nobody else: with a condition for all, each put
would wake as many threads as there are clients, all but one of them in vain.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import time
from collections import defaultdict, deque
from multiprocessing.managers import BaseManager, BaseProxy
from threading import Lock
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Fields, Found, Handle, Schema, resident_bytes
from tupelo.bench.backends.batches import in_batches
from tupelo.bench.harness.lifetime import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tupelo.bench.backends.base import VisitOrder

Shelf = tuple[str, str]  # space, tag
BATCH = 1_000  # tuples per call of `put_all`: larger ones were not faster


class Waiter:
    """A thread that waits for a tuple in one of some places."""

    def __init__(self, places: Sequence[tuple[Shelf, str | None]], *, take: bool) -> None:
        self.places, self.take = places, take
        self.place, self.fields = 0, ()  # what it was handed: where that was, and what
        self.handed = Lock()
        self.handed.acquire()  # who hands it something releases it


class Store:
    """What the server process holds."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._queues: dict[Shelf, dict[str, deque[Fields]]] = defaultdict(dict)
        # By what they wait for; a key of None is any. The order of a dictionary is that of arrival.
        self._waiters: dict[tuple[Shelf, str | None], dict[Waiter, int]] = {}

    def put(self, tuples: list[tuple[Shelf, str, Fields]]) -> None:
        """Add tuples."""
        with self._lock:
            for shelf, key, fields in tuples:
                if not (self._waiters and self._handed(shelf, key, fields)):
                    self._queues[shelf].setdefault(key, deque()).append(fields)

    def _handed(self, shelf: Shelf, key: str, fields: Fields) -> bool:
        """Hand a tuple to those who wait for it; whether one of them took it."""
        for place in ((shelf, key), (shelf, None)):
            for waiter in list(self._waiters.get(place, ())):
                waiter.place, waiter.fields = self._waiters[place][waiter], fields
                for each in waiter.places:
                    del self._waiters[each][waiter]
                    if not self._waiters[each]:
                        del self._waiters[each]
                waiter.handed.release()
                if waiter.take:
                    return True
        return False

    def _found(self, shelf: Shelf, key: str | None, *, take: bool) -> Fields | None:
        queues = self._queues.get(shelf)
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

    def get(self, shelf: Shelf, key: str | None, take: bool, wait: bool) -> Fields | None:  # noqa: FBT001
        """A match, removed or not, waited for or not."""
        with self._lock:
            found = self._found(shelf, key, take=take)
            if found is not None or not wait:
                return found
            waiter = self._in_line([(shelf, key)], take=take)
        waiter.handed.acquire()
        return waiter.fields

    def get_first(self, shelves: Sequence[Shelf], key: str | None, take: bool) -> Any:  # noqa: FBT001
        """A match in the first shelf that has one: its place, the tuple, what was waited."""
        with self._lock:
            for place, shelf in enumerate(shelves):
                if (found := self._found(shelf, key, take=take)) is not None:
                    return place, found, 0.0
            begin = time.monotonic()
            waiter = self._in_line([(shelf, key) for shelf in shelves], take=take)
        waiter.handed.acquire()
        return waiter.place, waiter.fields, time.monotonic() - begin

    def _in_line(self, places: Sequence[tuple[Shelf, str | None]], *, take: bool) -> Waiter:
        waiter = Waiter(places, take=take)
        for number, place in enumerate(places):
            self._waiters.setdefault(place, {})[waiter] = number
        return waiter

    def count(self, shelf: Shelf, key: str | None) -> int:
        """How many there are."""
        with self._lock:
            queues = self._queues.get(shelf, {})
            if key is not None:
                return len(queues.get(key, ()))
            return sum(map(len, queues.values()))

    def waiting(self) -> int:
        """How many threads wait for a tuple."""
        with self._lock:
            return len(set().union(*self._waiters.values()))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._queues.clear()
        release_memory()

    def memory_bytes(self) -> int:
        """What this process has in memory, without what it only has not given back yet."""
        release_memory()
        return resident_bytes("self")


def release_memory() -> None:
    """Give back what is free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


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
        self._manager = StoreManager(self._address, self._secret)
        self._manager.start(prepare, (tuple(cpus),))

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
