"""Where is the knee?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.settle import Settle
from tupelo_bench.experiments.settle.metrics import KNEE, THROUGHPUT, TOGETHER
from tupelo_bench.experiments.workload import KINDS
from tupelo_bench.report.questions.grids import grid
from tupelo_bench.report.questions.question import Key, Question, printed_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Run
    from tupelo_bench.presentation.tables import Table

KNEES: Key = (Settle.name, KNEE)


def knee(run: Run, experiments: Sequence[Experiment]) -> Question:
    """From how many clients on only the response time rises."""
    return Question(
        "Where is the knee?",
        "All clients are active at once, in windows of a second that are the same for all systems."
        " The knee is the number of clients beyond which throughput rises by no more than 5 % and"
        " response time does. The response time is that of a thousand objects, written and taken.",
        (*printed_in(run, experiments, KNEES), *_by_clients(run)),
        (KNEES,),
    )


def _by_clients(run: Run) -> Iterator[Table]:
    """A table for each kind of entry that was measured; empty ones always are the first."""
    for kind in KINDS:
        measures = list(run.find("settle", THROUGHPUT, series=TOGETHER, entry=kind))
        if measures or kind == "Null":
            yield grid(
                "throughput by clients" if kind == "Null" else f"throughput by clients, {kind}",
                measures,
                lambda measure: measure.parameters["clients"],
                lambda clients: f"{clients} clients",
            )
