"""What SETTLE was to show: that throughput does not fall beyond the knee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo.bench.experiments.base import OURS
from tupelo.bench.report.targets.verdict import Verdict

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
    most = max(found, default=0)
    share = found[most] / max(found.values()) if found else 0.0
    yield Verdict(
        f"throughput with {most} clients that overlap, against its maximum",
        f"{THROUGHPUT_LEAST:.0%} at least",
        f"{share:.0%}" if found else "-",
        share >= THROUGHPUT_LEAST if found else None,
    )
