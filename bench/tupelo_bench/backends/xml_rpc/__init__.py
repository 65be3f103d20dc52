"""XML-RPC of Python's standard library: a server process, and a request of HTTP per operation.

[MEM] compares with a tuple space behind XML-RPC. The server holds the store of the manager's
adapter, so the two differ in the way there alone. A client keeps its connection open.
"""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, Any
from xmlrpc.client import ServerProxy

from tupelo_bench.backends.base import Backend, Handle, Schema
from tupelo_bench.backends.batches import in_batches
from tupelo_bench.harness.lifetime import Server

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tupelo_bench.backends.base import Fields

BATCH = 1_000  # tuples per call of `put_all`
LOOPBACK = "127.0.0.1"


class XmlRpc(Backend):
    """One process that holds everything, behind HTTP and XML."""

    name = "xml-rpc"
    title = "XML-RPC of the standard library"
    has_server = True
    only_in = frozenset({"mem"})
    how = "The manager's store behind `xmlrpc.server`: a request of HTTP on the loopback each."

    @classmethod
    def version(cls) -> str:
        return platform.python_version()

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        address = folder / "address"
        program = "tupelo_bench.backends.xml_rpc.server"
        self.server = Server([sys.executable, "-m", program, str(address)], folder, cpus)
        self.server.wait_until(address.exists)
        self._address = f"http://{LOOPBACK}:{address.read_text(encoding='ascii')}"

    def _proxy(self) -> ServerProxy:
        return ServerProxy(self._address, allow_none=True, use_builtin_types=True)

    def drop(self) -> None:
        with self._proxy() as proxy:
            proxy.clear()

    def open(self, space: str) -> Handle:
        return XmlRpcSpace(self._proxy(), self.schema, space)

    def memory_bytes(self) -> int | None:
        with self._proxy() as proxy:
            return int(str(proxy.memory_bytes()))


class XmlRpcSpace(Handle):
    """One space, held by one process."""

    def __init__(self, proxy: ServerProxy, schema: Schema, space: str) -> None:
        self._proxy, self._schema, self._name = proxy, schema, space

    def _item(self, fields: Fields) -> tuple[str, str, str, Fields]:
        shape, key = self._schema.route(fields)
        return self._name, shape.tag, _in_xml(key) or "", fields

    def put(self, *fields: Any) -> None:
        self._proxy.put([self._item(fields)])

    def put_all(self, tuples: Iterable[Fields]) -> None:
        for batch in in_batches(tuples, BATCH):
            self._proxy.put([self._item(fields) for fields in batch])

    def _get(self, template: Fields, *, take: bool, wait: bool) -> Fields | None:
        shape, key = self._schema.route(template)
        found: Any = self._proxy.get(self._name, shape.tag, _in_xml(key), take, wait)
        return None if found is None else tuple(found)

    def take(self, *template: Any) -> Fields:
        return self._get(template, take=True, wait=True) or ()

    def read(self, *template: Any) -> Fields:
        return self._get(template, take=False, wait=True) or ()

    def try_take(self, *template: Any) -> Fields | None:
        return self._get(template, take=True, wait=False)

    def try_read(self, *template: Any) -> Fields | None:
        return self._get(template, take=False, wait=False)

    def count(self, *template: Any) -> int:
        shape, key = self._schema.route(template)
        return int(str(self._proxy.count(self._name, shape.tag, _in_xml(key))))

    def close(self) -> None:
        self._proxy("close")()


def _in_xml(key: str | None) -> str | None:
    """A key without what XML has no room for: the separator of several keys."""
    return key if key is None else key.replace("\x1f", "\N{SYMBOL FOR UNIT SEPARATOR}")
