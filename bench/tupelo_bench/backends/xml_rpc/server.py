"""The server process of the XML-RPC adapter: `python -m … FILE`; the file gets its port."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

from tupelo_bench.backends.manager.store import Store

LOOPBACK = "127.0.0.1"


class KeptOpen(SimpleXMLRPCRequestHandler):
    """A connection that serves request after request, without Nagle's delay between its parts."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer is one packet


class Threaded(ThreadingMixIn, SimpleXMLRPCServer):
    """A thread for each client: one that waits holds up nobody else."""

    daemon_threads = True


def put(store: Store, tuples: list[list[Any]]) -> bool:
    """Add tuples."""
    store.put([((space, tag), key, tuple(fields)) for space, tag, key, fields in tuples])
    return True


def get(store: Store, *asked: Any) -> Any:
    """A match in a space, by its tag and key, removed or not, waited for or not."""
    space, tag, key, take, wait = asked
    return store.get((space, tag), key, take, wait)


def serve(path: Path) -> None:
    """Serve until the process is ended."""
    store = Store()
    server = Threaded(
        (LOOPBACK, 0), KeptOpen, logRequests=False, allow_none=True, use_builtin_types=True
    )
    server.register_function(lambda tuples: put(store, tuples), "put")
    server.register_function(lambda *asked: get(store, *asked), "get")
    server.register_function(lambda space, tag, key: store.count((space, tag), key), "count")
    server.register_function(store.clear, "clear")
    server.register_function(lambda: str(store.memory_bytes()), "memory_bytes")
    whole = path.with_suffix(".new")
    whole.write_text(str(server.server_address[1]), encoding="ascii")
    os.replace(whole, path)  # noqa: PTH105 - at once, for who waits for the file
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
