"""Rinda: the tuple space of Ruby's standard library, behind DRb on a Unix socket; driven in Ruby.

Beside each worker runs a small Ruby program that does what it is told line by line; the way there
and back is measured, and stands beside the figures. Of a batch the program times itself.
`InsideRinda` is the same program with a tuple space of its own: what a put costs where no message
is sent.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend
from tupelo_bench.backends.installed import said_by
from tupelo_bench.backends.rinda.program import PROGRAMS, Program, program, telling_s
from tupelo_bench.backends.rinda.search import RindaSearch
from tupelo_bench.backends.rinda.space import InsideRindaSpace, RindaSpace
from tupelo_bench.harness.lifetime import Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tupelo_bench.backends.base import Fields, Handle, VisitOrder


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
        return " ".join(said_by("ruby", "--version").split()[:2])

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

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:
        return RindaSearch(spaces) if order == "round robin" else None

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
