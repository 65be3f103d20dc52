"""Calls: one process asks, another answers. UDP sockets, gRPC, and any space as a way to call.

A `Caller` is to `bench rpc` and `bench sort` what a `Backend` is to the other experiments. Requests
and answers are bytes; what they mean is the experiment's business. A `NativeCaller` is programs of
another language on both sides, which time themselves.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tupelo.bench.backends.base import Backend, Peer, Schema, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from tupelo.bench.harness.lifetime import Server

    Answer = Callable[[bytes], bytes]

STOP = b"stop"
"""The request that ends a server."""


class Client(Protocol):
    """The asking side, held by one process."""

    def call(self, request: bytes) -> bytes:
        """Ask a server, and wait for its answer."""

    def call_many(self, requests: Sequence[bytes]) -> list[bytes]:
        """Ask as many servers at once, and wait for all; answers in any order."""

    def stop(self, servers: int) -> None:
        """End the servers."""

    def close(self) -> None:
        """Let go of the connections."""


class Servant(Protocol):
    """The answering side, held by one process."""

    def serve(self, answer: Answer) -> None:
        """Answer until asked to stop."""


class Caller(Peer):
    """A way to call."""

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


SCHEMA = Schema((Shape("request", 3), Shape("response", 3)))
SPACE = "calls"


@dataclass(frozen=True)
class SpaceCalls:
    """A space as a way to call: a request is a tuple, and whoever is idle takes it."""

    backend: Backend

    def servant(self, number: int) -> Servant:
        """Open the space."""
        del number
        return SpaceServant(self.backend.open(SPACE))

    def client(self, servers: int) -> Client:
        """Open the space."""
        del servers
        return SpaceClient(self.backend.open(SPACE))


class SpaceServant:
    """Takes requests and puts responses."""

    def __init__(self, space: Any) -> None:
        self._space = space

    def serve(self, answer: Answer) -> None:
        """Answer until asked to stop."""
        take, put = self._space.take, self._space.put
        while True:
            _, number, request = take("request", int, bytes)
            if request == STOP:
                break
            put("response", number, answer(request))
        self._space.close()


class SpaceClient:
    """Puts requests and takes responses."""

    def __init__(self, space: Any) -> None:
        self._space = space

    def call(self, request: bytes) -> bytes:
        """Ask whoever is idle."""
        self._space.put("request", 0, request)
        response: bytes = self._space.take("response", int, bytes)[2]
        return response

    def call_many(self, requests: Sequence[bytes]) -> list[bytes]:
        """Ask as many servers at once."""
        for number, request in enumerate(requests):
            self._space.put("request", number, request)
        return [self._space.take("response", int, bytes)[2] for _ in requests]

    def stop(self, servers: int) -> None:
        """End the servers."""
        for _ in range(servers):
            self._space.put("request", 0, STOP)

    def close(self) -> None:
        """Let go of the space."""
        self._space.close()


def address_file(folder: Path, number: int) -> Path:
    """Where a server writes where it can be reached."""
    return Path(folder) / f"server-{number}"
