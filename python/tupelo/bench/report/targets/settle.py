"""What SETTLE was to show: that throughput does not fall beyond the knee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo.bench.experiments.base import OURS
from tupelo.bench.experiments.settle import CLIENTS
from tupelo.bench.experiments.settle.metrics import OVERLAPPING, THROUGHPUT
from tupelo.bench.report.targets.verdict import Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo.bench.harness.record import Run

THROUGHPUT_LEAST = 0.8


def knee(run: Run) -> Iterator[Verdict]:
    """What is left of the greatest throughput with the most clients, of each kind of entry."""
    found: dict[str, dict[float, float]] = {"Null": {}}
    for measure in run.find("settle", THROUGHPUT, series=OVERLAPPING):
        if measure.backend == OURS:
            curve = found.setdefault(measure.parameters["entry"], {})
            curve[measure.parameters["clients"]] = measure.summary.mean
    return (_left(kind, curve) for kind, curve in found.items())


def _left(kind: str, curve: dict[float, float]) -> Verdict:
    most, missing = max(CLIENTS), sorted(set(CLIENTS) - set(curve))
    measured, reached = "-", None  # also where it fell before: there it may rise again
    if most in curve:
        # With a point that is not there the maximum could be higher, never lower.
        share = curve[most] / max(curve.values())
        measured = f"{share:.0%}"
        reached = verdict(share >= THROUGHPUT_LEAST, is_whole=not missing)
    elif curve:
        measured = f"with {max(curve)} clients at most"
    if curve and missing:
        without = ", ".join(map(str, missing))
        measured += f"; {len(curve)} of {len(CLIENTS)} points, without {without}"
    of = "" if kind == "Null" else f", {kind}"
    return Verdict(
        f"throughput with {most} clients that overlap, against its maximum{of}",
        f"{THROUGHPUT_LEAST:.0%} at least",
        measured,
        reached,
    )
