"""JavaSpaces: Apache River's Outrigger, transient, on the loopback; driven in Java through JPype.

A class per shape, with a public field for each field; null for what is not named. Java 17 left out
a package that River only names: four empty classes stand in for it (java/activation). What the way
from Python into Java and back costs is measured, and stands beside the figures.

The spaces of the suite are names in one JavaSpace: a subclass of the shape for each. So a search in
several of them is one question to one server, which waits: a take is given a template per space
(`JavaSpace05.take` of a collection), a read, for which there is no such call, a template of the
shape itself, which its subclasses match. Rejected: a thread per space, whose takes would have to be
given back; and events, `notify` or `registerForAvailabilityEvent`, which are a look, a
registration, a second look, the event and a third look where one call does. They would be the means
if the spaces were on several servers.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Fields, Found, Handle, Schema
from tupelo.bench.backends.batches import SelfTimed, in_batches
from tupelo.bench.backends.entry_classes import class_name, shape_class, space_class
from tupelo.bench.backends.installed import lacking
from tupelo.bench.harness.lifetime import Server

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo.bench.backends.base import VisitOrder

SOURCES = Path(__file__).parent / "java"
REPOSITORY = Path.home() / ".m2" / "repository"
VERSION = "2.2.3"
JARS = {
    "org/apache/river": ("outrigger", "outrigger-dl", "start"),
    "net/jini": ("jsk-platform", "jsk-lib", "jsk-resources", "jsk-policy", "jsk-dl"),
}
BATCH = 1_000  # entries per call of `put_all`
BRIDGE_CALLS = 1_000
HEAP = "-Xmx2g"


def jars() -> list[Path]:
    """River's parts, where Maven puts them."""
    return [
        REPOSITORY / group / name / VERSION / f"{name}-{VERSION}.jar"
        for group, names in JARS.items()
        for name in names
    ]


class JavaSpaces(Backend):
    """A server process; each client has a virtual machine of its own."""

    name = "javaspaces"
    title = "JavaSpaces"
    has_server = True
    how = (
        "Apache River's Outrigger, transient, on the loopback; a class per shape, through JPype in"
        " the client's process. A search in several spaces is one call that waits: a take by a"
        " template per space, a read by one of their superclass. A template's null matches"
        " anything, so a null can not be asked for. In mem, Java times the puts and takes. In mem"
        " and rpc, 5,000 operations that do not count come first, in which the virtual machine"
        " compiles itself to a tenth of its first times; in settle, cases and sort the processes"
        " are short, and much of their time is that."
    )
    warm_up = 5_000
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
        told = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True)
        return f"River {VERSION}, {told.stdout.strip()}"

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        self._folder = folder
        self._compile("stubs", (SOURCES / "activation").glob("*.java"),
                      ["--patch-module", f"java.rmi={SOURCES / 'activation'}"])  # fmt: skip
        self._compile("classes", SOURCES.glob("*.java"), ["-cp", self._classpath()])
        proxy = folder / "proxy"
        command = ["java", HEAP, *self._options(), "-cp", self._classpath(), "SpaceServer"]
        self.server = Server(
            [*command, str(SOURCES / "outrigger.config"), str(proxy)], folder, cpus
        )
        self.server.wait_until(proxy.exists)
        self._pid = self.server.process.pid

    def _classpath(self) -> str:
        places = [self._folder / "shapes", self._folder / "classes", *jars()]
        return os.pathsep.join(map(str, places))

    def _options(self) -> list[str]:
        return [
            f"--patch-module=java.rmi={self._folder / 'stubs'}",
            "--add-exports=java.rmi/java.rmi.activation=ALL-UNNAMED",
            # Who is ended in the midst of a call may crash: its report goes with the folder.
            f"-XX:ErrorFile={self._folder / 'crash-%p.log'}",
        ]

    def _compile(self, into: str, sources: Iterable[Path], options: Sequence[str]) -> None:
        target = self._folder / into
        target.mkdir(exist_ok=True)
        command = ["javac", "-nowarn", "-d", str(target), *options, *map(str, sources)]
        subprocess.run(command, check=True, capture_output=True)

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        super().create(schema, spaces, size_bytes)
        wanted = {}
        for shape in schema.shapes:
            wanted[class_name(shape)] = shape_class(shape)
            if len(spaces) > 1:
                wanted |= {class_name(shape, each): space_class(shape, each) for each in spaces}
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            sources = []
            for each, text in wanted.items():
                if not (self._folder / "shapes" / f"{each}.class").exists():
                    sources.append(Path(name) / f"{each}.java")
                    sources[-1].write_text(text, encoding="ascii")
            if sources:
                self._compile("shapes", sources, ["-cp", self._classpath()])

    def drop(self) -> None:
        proxy = self._folder / "proxy"
        proxy.unlink()
        if self.server is not None:
            self.server.wait_until(proxy.exists)

    def open(self, space: str) -> Handle:
        import jpype

        if not jpype.isJVMStarted():
            jpype.startJVM(*self._options(), classpath=self._classpath().split(os.pathsep))
        proxy = jpype.JClass("Entries").open(str(self._folder / "proxy"))
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


class JavaSpace(SelfTimed):
    """One space, held by one process."""

    def __init__(self, jpype: Any, proxy: Any, schema: Schema, space: str) -> None:
        self._jpype, self.proxy, self._schema = jpype, proxy, schema
        shapes = schema.shapes
        self._classes = {s.tag: jpype.JClass(class_name(s, space)) for s in shapes}
        self._shape_classes = {s.tag: jpype.JClass(class_name(s)) for s in shapes}
        self.tools = jpype.JClass("Entries")
        self.forever = jpype.JClass("java.lang.Long").MAX_VALUE
        self._bytes = jpype.JArray(jpype.JByte)
        self._text, self._whole = jpype.JClass("java.lang.String"), jpype.JClass("java.lang.Long")
        self._real = jpype.JClass("java.lang.Double")

    def entry(self, fields: Fields) -> Any:
        """A tuple or a template as an entry; types and `...` are null there."""
        shape, _ = self._schema.route(fields)
        return self._classes[shape.tag](*map(self._value, fields))

    def template_of_all(self, template: Fields) -> Any:
        """A template that the entries of all spaces match."""
        shape, _ = self._schema.route(template)
        return self._shape_classes[shape.tag](*map(self._value, template))

    def _value(self, value: Any) -> Any:
        if value is ... or isinstance(value, type):
            return None
        return self._bytes(value) if isinstance(value, bytes) else value

    def fields(self, entry: Any) -> Fields:
        """An entry as a tuple."""
        return tuple(map(self._back, entry.values()))

    def _back(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, self._text):
            return str(value)
        if isinstance(value, self._whole):
            return int(value)
        return float(value) if isinstance(value, self._real) else bytes(value)

    def _found(self, entry: Any) -> Fields | None:
        return None if entry is None else self.fields(entry)

    def put(self, *fields: Any) -> None:
        self.proxy.write(self.entry(fields), None, self.forever)

    def put_all(self, tuples: Iterable[Fields]) -> None:
        for batch in in_batches(tuples, BATCH):
            self.tools.writeAll(self.proxy, list(map(self.entry, batch)))

    def put_each(self, tuples: Sequence[Fields]) -> int:
        return int(self.tools.writeEach(self.proxy, list(map(self.entry, tuples))))

    def take_each(self, templates: Sequence[Fields]) -> tuple[int, list[Fields]]:
        taken = self._jpype.JArray(self._jpype.JClass("Entries$Shape"))(len(templates))
        take_ns = self.tools.takeEach(self.proxy, list(map(self.entry, templates)), taken)
        return int(take_ns), list(map(self.fields, taken))

    def take(self, *template: Any) -> Fields:
        return self.fields(self.proxy.take(self.entry(template), None, self.forever))

    def read(self, *template: Any) -> Fields:
        return self.fields(self.proxy.read(self.entry(template), None, self.forever))

    def try_take(self, *template: Any) -> Fields | None:
        return self._found(self.proxy.takeIfExists(self.entry(template), None, 0))

    def try_read(self, *template: Any) -> Fields | None:
        return self._found(self.proxy.readIfExists(self.entry(template), None, 0))

    def count(self, *template: Any) -> int:
        return int(self.tools.count(self.proxy, self.entry(template)))

    def close(self) -> None:
        """Leave the machine to the end of the process."""


class JavaSpaceSearch:
    """Looks for a tuple that is in one of several spaces."""

    def __init__(self, spaces: Sequence[JavaSpace]) -> None:
        self._spaces, first = spaces, spaces[0]
        self._proxy, self._tools, self._forever = first.proxy, first.tools, first.forever

    def take(self, *template: Any) -> Found:
        """Remove a match, waiting for one."""
        templates = [space.entry(template) for space in self._spaces]
        asked = self._tools.listOf(templates)
        # A first look of its own tells what is a look from what is waiting.
        if (taken := self._tools.takeAny(self._proxy, asked, 0)) is not None:
            return self._found(taken, templates, 0, 0.0)
        begin = perf_counter()
        taken = self._tools.takeAny(self._proxy, asked, self._forever)
        return self._found(taken, templates, len(templates), perf_counter() - begin)

    def read(self, *template: Any) -> Found:
        """Return a match, waiting for one."""
        templates = [space.entry(template) for space in self._spaces]
        of_all = self._spaces[0].template_of_all(template)
        looks, waited_s = 0, 0.0
        if (seen := self._proxy.readIfExists(of_all, None, 0)) is None:
            begin = perf_counter()
            seen = self._proxy.read(of_all, None, self._forever)
            looks, waited_s = len(templates), perf_counter() - begin
        classes = list(map(type, templates))
        trips = 1
        while seen is None or type(seen) not in classes:
            # It is in a space that was not asked for, so that waiting would end at once. No
            # experiment has such tuples.
            seen = self._tools.readAny(self._proxy, self._tools.listOf(templates))
            looks, trips = looks + len(templates), trips + 1
        return self._found(seen, templates, looks, waited_s, trips)

    def _found(
        self, entry: Any, templates: Sequence[Any], looks: int, waited_s: float, trips: int = 1
    ) -> Found:
        place = list(map(type, templates)).index(type(entry))
        space = self._spaces[place]
        return Found(space.fields(entry), space, looks + place + 1, waited_s, trips)
