"""`multiprocessing.Manager`: one server process, one call to it per operation.

It is driven as its documentation advises for operations that the ready-made proxies cannot do: a
class of our own is registered. So an operation is one round trip, and a call waits in the server's
thread for that client. Each shape has a dictionary of queues by key, so nothing is ever searched. A
put hands its tuple to the client that has waited longest for it, and wakes no other. With one
condition variable for all, each put would wake as many threads as there are clients, all but one of
them in vain.
"""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend
from tupelo_bench.backends.manager.server import StoreManager, prepare
from tupelo_bench.backends.manager.space import ManagerSearch, ManagerSpace
from tupelo_bench.harness.lifetime import ServerFailedError
from tupelo_bench.harness.workers import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tupelo_bench.backends.base import Handle, VisitOrder


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
        self.server_pid = manager.pid()

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
