"""Tupelo itself: `shm://` for processes, `mem://` for one process alone."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import tupelo as ts
from tupelo_bench.backends.base import Backend, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tupelo_bench.backends.base import VisitOrder

OWNED = re.compile(r"bench-(\d+)-.+")
ROOM_BYTES = 64 << 20  # beside the tuples: each shape and each client has blocks of its own
ROOM_FACTOR = 6  # a small tuple takes several times its payload, with its index


class SharedSpace(Backend):
    """`shm://`: a segment per space, mapped by every process."""

    name = "tupelo-shm"
    title = "Tupelo, shm://"
    scheme: ClassVar[str] = "shm"
    share = 2.0  # every comparison and most targets need its cells

    @classmethod
    def version(cls) -> str:
        return ts.__version__

    @classmethod
    def url(cls, space: str, owner: int) -> str:
        """The address of a space of the suite that process `owner` runs."""
        return f"{cls.scheme}://bench-{owner}-{space}"

    def __init__(self) -> None:
        super().__init__()
        self._owner = os.getpid()
        self._size_bytes = 0

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        """Remove what runs have left behind that were killed."""
        del folder, cpus
        for space in ts.spaces():
            owner = OWNED.fullmatch(space["name"])
            if owner and not Path("/proc", owner[1]).exists():
                with suppress(ts.SpaceNotFound):  # another run was faster
                    ts.remove(f"shm://{space['name']}")

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        super().create(schema, spaces, size_bytes)
        self._size_bytes = ROOM_BYTES + ROOM_FACTOR * size_bytes
        for space in spaces:
            ts.connect(self.url(space, self._owner), fresh=True, size=self._size_bytes).close()

    def drop(self) -> None:
        for space in self.spaces:
            ts.remove(self.url(space, self._owner))
        self.spaces = ()

    def open(self, space: str) -> Any:
        return ts.connect(self.url(space, self._owner), create=False)

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:
        return ts.Search(spaces, order=order)

    def memory_bytes(self) -> int | None:
        total = 0
        for space in self.spaces:
            with self.open(space) as handle:
                total += handle.stat()["bytes_used"]
        return total

    def array_kind(self) -> type:
        import numpy  # noqa: ICN001

        return numpy.ndarray

    def array(self, values: np.ndarray) -> Any:
        return values

    def numbers(self, value: Any, dtype: str) -> np.ndarray:
        del dtype
        array: np.ndarray = value
        return array


class PrivateSpace(SharedSpace):
    """`mem://`: the same engine over private memory; one process only."""

    name = "tupelo-mem"
    title = "Tupelo, mem://"
    one_process = True
    scheme: ClassVar[str] = "mem"

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        Backend.create(self, schema, spaces, size_bytes)
        self._size_bytes = ROOM_BYTES + ROOM_FACTOR * size_bytes

    def drop(self) -> None:
        self.spaces = ()

    def open(self, space: str) -> Any:
        # Made by the process that uses it: nobody else could.
        return ts.connect(self.url(space, self._owner), size=self._size_bytes)
