"""JavaSpaces: Apache River's Outrigger, transient, on the loopback; driven in Java through JPype.

A class per shape and space, so that spaces are apart, with a public field for each field; null for
what is not named. Java 17 left out a package that River only names: four empty classes stand in for
it (java/activation). What the way from Python into Java and back costs is measured, and stands
beside the figures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Fields, Handle, Schema
from tupelo.bench.harness.lifetime import Server

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        " the client's process. A template's null matches anything, so a null can not be asked for."
        " In mem and rpc, 5,000 operations that do not count come first, in which the virtual"
        " machine compiles itself to a tenth of its first times; in settle, cases and sort the"
        " processes are short, and much of their time is that."
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
        if find_spec("jpype") is None:
            return "no Python package jpype1"
        return None if all(jar.exists() for jar in jars()) else f"no River {VERSION}"

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
        ]

    def _compile(self, into: str, sources: Iterable[Path], options: Sequence[str]) -> None:
        target = self._folder / into
        target.mkdir(exist_ok=True)
        command = ["javac", "-nowarn", "-d", str(target), *options, *map(str, sources)]
        subprocess.run(command, check=True, capture_output=True)

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        super().create(schema, spaces, size_bytes)
        wanted = {
            class_name(space, s.tag, s.arity): s.arity for space in spaces for s in schema.shapes
        }
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            sources = []
            for each, arity in wanted.items():
                if not (self._folder / "shapes" / f"{each}.class").exists():
                    sources.append(Path(name) / f"{each}.java")
                    sources[-1].write_text(entry_class(each, arity), encoding="ascii")
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
        return JavaSpace(jpype, proxy, self.schema, space)

    def memory_bytes(self) -> int | None:
        told = subprocess.run(
            ["jcmd", str(self._pid), "GC.class_histogram"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.splitlines()
        # The last line is the total of what lives after a collection.
        return int(told[-1].split()[2]) if told and told[-1].startswith("Total") else None

    def bridge_s(self, fields: Fields) -> float | None:
        """What it costs to make an entry from Python, and to read its values back."""
        handle = self.open(self.spaces[0])
        if not isinstance(handle, JavaSpace):
            return None
        begin = perf_counter_ns()
        for _ in range(BRIDGE_CALLS):
            handle.fields(handle.entry(fields))
        return (perf_counter_ns() - begin) / BRIDGE_CALLS / 1e9


def class_name(space: str, tag: str, arity: int) -> str:
    """The class of a shape in a space."""
    words = "".join(letter if letter.isalnum() else " " for letter in f"{space} {tag}").title()
    return f"{words.replace(' ', '')}{arity}"


def entry_class(name: str, arity: int) -> str:
    """The source of an entry class."""
    fields = [f"f{n}" for n in range(arity)]
    parameters = ", ".join(f"Object {field}" for field in fields)
    assignments = " ".join(f"this.{field} = {field};" for field in fields)
    lines = [
        f"public final class {name} implements Entries.Shape {{",
        *(f"  public Object {field};" for field in fields),
        f"  public {name}() {{}}",
        f"  public {name}({parameters}) {{ {assignments} }}",
        f"  public Object[] values() {{ return new Object[] {{{', '.join(fields)}}}; }}",
        "}",
    ]
    return "\n".join(lines) + "\n"


class JavaSpace(Handle):
    """One space, held by one process."""

    def __init__(self, jpype: Any, proxy: Any, schema: Schema, space: str) -> None:
        self._jpype, self._proxy, self._schema = jpype, proxy, schema
        self._classes = {
            shape.tag: jpype.JClass(class_name(space, shape.tag, shape.arity))
            for shape in schema.shapes
        }
        self._tools = jpype.JClass("Entries")
        self._forever = jpype.JClass("java.lang.Long").MAX_VALUE
        self._bytes = jpype.JArray(jpype.JByte)
        self._text, self._whole = jpype.JClass("java.lang.String"), jpype.JClass("java.lang.Long")
        self._real = jpype.JClass("java.lang.Double")

    def entry(self, fields: Fields) -> Any:
        """A tuple or a template as an entry; types and `...` are null there."""
        shape, _ = self._schema.route(fields)
        return self._classes[shape.tag](*map(self._value, fields))

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
        self._proxy.write(self.entry(fields), None, self._forever)

    def put_all(self, tuples: Iterable[Fields]) -> None:
        batch = self._jpype.JClass("java.util.ArrayList")()
        for fields in tuples:
            batch.add(self.entry(fields))
            if batch.size() == BATCH:
                self._tools.writeAll(self._proxy, batch)
                batch.clear()
        if batch.size():
            self._tools.writeAll(self._proxy, batch)

    def take(self, *template: Any) -> Fields:
        return self.fields(self._proxy.take(self.entry(template), None, self._forever))

    def read(self, *template: Any) -> Fields:
        return self.fields(self._proxy.read(self.entry(template), None, self._forever))

    def try_take(self, *template: Any) -> Fields | None:
        return self._found(self._proxy.takeIfExists(self.entry(template), None, 0))

    def try_read(self, *template: Any) -> Fields | None:
        return self._found(self._proxy.readIfExists(self.entry(template), None, 0))

    def count(self, *template: Any) -> int:
        return int(self._tools.count(self._proxy, self.entry(template)))

    def close(self) -> None:
        """Leave the machine to the end of the process."""
