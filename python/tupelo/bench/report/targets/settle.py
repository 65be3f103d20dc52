"""What SETTLE was to show: that throughput does not fall beyond the knee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo.bench.experiments.base import OURS
from tupelo.bench.experiments.settle import CLIENTS
from tupelo.bench.report.targets.verdict import Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo.bench.harness.record import Run

THROUGHPUT_LEAST = 0.8


def knee(run: Run) -> Iterator[Verdict]:
    """What is left of the greatest throughput with the most clients."""
    found = {
        measure.parameters["clients"]: measure.summary.mean
        for measure in run.find("settle", "throughput", series="overlapping")
        if measure.backend == OURS
    }
    most, missing = max(CLIENTS), sorted(set(CLIENTS) - set(found))
    measured, reached = "-", None  # also where it fell before: there it may rise again
    if most in found:
        # With a point that is not there the maximum could be higher, never lower.
        share = found[most] / max(found.values())
        measured = f"{share:.0%}"
        reached = verdict(share >= THROUGHPUT_LEAST, is_whole=not missing)
    elif found:
        measured = f"with {max(found)} clients at most"
    if found and missing:
        without = ", ".join(map(str, missing))
        measured += f"; {len(found)} of {len(CLIENTS)} points, without {without}"
    yield Verdict(
        f"throughput with {most} clients that overlap, against its maximum",
        f"{THROUGHPUT_LEAST:.0%} at least",
        measured,
        reached,
    )
