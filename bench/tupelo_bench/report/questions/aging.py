"""What does aging cost?"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.settle import Settle
from tupelo_bench.experiments.settle.aging import COMPARED, against_fresh, told_added
from tupelo_bench.experiments.settle.metrics import AGING, PAPER_AGED
from tupelo_bench.experiments.workload import KINDS
from tupelo_bench.presentation.units import whole
from tupelo_bench.report.questions.grids import grid
from tupelo_bench.report.questions.question import Key, Question, printed_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Measure, Run
    from tupelo_bench.presentation.tables import Table

AGED: Key = (Settle.name, AGING)


def aging(run: Run, experiments: Sequence[Experiment]) -> Question:
    """What operations before the clients began add to their response time and throughput."""
    return Question(
        "What does aging cost?",
        "Before the clients begin, the space is populated by so many operations. What that adds"
        " to the mean response time and to the throughput, against the same clients in a new"
        " space; with a tilde where the repeats of the two do not differ significantly. The"
        " printed figure is of clients with 1 000 objects each, and so is the first response time"
        " here, with the paper's delays; in these, throughput follows from the delays. Clients all"
        " at once have as many objects as they write in a second, beside which 3 000 operations may"
        " be few. To age and to clean is set against a run with the paper's delays.",
        (
            *printed_in(run, experiments, AGED),
            *(_by_workload(run, kind, *compared) for kind, compared in _measured(run)),
        ),
        (AGED,),
    )


def _measured(run: Run) -> Iterator[tuple[str, tuple[str, str]]]:
    """Of what is compared, what is in the record."""
    return (
        (kind, compared)
        for kind, compared in product(KINDS, COMPARED)
        if any(against_fresh(run, *compared, entry=kind))
    )


def _by_workload(run: Run, kind: str, metric: str, series: str) -> Table:
    found = against_fresh(run, metric, series, entry=kind)
    pairs = {id(aged): (fresh, aged) for fresh, aged in found}
    clients = "clients with the paper's delays" if series == PAPER_AGED else "clients all at once"

    def cell(row: dict[Any, Measure], at: Any) -> str:
        return told_added(*pairs[id(row[at])]) if at in row else "-"

    return grid(
        f"added to the {metric} of {clients}" + ("" if kind == "Null" else f", {kind}"),
        [aged for _, aged in pairs.values()],
        lambda measure: (measure.parameters["clients"], measure.parameters["aged by"]),
        lambda at: f"{at[0]} clients, {whole(at[1])} operations",
        cell,
    )
