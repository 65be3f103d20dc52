"""Checks the size of the wheel in a folder: what is downloaded, and what an installation takes."""

import sys
import zipfile
from pathlib import Path

# With the server, TLS and SQLite in it.
PACKED_BYTES_MAX = 8_000_000
UNPACKED_BYTES_MAX = 18_000_000


def findings(wheel: Path) -> list[str]:
    """What is wrong with the wheel, one line each."""
    with zipfile.ZipFile(wheel) as archive:
        files = sorted(archive.infolist(), key=lambda file: file.file_size, reverse=True)
    sizes = {
        "packed": (wheel.stat().st_size, PACKED_BYTES_MAX),
        "unpacked": (sum(file.file_size for file in files), UNPACKED_BYTES_MAX),
    }
    print(", ".join(f"{size / 1e6:.1f} MB {what}" for what, (size, _) in sizes.items()))
    largest = ", ".join(f"{file.filename} has {file.file_size}" for file in files[:3])
    return [
        f"{wheel}: {size} bytes {what}, over the limit of {limit}: {largest}"
        for what, (size, limit) in sizes.items()
        if size > limit
    ]


def main() -> int:
    """Print the findings; 1 if there are any."""
    if len(sys.argv) != 2:  # noqa: PLR2004
        print("usage: check_wheel.py FOLDER", file=sys.stderr)
        return 2
    wheels = list(Path(sys.argv[1]).glob("*.whl"))
    if len(wheels) != 1:
        print(f"check_wheel: {len(wheels)} wheels in {sys.argv[1]}, not one", file=sys.stderr)
        return 1
    found = findings(wheels[0])
    print("\n".join(found) if found else f"check_wheel: {wheels[0].name} is fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
