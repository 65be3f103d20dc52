"""The figures of the paper, by their numbers there, and its printed numbers.

Its figures 27 to 30 compare the transports of one system on several hosts. Here all peers run on
one host. They differ in how each is reached, which the page says ("How each is driven").
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.cases.skeleton import (
    EACH_MAX,
    LOCAL_READING,
    LOCAL_WITHDRAWING,
    LOCAL_WRITING,
    REMOTE_READING,
    SEARCH,
    TOTAL,
    VISITED,
)
from tupelo_bench.report.figure import Figure, lines, marks
from tupelo_bench.report.printed import Printed
from tupelo_bench.report.tables import mean_of, span
from tupelo_bench.report.units import digits, scale, whole

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Measure, Run

# (number in the paper, metric, case, what else is fixed), by the largest or the second size.
BY_WORKERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("6", TOTAL, {"case": "password", "key": "second", "size": 100_000}),
    ("7", TOTAL, {"case": "password", "key": "second", "size": 1_000_000}),
    ("8", LOCAL_WRITING, {"case": "password", "key": "second", "size": 1_000_000}),
    ("9, reading", LOCAL_READING, {"case": "password", "key": "second", "size": 1_000_000}),
    ("9, withdrawing", LOCAL_WITHDRAWING, {"case": "password", "key": "second", "size": 1_000_000}),
    ("10", SEARCH, {"case": "password", "key": "second", "size": 1_000_000}),
    ("", TOTAL, {"case": "password", "key": "first", "size": 100_000}),
    ("11", TOTAL, {"case": "sorting", "size": 1_000_000}),
    ("12", TOTAL, {"case": "sorting", "size": 10_000_000}),
    ("13", REMOTE_READING, {"case": "sorting", "size": 10_000_000}),
    ("14", LOCAL_WRITING, {"case": "sorting", "size": 10_000_000}),
    ("15", VISITED, {"case": "ocean", "search": "round robin", "size": 1_200}),
    (
        "15, by success factor",
        VISITED,
        {"case": "ocean", "search": "success factor", "size": 1_200},
    ),
    ("16", TOTAL, {"case": "ocean", "search": "round robin", "size": 600}),
    ("17", TOTAL, {"case": "ocean", "search": "round robin", "size": 1_200}),
    ("18", REMOTE_READING, {"case": "ocean", "search": "round robin", "size": 1_200}),
    ("19", TOTAL, {"case": "matrix rows", "rows": "uniform", "size": 100}),
    ("19, B-1", TOTAL, {"case": "matrix rows", "rows": "B-1", "size": 100}),
    ("20", VISITED, {"case": "matrix rows", "rows": "uniform", "size": 100}),
    ("20, B-1", VISITED, {"case": "matrix rows", "rows": "B-1", "size": 100}),
    ("21", SEARCH, {"case": "matrix rows", "rows": "uniform", "size": 100}),
    ("22", REMOTE_READING, {"case": "matrix rows", "rows": "uniform", "size": 100}),
    ("25", TOTAL, {"case": "matrix blocks", "block": 10, "size": 100}),
    ("26", TOTAL, {"case": "matrix blocks", "block": 5, "size": 100}),
)

# Sizes of a quick run, where only one is measured.
QUICK_SIZES = {"password": 500, "sorting": 20_000, "ocean": 60, "matrix rows": 12}
QUICK_SIZES["matrix blocks"] = 20


def figures(run: Run) -> list[Figure]:
    """All figures that can be drawn."""
    found = []
    drawn = set()
    for number, metric, fixed in BY_WORKERS:
        wanted = dict(fixed)
        if run.quick:
            wanted["size"] = QUICK_SIZES[wanted["case"]]
        title = f"{described(wanted)}: {metric}"
        if title in drawn:  # two sizes of the paper are one size of a quick run
            continue
        drawn.add(title)
        figure, _, part = number.partition(", ")
        note = f"Figure {figure} of the paper" if figure else "As figure 6, TUPLEWARE(H)"
        note += f", {part}" if part else ""
        blocks = lines(run, "cases", metric, "workers", fixed=wanted, title=title, note=note)
        found.append(beside_rows(run, blocks) if wanted["case"] == "matrix blocks" else blocks)
    for number, rows in (("23", "uniform"), ("24", "B-1")):
        size = QUICK_SIZES["matrix rows"] if run.quick else 100
        workers = 2 if run.quick else 5
        fixed = {"case": "matrix rows", "rows": rows, "size": size, "workers": workers}
        found.append(
            marks(
                run,
                "cases",
                f"{SEARCH}, worker ",
                fixed={**fixed, "backend": OURS},
                title=f"{described(fixed)}: each search of {workers} workers, {OURS}",
                note=(
                    f"Figure {number} of the paper; the first {EACH_MAX} searches of each worker,"
                    f" of {OURS} only, in one repeat"
                ),
            )
        )
    return found


def beside_rows(run: Run, blocks: Figure) -> Figure:
    """A multiplication by blocks beside the same by rows, of whomever both were measured."""
    fixed = {"case": "matrix rows", "rows": "uniform", "size": blocks.fixed["size"]}
    rows = lines(run, "cases", TOTAL, "workers", fixed=fixed, title="")
    present = [series.label for series in blocks.series]
    others = (
        replace(series, label=f"{series.label}, rows", beside=series.label)
        for series in rows.series
        if series.label in present
    )
    note = f"{blocks.note}; dashed: by rows, uniform"
    return replace(blocks, series=(*blocks.series, *others), note=note)


def described(fixed: dict[str, Any]) -> str:
    """What a figure shows, in words."""
    size = whole(fixed["size"])
    return {
        "password": lambda: f"Password search among {size} pairs, key {fixed['key']}",
        "sorting": lambda: f"Sorting of {size} numbers",
        "ocean": lambda: f"Ocean model, {size} x {size}, {fixed['search']}",
        "matrix rows": lambda: f"Matrix {size} x {size} by rows, {fixed['rows']}",
        "matrix blocks": lambda: (
            f"Matrix {size} x {size} by blocks of {fixed['block']} x {fixed['block']} and by rows"
        ),
    }[fixed["case"]]()


def printed(run: Run) -> list[Printed]:
    """The numbers of the paper's tables, for 15 workers, beside ours."""
    heads = ("", "GigaSpaces, one host", "Docker", "network", OURS, "redis")
    rows = [
        ("sorting 10^7, remote reading", "60.0817 ms", "12.4407 ms", "12.2382 ms",
         *ours(run, REMOTE_READING, case="sorting", size=10_000_000)),
        ("sorting 10^7, total", "25 701 ms", "28 773 ms", "11 112 ms",
         *ours(run, TOTAL, case="sorting", size=10_000_000)),
        ("matrix 100, remote reading", "0.0223 ms", "2.867 ms", "1.3340 ms",
         *ours(run, REMOTE_READING, case="matrix rows", rows="uniform", size=100)),
        ("matrix 100, total", "1 577 ms", "19 641 ms", "13 918 ms",
         *ours(run, TOTAL, case="matrix rows", rows="uniform", size=100)),
    ]  # fmt: skip
    ocean = [
        ("ocean 1 200, remote reading", "0.0188 - 0.0597 ms", "2.0341 - 3.0108 ms", "> 190 ms",
         *over_workers(run, REMOTE_READING, case="ocean", search="round robin", size=1_200)),
    ]  # fmt: skip
    others = ("", "GigaSpaces", "MozartSpaces", "Tupleware, Klaim", OURS, "redis")
    return [
        Printed("15 workers", "15 workers, as printed and here", heads, tuple(rows), 3),
        Printed("ocean", "ocean model, as printed and here", others, tuple(ocean), 3),
    ]


def over_workers(run: Run, metric: str, **parameters: Any) -> tuple[str, str]:
    """From where to where the time goes over the numbers of workers, of Tupelo and of Redis."""
    by_backend: dict[str, list[Measure]] = {}
    for measure in run.find("cases", metric, **parameters):
        by_backend.setdefault(measure.backend, []).append(measure)
    return _range(by_backend.get(OURS, [])), _range(by_backend.get("redis", []))


def _range(measures: list[Measure]) -> str:
    if not measures:
        return "-"
    means_s = [measure.summary.mean for measure in measures]
    step, unit = scale(min(means_s), "s")
    ends = dict.fromkeys(digits(mean_s / step) for mean_s in (min(means_s), max(means_s)))
    workers = span([measure.parameters["workers"] for measure in measures])
    return f"{' - '.join(ends)}{unit}, with {workers} workers"


def ours(run: Run, metric: str, **parameters: Any) -> tuple[str, str]:
    """The time at 15 workers, of Tupelo and of Redis."""
    by_backend = {
        measure.backend: mean_of(measure)
        for measure in run.find("cases", metric, workers=15, **parameters)
    }
    return by_backend.get(OURS, "-"), by_backend.get("redis", "-")
