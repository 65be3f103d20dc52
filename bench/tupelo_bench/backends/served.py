"""Tupelo behind a server (`unix://`, `tcp://`) and in a file (`file://`), beside its shared memory.

[LIMBO] compares a space that is linked into the program with one behind a daemon. [SETTLE] leaves
transient against durable to others. Here the engine is the same in all columns.
"""

from __future__ import annotations

import shutil
import socket
import sysconfig
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import tupelo as ts
from tupelo_bench.backends.base import Backend, Schema
from tupelo_bench.backends.space import ROOM_BYTES, ROOM_FACTOR, SharedSpace
from tupelo_bench.harness.lifetime import Server

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOPBACK = "127.0.0.1"
WITHOUT = "no program tupelo, which serves spaces"
SERVED = frozenset({"mem", "settle", "rpc", "cases"})


def program() -> str | None:
    """The command line of Tupelo: that of this environment, else the first on the path."""
    beside = Path(sysconfig.get_path("scripts"), "tupelo")
    return str(beside) if beside.exists() else shutil.which("tupelo")


class AddressedSpace(SharedSpace):
    """Spaces that are somewhere else than under their names in shared memory."""

    share = 1.0

    @abstractmethod
    def _address(self, space: str) -> str:
        """Return the URL of a space."""

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        Backend.create(self, schema, spaces, size_bytes)
        size = ROOM_BYTES + ROOM_FACTOR * size_bytes
        for space in spaces:
            ts.connect(self._address(space), fresh=True, size=size).close()

    def drop(self) -> None:
        for space in self.spaces:
            ts.remove(self._address(space))
        self.spaces = ()

    def open(self, space: str) -> Any:
        return ts.connect(self._address(space), create=False)


class ServedSpace(AddressedSpace):
    """Spaces of a server, reached through a socket of the machine."""

    name = "tupelo-unix"
    title = "Tupelo, unix:// (a server)"
    how = "`tupelo serve` with the engine in its memory, and a Unix socket per space and process."
    how_to_install = "make build in a checkout, or pip install tupelo"
    scheme: ClassVar[str] = "unix"
    has_server = True
    only_in = SERVED
    no_memory = "the server does not tell the bytes of a space"

    @classmethod
    def missing(cls) -> str | None:
        return None if program() else WITHOUT

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        self._place = self._listen(folder)
        command = [str(program()), "serve", "--listen", self._place]
        self.server = Server(command, folder, cpus)
        self.server.wait_until(self._answers)

    def _listen(self, folder: Path) -> str:
        """Where the server is to listen."""
        return f"unix://{folder / 'tupelo.sock'}"

    def _address(self, space: str) -> str:
        return f"{self._place}?space={space}"

    def _answers(self) -> bool:
        try:
            ts.connect(self._address("answers")).close()
        except (ts.TupeloError, OSError):
            return False
        return True

    def memory_bytes(self) -> int | None:
        return None


class TcpSpace(ServedSpace):
    """The same through TCP on the loopback."""

    name = "tupelo-tcp"
    title = "Tupelo, tcp:// (a server)"
    how = "`tupelo serve` with the engine in its memory, and TCP on the loopback."
    scheme: ClassVar[str] = "tcp"

    def _listen(self, folder: Path) -> str:
        del folder
        with socket.socket() as free:
            free.bind((LOOPBACK, 0))
            return f"tcp://{LOOPBACK}:{free.getsockname()[1]}"

    def _address(self, space: str) -> str:
        return f"{self._place}/{space}"


class FileSpace(AddressedSpace):
    """Durable spaces, each in a file."""

    name = "tupelo-file"
    title = "Tupelo, file:// (durable)"
    how = 'A file per space with `sync="group"`: a call returns when its change is on disk.'
    scheme: ClassVar[str] = "file"
    only_in = frozenset({"settle"})

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        del cpus
        self._folder = folder

    def _address(self, space: str) -> str:
        return f"file://{self._folder / space}.tupelo"
