"""What does aging cost?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo.bench.experiments.settle import Settle
from tupelo.bench.experiments.settle.aging import against_fresh, told_added
from tupelo.bench.experiments.settle.metrics import AGING, RESPONSE, THROUGHPUT
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
    """What operations before the clients began add to their response time and throughput."""
    return Question(
        "What does aging cost?",
        "Before the clients begin, the space is populated by so many operations. What that adds"
        " to the mean response time and to the throughput, against the same clients in a new"
        " space; with a tilde where the repeats of the two do not differ significantly. To age"
        " and to clean is set against a run of these clients with the paper's delays of 200 ms,"
        " which is a cell of its own, since the printed share is of such a run: the aged runs here"
        " have no delays, and a thousand objects of each client may be done in 2 ms.",
        (
            *printed_in(run, experiments, AGED),
            *(_by_workload(run, metric) for metric in (RESPONSE, THROUGHPUT)),
        ),
        (AGED,),
    )


def _by_workload(run: Run, metric: str) -> Table:
    pairs = {id(aged): (fresh, aged) for fresh, aged in against_fresh(run, metric)}

    def cell(row: dict[Any, Measure], at: Any) -> str:
        return told_added(*pairs[id(row[at])]) if at in row else "-"

    return grid(
        f"added to the {metric}",
        [aged for _, aged in pairs.values()],
        lambda measure: (measure.parameters["clients"], measure.parameters["aged by"]),
        lambda at: f"{at[0]} clients, {whole(at[1])} operations",
        cell,
    )
