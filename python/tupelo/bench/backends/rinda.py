"""Rinda: the tuple space of Ruby's standard library, behind DRb on a Unix socket; driven in Ruby.

Rinda finds a tuple by its first field where that is a symbol, and else looks at all: so the first
field is made of space, tag and keys. Beside each worker runs a small Ruby program that does what it
is told line by line; the way there and back is measured, and stands beside the figures. Of a batch
the program times itself. `InsideRinda` is the same program with a tuple space of its own: what a
put costs where no message is sent.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Fields, Handle, Schema
from tupelo.bench.backends.batches import SelfTimed, in_batches
from tupelo.bench.harness.lifetime import Server, die_with_parent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PROGRAMS = Path(__file__).parent / "ruby"
BATCH = 1_000  # tuples per line of `put_all`
BRIDGE_CALLS = 1_000
ANY: dict[str, str] = {"kind": "any"}


class Rinda(Backend):
    """A server process, and a Ruby program beside each client."""

    name = "rinda"
    title = "Rinda"
    has_server = True
    how = (
        "Rinda::TupleSpace behind DRb on a Unix socket, a Ruby program per client told by lines of"
        " JSON what to do; in mem it times its puts and takes itself. The newest tuple is taken"
        " first; a template's nil matches anything, so a nil can not be asked for."
    )
    oldest_first = False
    how_to_install = "apt-get install ruby"

    @classmethod
    def missing(cls) -> str | None:
        if shutil.which("ruby") is None:
            return "no Ruby"
        loads = subprocess.run(["ruby", "-e", "require 'rinda/tuplespace'"], check=False)
        return "no Rinda" if loads.returncode else None

    @classmethod
    def version(cls) -> str:
        told = subprocess.run(["ruby", "--version"], capture_output=True, text=True, check=True)
        return " ".join(told.stdout.split()[:2])

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        socket = folder / "rinda.sock"
        self._socket = str(socket)
        self.server = Server(["ruby", str(PROGRAMS / "server.rb"), str(socket)], folder, cpus)
        self.server.wait_until(socket.exists)

    def memory_bytes(self) -> int | None:
        memory: int = program(self._socket, os.getpid()).tell("memory", [])
        return memory

    def drop(self) -> None:
        cleaner = Program(self._socket)
        cleaner.tell("clear", [])
        cleaner.close()

    def open(self, space: str) -> Handle:
        return RindaSpace(program(self._socket, os.getpid()), self.schema, space)

    def bridge_s(self, fields: Fields) -> float | None:
        """What it costs to tell the Ruby program about a tuple that it then ignores."""
        return telling_s(program(self._socket, os.getpid()), fields)


class InsideRinda(Rinda):
    """A Ruby program that has the space itself; nobody else can reach it."""

    name = "rinda-inside"
    title = "Rinda, in one process"
    one_process = True
    has_server = False
    how = (
        "Rinda::TupleSpace in the Ruby program that uses it, without DRb. It times its puts and"
        " takes itself."
    )
    _program: Program | None = None

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        """Nothing: who opens a space starts its program."""

    def drop(self) -> None:
        """Nothing: a space ends when it is closed, or with the process that opened it."""

    def open(self, space: str) -> Handle:
        self._program = Program()
        return InsideRindaSpace(self._program, self.schema, space)

    def memory_bytes(self) -> int | None:
        if self._program is None:
            return None
        memory: int = self._program.tell("memory", [])
        return memory

    def bridge_s(self, fields: Fields) -> float | None:
        """As for the one with a server: it is the same program."""
        beside = Program()
        cost_s = telling_s(beside, fields)
        beside.close()
        return cost_s


class Program:
    """The Ruby program beside a client; with a space of its own if there is no socket."""

    def __init__(self, *socket: str) -> None:
        self._process = subprocess.Popen(
            ["ruby", str(PROGRAMS / "client.rb"), *socket],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of the system
        )
        self.tell("nothing", [])  # it is ready, and no clock of ours measures its start

    def tell(self, verb: str, argument: Any) -> Any:
        """Say what to do, and wait for the answer."""
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        self._process.stdin.write(json.dumps([verb, argument]).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            message = f"the Ruby program ended with {self._process.wait()} when told to {verb}"
            raise RuntimeError(message)
        return json.loads(answer)[0]

    def close(self) -> None:
        """End it."""
        with self._process as process:
            process.terminate()


@cache
def program(socket: str, process: int) -> Program:
    """The one Ruby program beside this process, for all its spaces."""
    del process  # a forked child has another number, and so a program of its own
    return Program(socket)


def telling_s(beside: Program, fields: Fields) -> float:
    """What it costs to tell a program about a tuple that it then ignores."""
    told = [as_json(value) for value in fields]
    begin = perf_counter_ns()
    for _ in range(BRIDGE_CALLS):
        beside.tell("nothing", told)
    return (perf_counter_ns() - begin) / BRIDGE_CALLS / 1e9


def as_json(value: Any) -> Any:
    """A value or a pattern, as the Ruby program understands it."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode("ascii")}
    if value is ...:
        return ANY
    return {"kind": value.__name__} if isinstance(value, type) else value


def from_json(value: Any) -> Any:
    """What the Ruby program answered."""
    return base64.b64decode(value["bytes"]) if isinstance(value, dict) else value


class RindaSpace(SelfTimed):
    """One space, held by one process."""

    def __init__(self, program: Program, schema: Schema, space: str) -> None:
        self._program, self._schema, self._space = program, schema, space

    def _told(self, fields: Fields) -> list[Any]:
        shape, key = self._schema.route(fields)
        shelf = f"{self._space}:{shape.tag}"
        first = ANY if key is None else {"shelf": f"{shelf}:{key}"}
        return [first, shelf, *map(as_json, fields)]

    def put_each(self, tuples: Sequence[Fields]) -> int:
        return int(self._program.tell("put_each", list(map(self._told, tuples))))

    def take_each(self, templates: Sequence[Fields]) -> tuple[int, list[Fields]]:
        take_ns, taken = self._program.tell("take_each", list(map(self._told, templates)))
        return int(take_ns), [tuple(map(from_json, found[2:])) for found in taken]

    def _ask(self, verb: str, template: Fields) -> Any:
        found = self._program.tell(verb, self._told(template))
        return None if found is None else tuple(map(from_json, found[2:]))

    def put(self, *fields: Any) -> None:
        self._program.tell("put", self._told(fields))

    def put_all(self, tuples: Iterable[Fields]) -> None:
        for batch in in_batches(tuples, BATCH):
            self._program.tell("put_all", list(map(self._told, batch)))

    def take(self, *template: Any) -> Fields:
        fields: Fields = self._ask("take", template)
        return fields

    def read(self, *template: Any) -> Fields:
        fields: Fields = self._ask("read", template)
        return fields

    def try_take(self, *template: Any) -> Fields | None:
        fields: Fields | None = self._ask("try_take", template)
        return fields

    def try_read(self, *template: Any) -> Fields | None:
        fields: Fields | None = self._ask("try_read", template)
        return fields

    def count(self, *template: Any) -> int:
        return int(self._program.tell("count", self._told(template)))

    def close(self) -> None:
        """Leave the program to the other spaces; it ends with this process."""


class InsideRindaSpace(RindaSpace):
    """A space in a program of its own."""

    def close(self) -> None:
        self._program.close()
