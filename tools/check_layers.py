"""Checks that crates depend downwards only, and that `unsafe` stays at home.

The layers are read from the table in ARCHITECTURE.md (the block that begins with "layers"), so the
picture a reader sees is the rule. A crate may depend on crates of lower layers; its tests may also
use development crates, which may use any. `unsafe` may occur in `UNSAFE_HOMES` only.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
UNSAFE_HOMES = ("crates/shm", "python/src")
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


def main() -> int:
    """Print the findings; 1 if there are any."""
    found = dependency_findings() + unsafe_findings()
    print("\n".join(found) if found else "check_layers: every arrow points down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
