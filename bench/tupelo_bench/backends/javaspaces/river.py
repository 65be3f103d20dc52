"""Apache River: where its parts are, and how Java finds them together with what is compiled here.

Java 17 left out a package that River only names: four empty classes stand in for it
(java/activation).
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tupelo_bench.harness.steps import step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SOURCES = Path(__file__).parent / "java"
REPOSITORY = Path.home() / ".m2" / "repository"
VERSION = "2.2.3"
JARS = {
    "org/apache/river": ("outrigger", "outrigger-dl", "start"),
    "net/jini": ("jsk-platform", "jsk-lib", "jsk-resources", "jsk-policy", "jsk-dl"),
}


def jars() -> list[Path]:
    """River's parts, where Maven puts them."""
    return [
        REPOSITORY / group / name / VERSION / f"{name}-{VERSION}.jar"
        for group, names in JARS.items()
        for name in names
    ]


@dataclass(frozen=True)
class Compiled:
    """What is compiled here, in a private folder: the stubs, our programs, the entry classes."""

    folder: Path

    def programs(self) -> None:
        """Compile the stubs, and the programs in java/."""
        self._compile("stubs", (SOURCES / "activation").glob("*.java"),
                      ["--patch-module", f"java.rmi={SOURCES / 'activation'}"])  # fmt: skip
        self._compile("classes", SOURCES.glob("*.java"), ["-cp", self.classpath()])

    def entry_classes(self, wanted: Mapping[str, str]) -> None:
        """Compile the sources of these classes, but for those that were compiled before."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            sources = []
            for each, text in wanted.items():
                if not (self.folder / "shapes" / f"{each}.class").exists():
                    sources.append(Path(name) / f"{each}.java")
                    sources[-1].write_text(text, encoding="ascii")
            if sources:
                self._compile("shapes", sources, ["-cp", self.classpath()])

    def classpath(self) -> str:
        """Where a virtual machine finds all classes."""
        places = [self.folder / "shapes", self.folder / "classes", *jars()]
        return os.pathsep.join(map(str, places))

    def options(self) -> list[str]:
        """What else a virtual machine has to be told."""
        return [
            f"--patch-module=java.rmi={self.folder / 'stubs'}",
            "--add-exports=java.rmi/java.rmi.activation=ALL-UNNAMED",
            # Who is ended in the midst of a call may crash: its report goes with the folder.
            f"-XX:ErrorFile={self.folder / 'crash-%p.log'}",
        ]

    def _compile(self, into: str, sources: Iterable[Path], options: Sequence[str]) -> None:
        target = self.folder / into
        target.mkdir(exist_ok=True)
        words = ("-nowarn", "-d", str(target), *options, *map(str, sources))
        step(self.folder, "javac", *words)
