"""What does aging cost?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo.bench.experiments.settle import Settle
from tupelo.bench.experiments.settle.metrics import ADDED, AGING
from tupelo.bench.report.questions.grids import grid
from tupelo.bench.report.questions.question import Key, Question, printed_in
from tupelo.bench.report.units import whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.bench.experiments.base import Experiment
    from tupelo.bench.harness.record import Measure, Run
    from tupelo.bench.report.tables import Table

AGED: Key = (Settle.name, AGING)


def aging(run: Run, experiments: Sequence[Experiment]) -> Question:
    """What operations before the clients began add to their response time."""
    return Question(
        "What does aging cost?",
        "Before the clients begin, the space is populated by so many operations. What that adds"
        " to the mean response time, against the same clients in a new space.",
        (*printed_in(run, experiments, AGED), _by_workload(run)),
        (AGED,),
    )


def _by_workload(run: Run) -> Table:
    def cell(row: dict[Any, Measure], at: Any) -> str:
        return f"{row[at].summary.mean:+.0%}" if at in row else "-"

    return grid(
        "added to the response time",
        run.find("settle", ADDED),
        lambda measure: (measure.parameters["clients"], measure.parameters["aged by"]),
        lambda at: f"{at[0]} clients, {whole(at[1])} operations",
        cell,
    )
