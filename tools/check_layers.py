"""Checks that arrows point down only, between crates and inside the engine, and where `unsafe` is.

The layers are read from the tables in ARCHITECTURE.md (the blocks that begin with "layers" and with
"engine layers"), so the picture a reader sees is the rule. A crate may depend on crates of lower
layers. Its tests may also use development crates, which may use any crate. A file of the engine may
name items of its own folder of `crates/engine/src`, or of a folder of a lower layer. Its tests may
name all. Only the face of the engine may have an `impl Engine`, or call its methods, since a call
of a method shows no layer. For the same reason there is no `impl Store`: all layers have the store.
The keyword `unsafe` may occur in `UNSAFE_HOMES` only. The code in `python` imports nothing of the
evaluation suite, which is a distribution of its own.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
UNSAFE_HOMES = ("crates/shm", "python/src")
SUITE = "tupelo_bench"
ENGINE = ROOT / "crates" / "engine" / "src"
ENGINE_FACE = "face"
ENGINE_BLOCK = re.compile(r"```text\nengine layers\b[^\n]*\n(.*?)```", re.DOTALL)
USE = re.compile(r"\buse\s+((?:crate|super)\b[^;]*);")
PATH = re.compile(r"(?<![\w:])((?:crate|super)(?:::\w+)+)")
METHODS = re.compile(r"^impl(?:<[^>]*>)? (?:Engine|Store) \{", re.MULTILINE)
VERB = re.compile(r"^    pub fn (\w+)", re.MULTILINE)
TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{.*", re.MULTILINE | re.DOTALL)
LAYER_BLOCK = re.compile(r"```text\nlayers\b[^\n]*\n(.*?)```", re.DOTALL)
UNSAFE = re.compile(r"^(?!\s*//).*\bunsafe\s*(?:\{|fn\b|impl\b|extern\b)", re.MULTILINE)


def layers(text: str) -> tuple[dict[str, int], set[str]]:
    """The height of each crate folder, and the folders of the development layer."""
    block = LAYER_BLOCK.search(text)
    if block is None:
        sys.exit("check_layers: ARCHITECTURE.md has no ```text block that begins with 'layers'")
    heights: dict[str, int] = {}
    development: set[str] = set()
    rows = [line for line in block.group(1).splitlines() if re.match(r"[a-z]", line)]
    for height, row in enumerate(reversed(rows)):
        folders = re.findall(r"\b(?:crates/[a-z/-]+|python)(?=\s|$)", row)
        if row.startswith("development"):
            development.update(folders)
        heights.update(dict.fromkeys(folders, height))
    return heights, development


def manifests() -> dict[str, dict[str, Any]]:
    """Every Cargo.toml of the workspace, by folder."""
    crates = [*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("crates/*/*/Cargo.toml")]
    paths = [*sorted(crates), ROOT / "python" / "Cargo.toml"]
    return {
        str(path.parent.relative_to(ROOT)): tomllib.loads(path.read_text(encoding="utf-8"))
        for path in paths
        if path.exists()
    }


def dependencies(manifest: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each dependency of a crate: its table, and the package, whatever it is called there."""
    for part in (manifest, *manifest.get("target", {}).values()):
        for table in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, given in part.get(table, {}).items():
                yield table, given.get("package", name) if isinstance(given, dict) else name


def dependency_findings() -> list[str]:
    """Dependencies that point up or sideways, and crates that the picture does not show."""
    heights, development = layers((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    crates = manifests()
    folder_of = {manifest["package"]["name"]: folder for folder, manifest in crates.items()}
    found = []
    for folder, manifest in crates.items():
        if folder not in heights:
            found.append(f"{folder}: not in the layers of ARCHITECTURE.md: add it there first")
            continue
        for table, name in dependencies(manifest):
            target = folder_of.get(name)
            if target is None or target not in heights or target == folder:
                continue
            if target in development:
                allowed = folder in development or table == "dev-dependencies"
            else:
                allowed = folder in development or heights[target] < heights[folder]
            if not allowed:
                found.append(f"{folder}: [{table}] {name} does not point down")
    return found


def unsafe_findings() -> list[str]:
    """Uses of `unsafe` outside its homes."""
    found = []
    for path in sorted([*ROOT.glob("crates/**/*.rs"), *ROOT.glob("python/**/*.rs")]):
        where = path.relative_to(ROOT).as_posix()
        if where.startswith(tuple(f"{home}/" for home in UNSAFE_HOMES)):
            continue
        text = path.read_text(encoding="utf-8")
        for use in UNSAFE.finditer(text):
            line = text.count("\n", 0, use.start()) + 1
            found.append(f"{where}:{line}: unsafe outside {', '.join(UNSAFE_HOMES)}")
    return found


def leaves(tree: str) -> Iterator[str]:
    """The paths that a `use` names, one by one."""
    tree = tree.strip()
    group = re.fullmatch(r"([^{]*)\{(.*)\}", tree, re.DOTALL)
    if group is None:
        yield tree.split(" as ")[0].removesuffix("::self").strip()
        return
    depth, part = 0, ""
    for letter in group.group(2) + ",":
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if part.strip():
                yield from leaves(group.group(1).strip() + part.strip())
            part = ""
        else:
            part += letter


def engine_layers(text: str) -> dict[str, int]:
    """The height of each folder of the engine."""
    block = ENGINE_BLOCK.search(text)
    if block is None:
        sys.exit("check_layers: ARCHITECTURE.md has no ```text block that begins 'engine layers'")
    rows = re.findall(r"^[a-z]+", block.group(1), re.MULTILINE)
    return {layer: height for height, layer in enumerate(reversed(rows))}


class EngineSources:
    """The files of the engine: what each names, and of which layer that is."""

    def __init__(self) -> None:
        """Read the layers, and what the crate's root takes from them."""
        self.heights = engine_layers((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
        root = self.code(ENGINE / "lib.rs")
        self.at_root = {
            path.rsplit("::", 1)[-1]: path.split("::", 1)[0]
            for tree in re.findall(r"^pub use ([^;]*);", root, re.MULTILINE)
            for path in leaves(tree)
        }
        face = "".join(self.code(path) for path in ENGINE.glob(f"{ENGINE_FACE}/*.rs"))
        self.verb = re.compile(rf"\bengine(?:\(\))?\s*\.\s*(?:{'|'.join(VERB.findall(face))})\(")

    @staticmethod
    def code(path: Path) -> str:
        """The text of a file without its comments and its tests."""
        text = TESTS.sub("", path.read_text(encoding="utf-8"))
        return re.sub(r"^\s*//.*", "", text, flags=re.MULTILINE)

    def files(self) -> Iterator[tuple[str, str, str]]:
        """Each file but tests: its name, its layer, its code."""
        tests = {"tests.rs", "testing.rs", "contradictions.rs"}
        for path in sorted(ENGINE.glob("**/*.rs")):
            name = path.relative_to(ENGINE).as_posix()
            if path.name not in tests and name != "lib.rs":
                first = name.split("/")[0]
                yield name, first if "/" in name else ENGINE_FACE, self.code(path)

    def layer_of(self, path: str, name: str) -> str | None:
        """The layer of a path that stands in the file of this name; None for what is in none."""
        here = name.removesuffix(".rs").removesuffix("/mod").split("/")
        parts = path.split("::")
        if parts[0] == "crate":
            parts = parts[1:]
        while parts and parts[0] == "super":
            here, parts = here[:-1], parts[1:]
            if not here:
                break
        else:
            parts = here + parts if path.startswith("super") else parts
        first = parts[0] if parts else ""
        first = self.at_root.get(first, first)
        first = ENGINE_FACE if first == "engine" else first
        return first if first in self.heights else None

    def upward(self, name: str, layer: str, code: str) -> list[str]:
        """What a file names of higher layers."""
        paths = [path for tree in USE.findall(code) for path in leaves(tree)]
        paths += PATH.findall(USE.sub("", code))
        found = []
        for path in paths:
            target = self.layer_of(path, name)
            if target is not None and self.heights[target] > self.heights[layer]:
                found.append(path)
        if layer != ENGINE_FACE:
            found += METHODS.findall(code) + self.verb.findall(code)
        return found


def engine_findings() -> list[str]:
    """Arrows inside the engine that point up, and methods of `Engine` outside of its face."""
    found = []
    sources = EngineSources()
    for name, layer, code in sources.files():
        where = f"crates/engine/src/{name}"
        if layer not in sources.heights:
            found.append(f"{where}: '{layer}' is no layer of ARCHITECTURE.md")
            continue
        found.extend(f"{where}: {up.strip()} points up" for up in sources.upward(name, layer, code))
    return found


def suite_findings() -> list[str]:
    """Imports of the evaluation suite in the package, or in its tests."""
    return [
        f"{path.relative_to(ROOT)}: imports {SUITE}, which need not be installed"
        for path in sorted((ROOT / "python").glob("**/*.py"))
        if re.search(rf"^\s*(?:from|import) {SUITE}\b", path.read_text("utf-8"), re.MULTILINE)
    ]


def main() -> int:
    """Print the findings; 1 if there are any."""
    found = dependency_findings() + engine_findings() + unsafe_findings() + suite_findings()
    print("\n".join(found) if found else "check_layers: every arrow points down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
