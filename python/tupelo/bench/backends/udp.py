"""UDP sockets on the loopback: the least that a remote call can be.

A datagram is not lost on the loopback as long as few are under way, and there is one per server.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from tupelo.bench.backends.calls import STOP, Caller, Client, Servant, address_file
from tupelo.bench.harness.machine import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.bench.backends.calls import Answer

LOOPBACK = "127.0.0.1"
DATAGRAM_BYTES = 65_507  # the longest
PATIENCE_S = 60.0  # for an answer; if it takes that long, a datagram was lost


class UDP(Caller):
    """A datagram there, a datagram back."""

    name = "udp"
    title = "UDP sockets"
    how = "A connected socket per server on the loopback, a datagram there and one back."
    bytes_max = DATAGRAM_BYTES

    @classmethod
    def version(cls) -> str:
        return kernel()

    def servant(self, number: int) -> Servant:
        endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        endpoint.bind((LOOPBACK, 0))
        address_file(self.folder, number).write_text(str(endpoint.getsockname()[1]))
        return UDPServant(endpoint)

    def client(self, servers: int) -> Client:
        sockets = []
        for number in range(servers):
            endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            endpoint.connect((LOOPBACK, int(address_file(self.folder, number).read_text())))
            endpoint.settimeout(PATIENCE_S)
            sockets.append(endpoint)
        return UDPClient(sockets)


class UDPServant:
    """The answering side."""

    def __init__(self, endpoint: socket.socket) -> None:
        self._endpoint = endpoint

    def serve(self, answer: Answer) -> None:
        """Answer until asked to stop."""
        with self._endpoint as endpoint:
            while True:
                request, sender = endpoint.recvfrom(DATAGRAM_BYTES)
                if request == STOP:
                    break
                endpoint.sendto(answer(request), sender)


class UDPClient:
    """The asking side."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self._sockets = sockets

    def call(self, request: bytes) -> bytes:
        """Ask the first server."""
        endpoint = self._sockets[0]
        endpoint.send(request)
        return endpoint.recv(DATAGRAM_BYTES)

    def call_many(self, requests: Sequence[bytes]) -> list[bytes]:
        """Ask the servers in turn, then wait for all."""
        turns = [self._sockets[n % len(self._sockets)] for n in range(len(requests))]
        for endpoint, request in zip(turns, requests, strict=True):
            endpoint.send(request)
        return [endpoint.recv(DATAGRAM_BYTES) for endpoint in turns]

    def stop(self, servers: int) -> None:
        """End the servers."""
        for endpoint in self._sockets[:servers]:
            endpoint.send(STOP)

    def close(self) -> None:
        """Close the sockets."""
        for endpoint in self._sockets:
            endpoint.close()
