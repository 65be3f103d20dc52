"""UDP sockets on the loopback: the least that a remote call can be.

A datagram is not lost on the loopback as long as few are under way, and there is one per server.
"""

from __future__ import annotations

import select
import socket
import struct
from typing import TYPE_CHECKING, ClassVar

from tupelo_bench.backends.calls import STOP, Caller, Client, Servant, address_file
from tupelo_bench.harness.machine import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.calls import Answer

LOOPBACK = "127.0.0.1"
DATAGRAM_BYTES = 65_507  # the longest
PATIENCE_S = 60  # for an answer; if it takes that long, a datagram was lost
PATIENCE = struct.pack("@ll", PATIENCE_S, 0)


class UDP(Caller):
    """A datagram there, a datagram back."""

    name = "udp"
    title = "UDP sockets"
    how = "A connected socket per server on the loopback, a datagram there and one back."
    bytes_max = DATAGRAM_BYTES
    socket_type: ClassVar[type[socket.socket]] = socket.socket

    @classmethod
    def version(cls) -> str:
        return kernel()

    def servant(self, number: int) -> Servant:
        endpoint = self.socket_type(socket.AF_INET, socket.SOCK_DGRAM)
        endpoint.bind((LOOPBACK, 0))
        address_file(self.folder, number).write_text(str(endpoint.getsockname()[1]))
        return UDPServant(endpoint)

    def client(self, servers: int) -> Client:
        sockets = []
        for number in range(servers):
            endpoint = self.socket_type(socket.AF_INET, socket.SOCK_DGRAM)
            endpoint.connect((LOOPBACK, int(address_file(self.folder, number).read_text())))
            # Not `settimeout`, with which each call asks first whether it would wait.
            endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, PATIENCE)
            sockets.append(endpoint)
        return UDPClient(sockets)


class UDPServant:
    """The answering side."""

    def __init__(self, endpoint: socket.socket) -> None:
        self._endpoint = endpoint
        self._buffer = memoryview(bytearray(DATAGRAM_BYTES))

    def serve(self, answer: Answer) -> None:
        """Answer until asked to stop."""
        with self._endpoint as endpoint:
            while True:
                count, sender = endpoint.recvfrom_into(self._buffer)
                request = bytes(self._buffer[:count])
                if request == STOP:
                    break
                endpoint.sendto(answer(request), sender)


class UDPClient:
    """The asking side."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self._sockets = sockets
        self._buffer = memoryview(bytearray(DATAGRAM_BYTES))
        self._answers = select.poll()
        for endpoint in sockets:
            self._answers.register(endpoint, select.POLLIN)

    def _answer(self, endpoint: socket.socket) -> bytes:
        return bytes(self._buffer[: endpoint.recv_into(self._buffer)])

    def call(self, request: bytes) -> bytes:
        """Ask the first server."""
        endpoint = self._sockets[0]
        endpoint.send(request)
        return self._answer(endpoint)

    def call_many(self, requests: Sequence[bytes]) -> list[bytes]:
        """Ask each server, and whoever has answered again, until all is answered."""
        left = iter(requests)
        asked = self._sockets[: len(requests)]
        for endpoint in asked:
            endpoint.send(next(left))
        if len(asked) == len(requests):
            return [self._answer(endpoint) for endpoint in asked]
        by_number = {endpoint.fileno(): endpoint for endpoint in self._sockets}
        answers: list[bytes] = []
        while len(answers) < len(requests):
            ready = self._answers.poll(PATIENCE_S * 1_000)
            if not ready:
                message = f"{len(requests) - len(answers)} answers are missing: lost datagrams"
                raise TimeoutError(message)
            for number, _ in ready:
                endpoint = by_number[number]
                answers.append(self._answer(endpoint))
                if (request := next(left, None)) is not None:
                    endpoint.send(request)
        return answers

    def stop(self, servers: int) -> None:
        """End the servers."""
        for endpoint in self._sockets[:servers]:
            endpoint.send(STOP)

    def close(self) -> None:
        """Close the sockets."""
        for endpoint in self._sockets:
            endpoint.close()
