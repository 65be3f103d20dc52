"""What the literature claims of a space and its clients: [SETTLE], [MEM]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.mem.entries import ENTRIES
from tupelo_bench.experiments.settle.aging import PRINTED_WORKLOAD, WORKLOADS, against_fresh
from tupelo_bench.experiments.settle.knee import POINTS_ENOUGH
from tupelo_bench.experiments.settle.metrics import (
    AGING,
    CLEANING,
    KNEE,
    KNEE_BEFORE,
    KNEE_POINTS,
    PAPER_AGED,
    RESPONSE,
    SHARE,
    THROUGHPUT,
    TOGETHER,
)
from tupelo_bench.presentation.units import whole
from tupelo_bench.report.answers.claim import Answer, at_most, in_order, paired, valued
from tupelo_bench.report.beside import best

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.record import Measure, Run
    from tupelo_bench.report.answers.claim import Pair

FULL = 10_000
A_TENTH = 0.1
KNEE_PRINTED = (8.0, 14.0)
SHARE_PRINTED = 0.31
PLAIN = ("plain-dict", "plain-list")


def of_spaces(run: Run) -> Iterator[Answer]:
    """All that `mem` and `settle` answer."""
    if run.of("mem"):
        yield from _of_mem(run)
    if run.of("settle"):
        yield from _of_settle(run)


def _of_mem(run: Run) -> Iterator[Answer]:
    yield in_order(
        f"A space with {whole(FULL)} tuples is slower than an empty one.", "SETTLE; MEM denies it",
        [
            pair
            for metric in ("put", "take")
            for pair in paired(run, "mem", metric, {"fill": 0, "placement": "apart"},
                               {"fill": FULL, "placement": "apart"})
            if pair[0].parameters["entry"] in [entry.name for entry in ENTRIES]
        ],
        figure="mem-time-of-a-take",
    )  # fmt: skip
    yield in_order(
        "A key in the last field is slower to take by than one in the first.", "LINDA, Tupleware",
        paired(run, "mem", "take", {"entry": "key first"}, {"entry": "key last"}),
        figure="mem-take-by-a-key",
    )  # fmt: skip
    yield at_most(
        "A put takes at most a tenth of JavaSpaces' time.", "MEM",
        _beside(run, "put", "javaspaces"), A_TENTH,
        figure="mem-time-of-a-put",
    )  # fmt: skip
    yield in_order(
        "A put takes less time than one over XML-RPC.", "MEM", _beside(run, "put", "xml-rpc"),
        figure="mem-time-of-a-put",
    )  # fmt: skip
    fills = sorted({measure.parameters["fill"] for measure in run.of("mem")})
    for metric in ("put", "take"):
        plain = [
            pair for name in PLAIN for fill in fills for pair in _beside(run, metric, name, fill)
        ]
        yield at_most(
            f"A {metric} takes at most twice the time of the best plain structure behind a lock,"
            " a list or a hash table, however many tuples there are.",
            "LINDA", _best_of(plain), 2.0, figure=f"mem-time-of-a-{metric}",
        )  # fmt: skip


def _beside(run: Run, metric: str, backend: str, fill: int = 0) -> list[Pair]:
    """Ours and that of another system, at its better placement, for every entry."""
    found = []
    for ours in run.find("mem", metric, fill=fill, placement="apart"):
        if ours.backend == OURS:
            theirs = best(run, metric, backend, entry=ours.parameters["entry"], fill=fill)
            if theirs is not None:
                found.append((ours, theirs))
    return found


def _best_of(pairs: list[Pair]) -> list[Pair]:
    """Of several structures the fastest, for each cell of ours."""
    least: dict[int, Pair] = {}
    for ours, theirs in pairs:
        known = least.get(id(ours))
        if known is None or theirs.summary.mean < known[1].summary.mean:
            least[id(ours)] = (ours, theirs)
    return list(least.values())


def _of_settle(run: Run) -> Iterator[Answer]:
    for space in ("javaspaces", OURS):
        yield _knee(run, space)
    aged = list(against_fresh(run, RESPONSE, PAPER_AGED, entry="Null"))
    most = max((m.parameters["aged by"] for m in run.find("settle", RESPONSE, series=PAPER_AGED)),
               default=WORKLOADS[0])  # fmt: skip
    yield in_order(
        f"{whole(PRINTED_WORKLOAD)} operations before the run add to the response time of empty"
        " entries (there 30 %).", "SETTLE",
        [pair for pair in aged if pair[1].parameters["aged by"] == PRINTED_WORKLOAD],
        figure="settle-null-8-clients-aged-paper",
    )  # fmt: skip
    yield in_order(
        "The more operations there were before the run, the more they add to the response time"
        f" (here up to {whole(most)}, against {whole(WORKLOADS[0])}; there up to"
        f" {whole(WORKLOADS[-1])}).", "SETTLE",
        [
            pair
            for workload in WORKLOADS[1:]
            for pair in paired(run, "settle", RESPONSE,
                               {"series": PAPER_AGED, "aged by": WORKLOADS[0]},
                               {"series": PAPER_AGED, "aged by": workload})
        ],
        figure="settle-null-8-clients-aged-paper",
    )  # fmt: skip
    yield in_order(
        "To clean a space takes less time than to age it.", "SETTLE",
        paired(run, "settle", (CLEANING, AGING), {}, {}),
    )  # fmt: skip
    yield valued(
        f"Aging and cleaning are at most {100 * SHARE_PRINTED:.0f} % of the time.", "SETTLE",
        list(_shares(run)), 0.0, SHARE_PRINTED,
    )  # fmt: skip
    yield in_order(
        "A durable space has less throughput than a transient one.", "SETTLE, future work",
        _durable(run), of="tupelo-file",
    )  # fmt: skip


def _knee(run: Run, space: str) -> Answer:
    """Where the knee of a system is; there it was JavaSpaces'."""
    claim = (
        f"The knee of a space ({space}) is at 8 to 14 clients: from there on only its response time"
        " rises."
    )
    figure = "settle-null-all-at-once"
    empty = {"series": TOGETHER, "entry": "Null"}
    knees = list(run.find("settle", KNEE, **empty))
    measured = run.find_one("settle", THROUGHPUT, space, **empty) is not None
    points = run.find_one("settle", KNEE_POINTS, space, **empty)
    if points is not None and points.summary.mean < POINTS_ENOUGH:
        evidence = f"{space} has {points.summary.mean:.0f} points of its curve"
        return Answer(claim, "SETTLE", "too little to tell", evidence, figure)
    here = run.find_one("settle", KNEE, space, **empty)
    before = run.find_one("settle", KNEE_BEFORE, space, **empty)
    if here is not None and (before is None or before.samples != here.samples):
        evidence = f"the knee of {space} rests on its last point alone"
        return Answer(claim, "SETTLE", "too little to tell", evidence, figure)
    if measured and here is None:
        evidence = f"{space} has no knee within its clients"
        return Answer(claim, "SETTLE", "refuted", evidence, figure)
    note = "clients at the knee"
    return valued(claim, "SETTLE", knees, *KNEE_PRINTED, figure=figure, of=space, note=note)


def _shares(run: Run) -> Iterator[Measure]:
    return run.find("settle", SHARE, series=PAPER_AGED)


def _durable(run: Run) -> list[Pair]:
    """The throughput of a durable system, and that of the same one that keeps nothing."""
    found = []
    for durable, transient in (("sqlite-durable", "sqlite"), ("tupelo-file", OURS)):
        for less in run.find("settle", THROUGHPUT, series=TOGETHER):
            if less.backend == durable:
                more = run.find_one("settle", THROUGHPUT, transient, **less.parameters)
                if more is not None:
                    found.append((less, more))
    return found
