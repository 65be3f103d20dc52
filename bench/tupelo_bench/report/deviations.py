"""Means with their standard deviations and intervals, as the publications give them.

A table of its own: beside the means stand the least and the greatest repeat, which show more where
repeats are of two kinds. Not of what was derived, which has no repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.harness.parameters import told
from tupelo_bench.presentation.tables import Table, metrics
from tupelo_bench.presentation.units import digits, quantity, scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.harness.record import Measure, Run

EXPLAINED = (
    "Mean, standard deviation of all samples, and behind the semicolon half of the 95 % interval of"
    " the mean, of the repeats; a mean alone where there is one sample."
)


def deviations(run: Run, experiment: str) -> list[Table]:
    """A table per metric of an experiment: a row per set of parameters, a column per backend."""
    measures = [measure for measure in run.of(experiment) if not measure.derived]
    return [_table(name, [m for m in measures if m.metric == name]) for name in metrics(measures)]


def with_deviation(measure: Measure) -> str:
    """All in the unit of the mean: "2.50 ± 0.31 µs; ± 0.49"."""
    figures = measure.summary
    if figures.sd is None:
        return quantity(figures.mean, measure.unit)
    step, suffix = scale(figures.mean, measure.unit)
    text = f"{digits(figures.mean / step)} ± {digits(figures.sd / step)}{suffix}"
    return text if figures.ci95 is None else f"{text}; ± {digits(figures.ci95 / step)}"


def _table(metric: str, measures: Sequence[Measure]) -> Table:
    rows: dict[str, dict[str, str]] = {}
    for measure in measures:
        rows.setdefault(told(measure.parameters), {})[measure.backend] = with_deviation(measure)
    backends = list(dict.fromkeys(measure.backend for measure in measures))
    return Table(
        metric,
        ("", *backends),
        tuple((cell, *(row.get(each, "-") for each in backends)) for cell, row in rows.items()),
    )
