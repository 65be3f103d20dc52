"""Compare two builds of the Python package: which one is how much faster at a put and a take.

    python tools/compare_builds.py FOLDER OTHER_FOLDER [--rounds 30]

Each folder holds an unpacked wheel. The builds take turns in processes of their own, so a machine
that is busy for a while is busy for both. The median of the ratios of neighbours counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

PAIRS = 200_000
MEASURE = f"""
import timeit
import tupelo
with tupelo.connect("mem://compare", size="16M") as space:
    pair = 'space.put("job", k, 3.5); space.take("job", k, float)'
    names = {{"space": space, "k": 17}}
    timeit.timeit(pair, globals=names, number={PAIRS // 10})
    runs = timeit.repeat(pair, globals=names, number={PAIRS // 10}, repeat=10)
    print(min(runs) / {PAIRS // 10} * 1e9, tupelo.__file__)
"""


def pair_ns(folder: Path) -> float:
    """Return the time of a put and a take with the build in `folder`, the least of ten runs."""
    environment = os.environ | {"PYTHONPATH": str(folder.resolve())}
    # The word after -P: what lies in the current folder is not imported instead.
    command = [sys.executable, "-P", "-c", MEASURE]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603 - our own code
    time_ns, file = done.stdout.split(maxsplit=1)
    if not Path(file.strip()).is_relative_to(folder.resolve()):
        sys.exit(f"{folder} holds no unpacked wheel: what was measured is {file.strip()}")
    return float(time_ns)


def main() -> None:
    """Let the builds take turns and print the median of each, and of their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    first, second = [], []
    for _ in range(arguments.rounds):
        first.append(pair_ns(arguments.folder))
        second.append(pair_ns(arguments.other))
    ratios = sorted(a / b for a, b in zip(first, second, strict=True))
    for folder, times in ((arguments.folder, first), (arguments.other, second)):
        print(f"{folder}: {statistics.median(times):.1f} ns, least {min(times):.1f} ns")
    low, high = ratios[len(ratios) // 4], ratios[-len(ratios) // 4]
    print(f"ratio: {statistics.median(ratios):.3f}, half of them {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
