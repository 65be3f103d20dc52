"""What the manager's server process holds: queues of tuples, and a line of waiters for each.

Every method is called in the thread of the client that asked, and is one step for all others.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections import defaultdict, deque
from threading import Lock
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Fields, resident_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

Shelf = tuple[str, str]  # space, tag


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
        # A tuple that was put while there was none with its key stands there itself: a queue would
        # take several times its room, and under most keys there is never a second one.
        self._queues: dict[Shelf, dict[str, Fields | deque[Fields]]] = defaultdict(dict)
        # By what they wait for; a key of None is any. The order of a dictionary is that of arrival.
        self._waiters: dict[tuple[Shelf, str | None], dict[Waiter, int]] = {}

    def put(self, tuples: list[tuple[Shelf, str, Fields]]) -> None:
        """Add tuples."""
        with self._lock:
            for shelf, key, fields in tuples:
                if not (self._waiters and self._handed(shelf, key, fields)):
                    self._added(self._queues[shelf], key, fields)

    def _added(self, queues: dict[str, Fields | deque[Fields]], key: str, fields: Fields) -> None:
        there = queues.get(key)
        if there is None:
            queues[key] = fields
        elif isinstance(there, deque):
            there.append(fields)
        else:
            queues[key] = deque((there, fields))

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
        if not isinstance(queue, deque):
            if take:
                del queues[key]
            return queue
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
                return _many(queues.get(key))
            return sum(map(_many, queues.values()))

    def waiting(self) -> int:
        """How many threads wait for a tuple."""
        with self._lock:
            return len(set().union(*self._waiters.values()))

    def clear(self) -> None:
        """Forget everything, and who waits: the thread of a dead client is in line still."""
        with self._lock:
            self._queues.clear()
            for waiter in set().union(*self._waiters.values()):
                waiter.handed.release()
            self._waiters.clear()
        release_memory()

    def memory_bytes(self) -> int:
        """What this process has in memory, without what it only has not given back yet."""
        release_memory()
        return resident_bytes("self")


def _many(there: Fields | deque[Fields] | None) -> int:
    """How many tuples are under a key."""
    return len(there) if isinstance(there, deque) else int(there is not None)


def release_memory() -> None:
    """Give back what is free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
