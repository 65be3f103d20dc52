"""What SETTLE was to show: that throughput does not fall beyond the knee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.settle import CLIENTS_TOGETHER
from tupelo_bench.experiments.settle.metrics import THROUGHPUT, TOGETHER
from tupelo_bench.presentation.tables import mean_of
from tupelo_bench.report.targets.verdict import Verdict, is_below, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.record import Measure, Run

THROUGHPUT_LEAST = 0.8


def knee(run: Run) -> Iterator[Verdict]:
    """What is left of the greatest throughput with the most clients, of each kind of entry."""
    found: dict[str, dict[int, Measure]] = {"Null": {}}
    for measure in run.find("settle", THROUGHPUT, series=TOGETHER):
        if measure.backend == OURS:
            curve = found.setdefault(measure.parameters["entry"], {})
            curve[measure.parameters["clients"]] = measure
    return (_left(kind, curve) for kind, curve in found.items())


def _left(kind: str, curve: dict[int, Measure]) -> Verdict:
    most, missing = max(CLIENTS_TOGETHER), sorted(set(CLIENTS_TOGETHER) - set(curve))
    measured, reached = "-", None  # also where it fell before: there it may rise again
    if most in curve:
        # With a point that is not there the maximum could be higher, never lower.
        last, best = curve[most], max(curve.values(), key=lambda measure: measure.summary.mean)
        measured = f"{last.summary.mean / best.summary.mean:.0%}: {mean_of(last)}"
        if best is not last:
            measured += f", against {mean_of(best)}"
        below = [is_below(last, THROUGHPUT_LEAST, each) for each in curve.values() if each != last]
        untold = below.count(None)
        if untold:
            measured += f"; beside {untold} of {len(below)} points the repeats can not tell"
        reached = verdict(True not in below, is_whole=not (missing or untold))
    elif curve:
        measured = f"with {max(curve)} clients at most"
    if curve and missing:
        without = ", ".join(map(str, missing))
        measured += f"; {len(curve)} of {len(CLIENTS_TOGETHER)} points, without {without}"
    of = "" if kind == "Null" else f", {kind}"
    return Verdict(
        f"throughput with {most} clients at once, against its maximum{of}",
        f"{THROUGHPUT_LEAST:.0%} at least",
        measured,
        reached,
    )
