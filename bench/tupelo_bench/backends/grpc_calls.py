"""gRPC over Unix sockets: a generic method from bytes to bytes, so that nothing is serialised."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.calls import STOP, Caller, Client, Servant, address_file
from tupelo_bench.backends.installed import lacking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.calls import Answer

SERVICE, METHOD = "bench.Calls", "Call"
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class GRPC(Caller):
    """A channel per server."""

    name = "grpc"
    title = "gRPC"
    how = (
        "grpcio over Unix sockets, unary calls from bytes to bytes without protobuf messages, a"
        " server process with one thread each; several at once as futures."
    )
    how_to_install = "pip install grpcio"

    @classmethod
    def missing(cls) -> str | None:
        return lacking("grpc")

    @classmethod
    def version(cls) -> str:
        from importlib.metadata import version

        return version("grpcio")

    def servant(self, number: int) -> Servant:
        return GRPCServant(f"unix:{address_file(self.folder, number)}")

    def client(self, servers: int) -> Client:
        return GRPCClient([f"unix:{address_file(self.folder, n)}" for n in range(servers)])


class GRPCServant:
    """The answering side."""

    def __init__(self, address: str) -> None:
        import grpc

        self._answer: Answer = bytes
        self._serves = threading.Event()
        self._stopped = threading.Event()
        handler = grpc.unary_unary_rpc_method_handler(self._call)
        self._server = grpc.server(ThreadPoolExecutor(max_workers=1), options=UNLIMITED)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
        )
        self._server.add_insecure_port(address)
        self._server.start()

    def _call(self, request: bytes, context: Any) -> bytes:
        del context
        if request == STOP:
            self._stopped.set()
            return b""
        self._serves.wait()
        return self._answer(request)

    def serve(self, answer: Answer) -> None:
        """Answer until asked to stop."""
        self._answer = answer
        self._serves.set()
        self._stopped.wait()
        self._server.stop(grace=1).wait()


class GRPCClient:
    """The asking side."""

    def __init__(self, addresses: Sequence[str]) -> None:
        import grpc

        self._channels = [grpc.insecure_channel(address, UNLIMITED) for address in addresses]
        for channel in self._channels:
            grpc.channel_ready_future(channel).result()
        self._methods = [channel.unary_unary(f"/{SERVICE}/{METHOD}") for channel in self._channels]

    def call(self, request: bytes) -> bytes:
        """Ask the first server."""
        answer: bytes = self._methods[0](request)
        return answer

    def call_many(self, requests: Sequence[bytes]) -> list[bytes]:
        """Ask each server, and whoever has answered again, until all is answered."""
        left = iter(requests)
        asked = self._methods[: len(requests)]
        if len(asked) == len(requests):
            futures = [method.future(next(left)) for method in asked]
            return [future.result() for future in futures]
        done: SimpleQueue[tuple[Any, Any]] = SimpleQueue()

        def ask(method: Any, request: bytes) -> None:
            method.future(request).add_done_callback(lambda future: done.put((method, future)))

        for method in asked:
            ask(method, next(left))
        answers: list[bytes] = []
        while len(answers) < len(requests):
            method, future = done.get()
            answers.append(future.result())
            if (request := next(left, None)) is not None:
                ask(method, request)
        return answers

    def stop(self, servers: int) -> None:
        """End the servers."""
        import grpc

        for method in self._methods[:servers]:
            try:
                method(STOP)
            except grpc.RpcError as error:
                # Its process may have ended before its last answer was on the way.
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise

    def close(self) -> None:
        """Close the channels."""
        for channel in self._channels:
            channel.close()
