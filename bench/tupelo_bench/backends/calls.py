"""Calls: one process asks, another answers.

A `Caller` is to `bench rpc` and `bench sort` what a `Backend` is to the other experiments. Requests
and answers are bytes; what they mean is the experiment's business. A `NativeCaller` is programs of
another language on both sides, which time themselves.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tupelo_bench.backends.base import Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from tupelo_bench.harness.lifetime import Server

    Answer = Callable[[bytes], bytes]

STOP = b"stop"
"""The request that ends a server."""


class Client(Protocol):
    """The asking side, held by one process."""

    def call(self, request: bytes) -> bytes:
        """Ask a server, and wait for its answer."""

    def call_many(self, requests: Sequence[bytes]) -> list[bytes]:
        """Ask until all is answered, in any order; the way to call says which server answers."""

    def stop(self, servers: int) -> None:
        """End the servers."""

    def close(self) -> None:
        """Let go of the connections."""


class Servant(Protocol):
    """The answering side, held by one process."""

    def serve(self, answer: Answer) -> None:
        """Answer until asked to stop."""


class Calls(Protocol):
    """A way to call."""

    def servant(self, number: int) -> Servant:
        """Make ready to answer; clients can be made once this returned in all servers."""

    def client(self, servers: int) -> Client:
        """Connect to that many servers."""


class Caller(Peer):
    """A system that is a way to call; the next request goes to a server that has answered."""

    bytes_max: int | None = None
    """The longest request; None for any."""

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        del cpus
        self.folder = folder

    @abstractmethod
    def servant(self, number: int) -> Servant:
        """Make ready to answer; clients can be made once this returned in all servers."""

    @abstractmethod
    def client(self, servers: int) -> Client:
        """Connect to that many servers."""


class NativeClient(Protocol):
    """A program that calls, and times its calls itself."""

    def exchange(
        self, request_bytes: int, answer_bytes: int, count: int, warm_up: int
    ) -> list[int]:
        """Call the first server again and again, and check; the nanoseconds of each call."""

    def sort(self, parts: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Have each server sort a part, all at once; the sorted parts, and the nanoseconds."""

    def stop(self) -> None:
        """End the servers, and the client."""


class NativeCaller(Peer):
    """A way to call by programs in another language, which do what `NativeClient` says."""

    folder: Path

    @abstractmethod
    def serve(self, number: int) -> Server:
        """Start a server; it answers when this returns, and ends when its client says so."""

    @abstractmethod
    def client(self, servers: int) -> NativeClient:
        """Start a client that is connected to so many servers."""


def address_file(folder: Path, number: int) -> Path:
    """Where a server writes where it can be reached."""
    return Path(folder) / f"server-{number}"
