"""How a side waits makes most of a short call: two columns in which it is the other way round.

A waiter of Tupelo looks again and again for up to 100 µs before it sleeps. A socket's reader sleeps
at once. So one column is UDP whose readers look again and again. In the other, Tupelo's sides wait
in an event loop, which sleeps in the kernel.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

import tupelo as ts
from tupelo import aio
from tupelo_bench.backends.calls import STOP, Caller, Client, Servant
from tupelo_bench.backends.udp import PATIENCE_S, UDP

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tupelo_bench.backends.calls import Answer

LOOKS = 100  # without a datagram, before the processor is offered to others
ROOM = "64M"


class SpinningSocket(socket.socket):
    """A socket whose reader looks again and again."""

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Wait for an answer, but not for ever: a datagram may be lost."""
        give_up_at = monotonic() + PATIENCE_S
        while True:
            for _ in range(LOOKS):
                with suppress(BlockingIOError):
                    return super().recv_into(buffer, nbytes, flags | socket.MSG_DONTWAIT)
            if monotonic() > give_up_at:
                message = f"no answer in {PATIENCE_S} s: a lost datagram"
                raise TimeoutError(message)
            os.sched_yield()

    def recvfrom_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> tuple[int, Any]:
        """Wait for a request, however long."""
        while True:
            for _ in range(LOOKS):
                with suppress(BlockingIOError):
                    return super().recvfrom_into(buffer, nbytes, flags | socket.MSG_DONTWAIT)
            os.sched_yield()


class SpinningUDP(UDP):
    """Sockets whose readers look again and again."""

    name = "udp-spinning"
    title = "UDP sockets, spinning readers"
    how = "As udp, but a reader asks for a datagram without waiting until there is one."
    only_in = frozenset({"rpc"})
    socket_type: ClassVar[type[socket.socket]] = SpinningSocket


class SleepingSpace(Caller):
    """Tupelo whose sides sleep while they wait."""

    name = "tupelo-aio"
    title = "Tupelo, shm://, waiting in an event loop"
    how = "`tupelo.aio`: both sides wait in asyncio's event loop, which sleeps in the kernel."
    only_in = frozenset({"rpc"})

    @classmethod
    def version(cls) -> str:
        return ts.__version__

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        super().start(folder, cpus)
        self._url = f"shm://bench-{os.getpid()}-aio"
        ts.connect(self._url, fresh=True, size=ROOM).close()

    def stop(self) -> None:
        with suppress(ts.SpaceNotFound):
            ts.remove(self._url)

    def servant(self, number: int) -> Servant:
        del number
        return SleepingServant(self._url)

    def client(self, servers: int) -> Client:
        del servers
        return SleepingClient(self._url)


class SleepingServant:
    """Takes requests and puts responses."""

    def __init__(self, url: str) -> None:
        self._url = url

    def serve(self, answer: Answer) -> None:
        """Answer until asked to stop."""
        asyncio.run(self._serve(answer))

    async def _serve(self, answer: Answer) -> None:
        async with aio.connect(self._url, create=False) as space:
            while True:
                _, number, request = await space.take("request", int, bytes)
                if request == STOP:
                    break
                await space.put("response", number, answer(request))


class SleepingClient:
    """Puts requests and takes responses."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._space = self._loop.run_until_complete(self._opened(url))

    async def _opened(self, url: str) -> aio.Space:
        return aio.connect(url, create=False)

    async def _call(self, requests: Sequence[bytes]) -> list[bytes]:
        for number, request in enumerate(requests):
            await self._space.put("request", number, request)
        return [(await self._space.take("response", int, bytes))[2] for _ in requests]

    def call(self, request: bytes) -> bytes:
        """Ask whoever is idle."""
        return self._loop.run_until_complete(self._call([request]))[0]

    def call_many(self, requests: Sequence[bytes]) -> list[bytes]:
        """Ask as many servers at once."""
        return self._loop.run_until_complete(self._call(requests))

    def stop(self, servers: int) -> None:
        """End the servers."""
        for _ in range(servers):
            self._loop.run_until_complete(self._space.put("request", 0, STOP))

    def close(self) -> None:
        """Let go of the space and of the loop."""
        self._loop.run_until_complete(self._closed())
        self._loop.close()

    async def _closed(self) -> None:
        self._space.close()
