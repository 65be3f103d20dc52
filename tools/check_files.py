"""Checks every tracked file: its size, its links, and that it names no package host.

* Source files stay under 600 lines (a reader would find two subjects in a longer one).
* A link from one page to another leads somewhere.
* The results of a record, all files together, stay below eight megabytes.
* Packages are named, never addressed: an address of a registry in the tree would tie the build to
  one network. `Cargo.lock` is Cargo's own and always names the canonical source.
"""

import re
import subprocess
import sys
from pathlib import Path

LINES_MAX = 600
RESULTS = Path("docs/results")
RESULTS_BYTES_MAX = 8_000_000
SOURCE_SUFFIXES = {".rs", ".py", ".pyi", ".sh", ".toml"}
GENERATED = {"Cargo.lock"}  # and whatever says so in its first lines

PACKAGE_HOSTS = re.compile(
    r"\b(?:pypi\.org|pythonhosted\.org|crates\.io/|index\.crates\.io|registry\.npmjs\.org"
    r"|proxy\.golang\.org|repo\d?\.maven|deb\.debian\.org|--(?:extra-)?index-url)"
)
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
GENERATED_MARK = re.compile(r"^(?:#|//|\"\"\") ?generated\b", re.IGNORECASE | re.MULTILINE)


def findings(path: Path) -> list[str]:
    """What is wrong with one file, one line each."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    found = []
    lines = text.count("\n")
    generated = GENERATED_MARK.search(text[:400]) is not None
    if path.suffix in SOURCE_SUFFIXES and lines > LINES_MAX and not generated:
        found.append(f"{path}: {lines} lines, over the limit of {LINES_MAX}: split it by subject")
    for number, line in enumerate(text.splitlines(), 1):
        if path.suffix == ".md":
            found += [
                f"{path}:{number}: the link to {target} leads nowhere"
                for target in LINK.findall(line)
                if not (path.parent / target).exists()
            ]
        host = PACKAGE_HOSTS.search(line)
        if host:
            found.append(f"{path}:{number}: names the package host {host.group()!r}")
    return found


def main() -> int:
    """Print the findings; 1 if there are any."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [Path(name) for name in listing.stdout.split("\0") if name]
    own = Path(__file__).resolve()
    found = [
        line
        for path in paths
        if path.is_file() and path.name not in GENERATED and path.resolve() != own
        for line in findings(path)
    ]
    results = [path for path in paths if RESULTS in path.parents and path.is_file()]
    results_bytes = sum(path.stat().st_size for path in results)
    if results_bytes > RESULTS_BYTES_MAX:
        found.append(f"{RESULTS}: {results_bytes} bytes, over the limit of {RESULTS_BYTES_MAX}")
    print("\n".join(found) if found else f"check_files: {len(paths)} files are fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
