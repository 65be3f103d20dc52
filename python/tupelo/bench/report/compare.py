"""Two runs side by side: what became faster or slower, as far as the samples can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo.bench.harness.runner import told
from tupelo.bench.harness.statistics import SIGNIFICANCE, mann_whitney_p
from tupelo.bench.report.tables import FEW, Table
from tupelo.bench.report.units import digits, quantity

if TYPE_CHECKING:
    from tupelo.bench.harness.record import Measure, Run


def compared(old: Run, new: Run) -> Table:
    """A row per measure that both runs have and that differs; the greatest change first.

    Where there are too few samples to tell, every difference is shown, with a question mark.
    """
    before = {measure.key(): measure for measure in old.measures}
    changed: list[tuple[float, tuple[str, ...]]] = []
    for measure in new.measures:
        earlier = before.get(measure.key())
        if earlier is None or not earlier.summary.mean or not measure.summary.mean:
            continue
        ratio = measure.summary.mean / earlier.summary.mean
        doubt = _doubt(earlier, measure)
        if doubt is not None and ratio != 1:
            changed.append((max(ratio, 1 / ratio), _row(earlier, measure, ratio, doubt)))
    changed.sort(key=lambda pair: pair[0], reverse=True)
    return Table(
        title="changed since the old run",
        heads=("", "backend", "metric", "old", "new", "new / old"),
        rows=tuple(row for _, row in changed),
    )


def _doubt(old: Measure, new: Measure) -> str | None:
    """None if they do not differ, "" if they do, "?" if the samples are too few to tell."""
    if min(len(old.samples), len(new.samples)) < FEW:
        return "?"
    return "" if mann_whitney_p(old.samples, new.samples) < SIGNIFICANCE else None


def _row(old: Measure, new: Measure, ratio: float, doubt: str) -> tuple[str, ...]:
    return (
        f"{new.experiment} {told(new.parameters)}".rstrip(),
        new.backend,
        new.metric,
        quantity(old.summary.mean, old.unit),
        quantity(new.summary.mean, new.unit),
        f"{digits(ratio)} x{doubt}",
    )
