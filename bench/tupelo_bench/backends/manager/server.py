"""The manager's server process: the one store in it, and the proxy by which clients call it."""

from __future__ import annotations

import os
from multiprocessing.managers import BaseManager, BaseProxy
from typing import Any

from tupelo_bench.backends.manager.store import Store


class StoreProxy(BaseProxy):
    """One round trip per call."""

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the store."""
        return self._callmethod(method, arguments)


class StoreManager(BaseManager):
    """The server process; it listens on a Unix socket."""

    def pid(self) -> int | None:
        """That of the process, once it was started."""
        pid: int | None = self._process.pid  # type: ignore[attr-defined]
        return pid


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


def prepare(cpus: tuple[int, ...]) -> None:
    """Begin of the server process."""
    # Not above: to import it is what makes the process that forks end with the first.
    from tupelo_bench.harness.forkserver import die_with_the_first

    die_with_the_first()
    os.sched_setaffinity(0, cpus)
