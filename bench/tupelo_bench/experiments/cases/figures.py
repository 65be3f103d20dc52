"""The figures of the paper, by their numbers there, and its printed numbers.

Its figures 27 to 30 compare the transports of one system: on one host, in containers, over a
network. Here they compare Tupelo in shared memory and behind sockets, all on one host.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.cases import matrix_summed
from tupelo_bench.experiments.cases.matrix_rows import EACH_SIZE, EACH_WORKERS
from tupelo_bench.experiments.cases.skeleton import (
    KEYED_READING,
    KEYED_WITHDRAWING,
    LOCAL_WRITING,
    REMOTE_READING,
    SEARCH,
    SEARCH_MEDIAN,
    TOTAL,
    VISITED,
)
from tupelo_bench.presentation.figure import Figure, lines, marks, with_beside
from tupelo_bench.presentation.printed import Printed
from tupelo_bench.presentation.tables import mean_of, span
from tupelo_bench.presentation.units import digits, scale, whole

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Measure, Run


@dataclass(frozen=True)
class Beside:
    """What a figure has in the same picture, of the same systems."""

    words: str
    changes: dict[str, Any]
    """What of its cells is another."""
    metric: str = ""
    """Its own; empty for that of the figure."""
    dashes: Literal["--", ":", "-."] = "--"


@dataclass(frozen=True)
class ByWorkers:
    """A figure over the numbers of workers."""

    number: str
    """In the paper; empty for one that the paper does not have."""
    metric: str
    fixed: dict[str, Any]
    beside: tuple[Beside, ...] = ()
    words: str = ""
    """What is to be known of it."""


PASSWORD = {"case": "password", "key": "second", "size": 1_000_000}
FEWER_PASSWORDS = {**PASSWORD, "size": 100_000}
SORTING = {"case": "sorting", "size": 10_000_000}
OCEAN = {"case": "ocean", "search": "round robin", "size": 1_200}
LEARNED = {"search": "success factor"}
ROWS = {"case": "matrix rows", "rows": "uniform", "search": "round robin", "size": 100}
B_1 = Beside("B-1", {"rows": "B-1"})
SUMMED = {"case": matrix_summed.CASE, "rows": "uniform", "size": 100}
BLOCKS = {"case": "matrix blocks", "block": 10, "size": 100}
BY_ROWS = Beside("by rows, uniform", {**ROWS, "block": None})
BY_WORKERS = (
    ByWorkers("6", TOTAL, FEWER_PASSWORDS, (Beside("key first", {"key": "first"}),),
              "the key first, as TUPLEWARE(H) needs it"),
    ByWorkers("7", TOTAL, PASSWORD),
    ByWorkers("8", LOCAL_WRITING, PASSWORD),
    ByWorkers("9", KEYED_READING, PASSWORD, (Beside("withdrawing", {}, KEYED_WITHDRAWING),),
              "by the same templates, after the index was built"),
    ByWorkers("10", SEARCH, PASSWORD, (Beside("the median", {}, SEARCH_MEDIAN),),
              "a mean has the first searches, which build Tupelo's index"),
    ByWorkers("11", TOTAL, {**SORTING, "size": 1_000_000}),
    ByWorkers("12", TOTAL, SORTING),
    ByWorkers("13", REMOTE_READING, SORTING),
    ByWorkers("14", LOCAL_WRITING, SORTING),
    ByWorkers("15", VISITED, OCEAN, (Beside("by success factor", LEARNED),)),
    ByWorkers("16", TOTAL, {**OCEAN, "size": 600}),
    ByWorkers("17", TOTAL, OCEAN),
    ByWorkers("18", REMOTE_READING, OCEAN),
    ByWorkers("19", TOTAL, ROWS, (B_1,)),
    ByWorkers("20", VISITED, ROWS, (
        B_1,
        Beside("by success factor", LEARNED, dashes=":"),
        Beside("B-1 by success factor", {**LEARNED, "rows": "B-1"}, dashes="-."),
    )),
    ByWorkers("21", SEARCH, ROWS, (B_1,)),
    ByWorkers("22", REMOTE_READING, ROWS, (B_1,)),
    ByWorkers("", TOTAL, SUMMED, (B_1,), "Not the paper's program: it has no partial rows"),
    ByWorkers("25", TOTAL, BLOCKS, (BY_ROWS,)),
    ByWorkers("25", TOTAL, {**BLOCKS, "block": 5}, (BY_ROWS,)),
    ByWorkers("26", REMOTE_READING, BLOCKS, (BY_ROWS,)),
    ByWorkers("26", REMOTE_READING, {**BLOCKS, "block": 5}, (BY_ROWS,)),
)  # fmt: skip
TRANSPORTS = (OURS, "tupelo-unix", "tupelo-tcp")
BY_TRANSPORT = (
    ("27", TOTAL, SORTING), ("28", REMOTE_READING, SORTING),
    ("29", TOTAL, ROWS), ("30", REMOTE_READING, ROWS),
)  # fmt: skip
# The searches one by one: of Tupelo, and of the first of these that was measured.
EACH_SEARCH = ("javaspaces", "redis", "postgres", "sqlite", "rinda", "mp-manager")

# Sizes of a quick run, where only one is measured.
QUICK_SIZES = {"password": 500, "sorting": 20_000, "ocean": 60, "matrix rows": 12}
QUICK_SIZES |= {"matrix blocks": 20, matrix_summed.CASE: 12}


def figures(run: Run) -> list[Figure]:
    """All figures that can be drawn."""
    found: dict[str, Figure] = {}
    for each in BY_WORKERS:
        figure = by_workers(run, each)
        found.setdefault(figure.title, figure)  # two sizes of the paper are one of a quick run
    transports = (by_transport(run, *each) for each in BY_TRANSPORT)
    return [*found.values(), *transports, *each_search(run)]


def by_workers(run: Run, wanted: ByWorkers) -> Figure:
    """A figure, with what stands beside in the same picture."""
    fixed = of_this_run(run, wanted.fixed)
    of_paper = f"Figure {wanted.number} of LINDA" if wanted.number else ""
    note = "; ".join(part for part in (of_paper, wanted.words) if part)
    title = f"{described(fixed)}: {wanted.metric}"
    figure = lines(run, "cases", wanted.metric, "workers", fixed=fixed, title=title, note=note)
    for each in wanted.beside:
        changed = of_this_run(run, {**wanted.fixed, **each.changes})
        if changed["size"] != fixed["size"]:
            continue  # of a quick run, whose cases have sizes of their own
        metric = each.metric or wanted.metric
        other = lines(run, "cases", metric, "workers", fixed=changed, title="")
        figure = with_beside(figure, other, each.words, each.dashes)
    return figure


def by_transport(run: Run, number: str, metric: str, cells: dict[str, Any]) -> Figure:
    """A figure of Tupelo in shared memory and behind sockets."""
    fixed = of_this_run(run, cells)
    title = f"{described(fixed)}, by transport: {metric}"
    note = (
        f"After figure {number} of LINDA, which compares one host, containers and a network;"
        " here all is on one host"
    )
    figure = lines(run, "cases", metric, "workers", fixed=fixed, title=title, note=note)
    wanted = tuple(series for series in figure.series if series.label in TRANSPORTS)
    # Without a second transport there is nothing to compare.
    return replace(figure, series=wanted if len(wanted) > 1 else ())


def of_this_run(run: Run, fixed: dict[str, Any]) -> dict[str, Any]:
    """The cells of a figure, of the size that this run has."""
    return {**fixed, "size": QUICK_SIZES[fixed["case"]]} if run.quick else fixed


def each_search(run: Run) -> list[Figure]:
    """All searches of the workers, of Tupelo and of one peer."""
    workers = 2 if run.quick else EACH_WORKERS
    fixed = {**of_this_run(run, {**ROWS, "size": EACH_SIZE}), "workers": workers}
    first = f"{SEARCH}, worker 0"
    peer = next((p for p in EACH_SEARCH if run.find_one("cases", first, p, **fixed)), "redis")
    return [
        marks(
            run, "cases", f"{SEARCH}, worker ", fixed={**fixed, "backend": backend},
            title=f"{described(fixed)}: each search of {workers} workers, {backend}",
            note=f"Figure {number} of LINDA; all searches of one repeat",
        )
        for number, backend in (("23", OURS), ("24", peer))
    ]  # fmt: skip


def described(fixed: dict[str, Any]) -> str:
    """What a figure shows, in words."""
    size = whole(fixed["size"])
    return {
        "password": lambda: f"Password search among {size} pairs, key {fixed['key']}",
        "sorting": lambda: f"Sorting of {size} numbers",
        "ocean": lambda: f"Ocean model, {size} x {size}, {fixed['search']}",
        "matrix rows": lambda: f"Matrix {size} x {size} by rows, as listed, {fixed['rows']}",
        matrix_summed.CASE: lambda: (
            f"Matrix {size} x {size} by rows, summed locally, {fixed['rows']}"
        ),
        "matrix blocks": lambda: (
            f"Matrix {size} x {size} by blocks of {fixed['block']} x {fixed['block']}"
        ),
    }[fixed["case"]]()


def printed(run: Run) -> list[Printed]:
    """The numbers of the paper's tables, for 15 workers, beside ours."""
    heads = ("", "GigaSpaces, one host", "Docker", "network", OURS, "redis")
    rows = [
        ("sorting 10^7, remote reading", "60.0817 ms", "12.4407 ms", "12.2382 ms",
         *ours(run, REMOTE_READING, **SORTING)),
        ("sorting 10^7, total", "25 701 ms", "28 773 ms", "11 112 ms",
         *ours(run, TOTAL, **SORTING)),
        ("matrix 100 by rows, remote reading", "0.0223 ms", "2.867 ms", "1.3340 ms",
         *ours(run, REMOTE_READING, **ROWS)),
        ("matrix 100 by rows, total", "1 577 ms", "19 641 ms", "13 918 ms",
         *ours(run, TOTAL, **ROWS)),
    ]  # fmt: skip
    ocean = [
        ("ocean 1 200, remote reading", "0.0188 - 0.0597 ms", "2.0341 - 3.0108 ms", "> 190 ms",
         *over_workers(run, REMOTE_READING, **OCEAN)),
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
