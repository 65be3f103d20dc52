"""JavaSpaces: Apache River's Outrigger, transient, on the loopback; driven in Java through JPype.

A class per shape, with a public field for each field; null for what is not named. The spaces of the
suite are names in one JavaSpace: a subclass of the shape for each. What the way from Python into
Java and back costs is measured, and stands beside the figures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend
from tupelo_bench.backends.installed import lacking, said_by
from tupelo_bench.backends.javaspaces.entry_classes import entry_classes
from tupelo_bench.backends.javaspaces.river import SOURCES, VERSION, Compiled, jars
from tupelo_bench.backends.javaspaces.search import JavaSpaceSearch
from tupelo_bench.backends.javaspaces.space import JavaSpace
from tupelo_bench.harness.lifetime import Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tupelo_bench.backends.base import Fields, Handle, Schema, VisitOrder

HEAP = "-Xmx2g"
BRIDGE_CALLS = 1_000


class JavaSpaces(Backend):
    """A server process; each client has a virtual machine of its own."""

    name = "javaspaces"
    title = "JavaSpaces"
    has_server = True
    how = (
        "Apache River's Outrigger, transient, on the loopback; a class per shape, through JPype in"
        " the client's process. A search in several spaces is one call that waits: a take by a"
        " template per space, a read by one of their superclass. A template's null matches"
        " anything, so a null can not be asked for. In mem, Java times the puts and takes. Server:"
        f" java {HEAP} and HotSpot's defaults. Each client's virtual machine: HotSpot's defaults"
        " only, so its heap grows up to a quarter of the memory. 5,000 operations of a client come"
        " first that do not count. In cases they are of all processes together, and in sort of the"
        " master and of all workers. Then cycles follow until they differ no more; a table says how"
        " many, and who became steady."
    )
    warm_up = 5_000
    compiles = True
    share = 3.0
    how_to_install = (
        "apt-get install openjdk-17-jdk-headless maven; pip install jpype1;"
        f" mvn -f {SOURCES / 'pom.xml'} dependency:resolve"
    )

    @classmethod
    def missing(cls) -> str | None:
        if shutil.which("javac") is None:
            return "no Java compiler"
        if not all(jar.exists() for jar in jars()):
            return f"no River {VERSION}"
        return lacking("jpype")

    @classmethod
    def version(cls) -> str:
        return f"River {VERSION}, {said_by('javac', '-version').strip()}"

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        self._compiled, self._proxy = Compiled(folder), folder / "proxy"
        self._compiled.programs()
        options = [*self._compiled.options(), "-cp", self._compiled.classpath()]
        arguments = [str(SOURCES / "outrigger.config"), str(self._proxy)]
        command = ["java", HEAP, *options, "SpaceServer", *arguments]
        self.server = Server(command, folder, cpus)
        self.server.wait_until(self._proxy.exists)
        self._pid = self.server.process.pid

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        super().create(schema, spaces, size_bytes)
        self._compiled.entry_classes(entry_classes(schema.shapes, spaces))

    def drop(self) -> None:
        self._proxy.unlink()
        if self.server is not None:
            self.server.wait_until(self._proxy.exists)

    def open(self, space: str) -> Handle:
        import jpype

        if not jpype.isJVMStarted():
            classpath = self._compiled.classpath().split(os.pathsep)
            jpype.startJVM(*self._compiled.options(), classpath=classpath)
        proxy = jpype.JClass("Entries").open(str(self._proxy))
        # Where there is one space only, its entries need no class of their own.
        return JavaSpace(jpype, proxy, self.schema, space if len(self.spaces) > 1 else "")

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:
        return JavaSpaceSearch(spaces) if order == "round robin" else None

    def memory_bytes(self) -> int | None:
        told = subprocess.run(
            ["jcmd", str(self._pid), "GC.class_histogram"],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.splitlines()
        # The last line is the total of what lives after a collection.
        return int(told[-1].split()[2])

    def bridge_s(self, fields: Fields) -> float | None:
        """What it costs to make an entry from Python, and to read its values back."""
        handle = self.open(self.spaces[0])
        if not isinstance(handle, JavaSpace):
            return None
        begin = perf_counter_ns()
        for _ in range(BRIDGE_CALLS):
            handle.fields(handle.entry(fields))
        return (perf_counter_ns() - begin) / BRIDGE_CALLS / 1e9
