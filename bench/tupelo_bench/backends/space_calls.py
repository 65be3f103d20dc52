"""Any space as a way to call: a request is a tuple, and so is its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.backends.calls import STOP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.calls import Answer, Client, Servant

SCHEMA = Schema((Shape("request", 3), Shape("response", 3)))
DIRECTED_SCHEMA = Schema((Shape("request", 3, (1,)), Shape("response", 3)))
"""Of requests that name their server."""
SPACE = "calls"


@dataclass(frozen=True)
class SpaceCalls:
    """A space as a way to call: a request is a tuple, and whoever is idle takes it."""

    backend: Backend

    def servant(self, number: int) -> Servant:
        """Open the space; every server takes every request."""
        del number
        return SpaceServant(self.backend.open(SPACE), int)

    def client(self, servers: int) -> Client:
        """Open the space."""
        del servers
        return SpaceClient(self.backend.open(SPACE))


@dataclass(frozen=True)
class DirectedCalls:
    """The same in a space of `DIRECTED_SCHEMA`: only the server that a request names takes it."""

    backend: Backend

    def servant(self, number: int) -> Servant:
        """Open the space; the servers have the numbers from 0 on."""
        return SpaceServant(self.backend.open(SPACE), number)

    def client(self, servers: int) -> Client:
        """Open the space."""
        return SpaceClient(self.backend.open(SPACE), servers)


class SpaceServant:
    """Takes the requests whose number is as wanted, and puts responses."""

    def __init__(self, space: Any, wanted: int | type[int]) -> None:
        self._space = space
        self._wanted = wanted

    def serve(self, answer: Answer) -> None:
        """Answer until asked to stop."""
        take, put = self._space.take, self._space.put
        while True:
            _, number, request = take("request", self._wanted, bytes)
            if request == STOP:
                break
            put("response", number, answer(request))
        self._space.close()


class SpaceClient:
    """Puts requests and takes responses.

    The number of a request is its place among those that are asked at once. Where there are
    `servers` to direct it to, it is that of a server: each has its turn.
    """

    def __init__(self, space: Any, servers: int | None = None) -> None:
        self._space = space
        self._servers = servers

    def _number(self, place: int) -> int:
        return place if self._servers is None else place % self._servers

    def call(self, request: bytes) -> bytes:
        """Ask whoever is idle, or the first server."""
        self._space.put("request", 0, request)
        response: bytes = self._space.take("response", int, bytes)[2]
        return response

    def call_many(self, requests: Sequence[bytes]) -> list[bytes]:
        """Ask for everything at once."""
        for place, request in enumerate(requests):
            self._space.put("request", self._number(place), request)
        return [self._space.take("response", int, bytes)[2] for _ in requests]

    def stop(self, servers: int) -> None:
        """End the servers."""
        for place in range(servers):
            self._space.put("request", self._number(place), STOP)

    def close(self) -> None:
        """Let go of the space."""
        self._space.close()
