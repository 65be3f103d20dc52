"""Tables of a record: per metric a row per set of parameters, a column per backend.

A figure is the mean; behind it stands how many times the first backend's that is. A tilde says that
the two do not differ significantly, a question mark that there are too few repeats to tell. Where
there is no figure it says why, as the record does ("can not", "over budget"), if that knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tupelo.bench.harness.runner import told
from tupelo.bench.harness.statistics import differ
from tupelo.bench.report.units import digits, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tupelo.bench.harness.record import Measure, Run


@dataclass(frozen=True)
class Table:
    """Heads and rows of text."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def metrics(measures: Sequence[Measure]) -> list[str]:
    """The metrics, in the order of their first measure."""
    return list(dict.fromkeys(measure.metric for measure in measures))


def tables(run: Run, experiment: str, only: Sequence[str] | None = None) -> list[Table]:
    """A table per metric of an experiment; of some metrics only if they are named."""
    measures = run.of(experiment)
    wanted = metrics(measures) if only is None else [m for m in metrics(measures) if m in only]
    reasons = {
        (told(remark.parameters), remark.backend): remark.why
        for remark in run.remarks
        if remark.experiment == experiment
    }
    return [
        _table([m for m in measures if m.metric == metric], metric, reasons) for metric in wanted
    ]


def _table(
    measures: Sequence[Measure], metric: str, reasons: Mapping[tuple[str, str], str]
) -> Table:
    rows: dict[str, dict[str, Measure]] = {}
    for measure in measures:
        rows.setdefault(told(measure.parameters), {})[measure.backend] = measure
    present = [measure.backend for measure in measures]
    absent = [backend for parameters, backend in reasons if parameters in rows]
    backends = list(dict.fromkeys([*present, *absent]))
    return Table(
        title=metric,
        heads=("", *backends),
        rows=tuple(
            (
                parameters,
                *(
                    _cell(cells, backend, backends[0], reasons.get((parameters, backend), "-"))
                    for backend in backends
                ),
            )
            for parameters, cells in rows.items()
        ),
    )


def _cell(cells: dict[str, Measure], backend: str, first: str, reason: str) -> str:
    if backend not in cells:
        return reason
    measure = cells[backend]
    text = quantity(measure.summary.mean, measure.unit)
    if backend == first or first not in cells:
        return text
    yardstick = cells[first]
    mean = yardstick.summary.mean
    if not mean:
        return text
    return f"{text}  {sign(yardstick, measure)}{digits(measure.summary.mean / mean)} x"


def sign(one: Measure, other: Measure) -> str:
    """A tilde if they do not differ significantly, a question mark if nobody can tell."""
    return {True: "", False: "~", None: "?"}[differ(one.independent, other.independent)]
