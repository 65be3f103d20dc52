"""Compare two builds, line by line: which one is how much faster, and how sure that is.

    python tools/compare_builds.py FOLDER OTHER_FOLDER [--rounds 30] [--json]

Each folder holds an unpacked wheel, or benchmarks of Rust in its folder `benches/`, or both:

    pip install --no-deps --target before dist/tupelo-*.whl
    cargo bench --package tupelo --bench pair --bench claims --no-run  # prints where they are
    mkdir before/benches && cp target/release/deps/pair-0123 before/benches/pair

The wheel gives one line: a put and a take from Python. A benchmark gives a line per row that it
prints with a time. The builds take turns in processes of their own, so a machine that is busy for
a while is busy for both. The ratio of each line is that of neighbours: FOLDER's by OTHER_FOLDER's.
Its interval is that of the median, at 95 %, from the order of the ratios alone.

The exit status is 1 if the interval of a line lies above `--most` (1.05).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

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
# A row of a benchmark: what was measured, two spaces or more, a time and its unit.
ROW = re.compile(r"^(?P<name>.*?\S) {2,}(?P<time>[\d.]+) (?P<unit>ns|µs|ms|s)\b")
UNITS_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}

Times = dict[str, float]


def run(command: list[str], environment: dict[str, str]) -> str:
    """Run a program to its end and return what it printed."""
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603 - our own code
    return done.stdout


def of_wheel(folder: Path) -> Times:
    """Return the time of a put and a take with the wheel in `folder`, the least of ten runs."""
    environment = os.environ | {"PYTHONPATH": str(folder.resolve())}
    # The word after -P: what lies in the current folder is not imported instead.
    time_ns, file = run([sys.executable, "-P", "-c", MEASURE], environment).split(maxsplit=1)
    if not Path(file.strip()).is_relative_to(folder.resolve()):
        sys.exit(f"{folder} holds no unpacked wheel: what was measured is {file.strip()}")
    return {"python: put + take": float(time_ns)}


def of_benchmark(program: Path) -> Times:
    """Return the times that a benchmark prints, by `BENCHMARK: ROW`. Equal names are numbered."""
    times: Times = {}
    for line in run([str(program), "--bench"], dict(os.environ)).splitlines():
        if row := ROW.match(line):
            name = f"{program.name}: {row['name'].strip()}"
            count = sum(known == name or known.startswith(f"{name} #") for known in times)
            name = f"{name} #{count + 1}" if count else name
            times[name] = float(row["time"]) * UNITS_NS[row["unit"]]
    return times


def measure(folder: Path) -> Times:
    """Return all times of a folder, in nanoseconds."""
    times = of_wheel(folder) if (folder / "tupelo").is_dir() else {}
    for program in sorted((folder / "benches").glob("*")):
        times |= of_benchmark(program)
    if not times:
        sys.exit(f"{folder} holds neither an unpacked wheel nor benches/: see --help")
    return times


def interval(values: list[float]) -> tuple[float, float]:
    """Return an interval of at least 95 % for the median, as the sign test has it."""
    ordered, count = sorted(values), len(values)
    outside, below = 0, 0.0
    while outside < (count - 1) // 2:
        below += math.comb(count, outside) / 2**count
        if below > 0.025:  # noqa: PLR2004 - half of the 5 % that may lie outside
            break
        outside += 1
    outside = max(0, outside - 1)
    return ordered[outside], ordered[count - 1 - outside]


class Line(NamedTuple):
    """A line of both builds: medians, the median ratio and its interval."""

    line: str
    time_ns: float
    other_time_ns: float
    ratio: float
    low: float
    high: float


def compared(name: str, times_ns: list[float], other_times_ns: list[float]) -> Line:
    """Compare the times of one line, round by round."""
    ratios = [a / b for a, b in zip(times_ns, other_times_ns, strict=True)]
    medians = (statistics.median(times_ns), statistics.median(other_times_ns))
    return Line(name, *medians, statistics.median(ratios), *interval(ratios))


def main() -> None:
    """Let the builds take turns, and print the ratio of each line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--most", type=float, default=1.05, metavar="RATIO")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    first: dict[str, list[float]] = defaultdict(list)
    second: dict[str, list[float]] = defaultdict(list)
    for number in range(arguments.rounds):
        # Who is first in a round changes: what the first one leaves behind concerns both alike.
        turns = [(arguments.folder, first), (arguments.other, second)]
        for folder, times in turns if number % 2 == 0 else reversed(turns):
            for name, time_ns in measure(folder).items():
                times[name].append(time_ns)
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    lines = [
        compared(name, first[name], second[name])
        for name in first
        if len(first[name]) == len(second[name])
    ]
    if arguments.json:
        print(json.dumps([line._asdict() for line in lines], indent=1))
    else:
        print(f"{'line':<70} {'ns':>11} {'other':>11} {'ratio':>6}  interval")
        for line in lines:
            mark = "  SLOWER" if line.low > arguments.most else ""
            row = f"{line.line:<70} {line.time_ns:>11.1f} {line.other_time_ns:>11.1f}"
            print(f"{row} {line.ratio:>6.3f}  {line.low:.3f} to {line.high:.3f}{mark}")
    sys.exit(any(line.low > arguments.most for line in lines))


if __name__ == "__main__":
    main()
