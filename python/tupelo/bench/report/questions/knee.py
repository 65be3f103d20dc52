"""Where is the knee?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo.bench.experiments.settle import Settle
from tupelo.bench.experiments.settle.metrics import KNEE
from tupelo.bench.report.questions.grids import grid
from tupelo.bench.report.questions.question import Key, Question, printed_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.bench.experiments.base import Experiment
    from tupelo.bench.harness.record import Run
    from tupelo.bench.report.tables import Table

KNEES: Key = (Settle.name, KNEE)


def knee(run: Run, experiments: Sequence[Experiment]) -> Question:
    """From how many clients on only the response time rises."""
    return Question(
        "Where is the knee?",
        "Clients begin one after the other, half a phase apart, so that they overlap. The knee"
        " is the number of clients beyond which throughput rises by no more than 5 % and"
        " response time does.",
        (*printed_in(run, experiments, KNEES), _by_clients(run)),
        (KNEES,),
    )


def _by_clients(run: Run) -> Table:
    return grid(
        "throughput by clients",
        run.find("settle", "throughput", series="overlapping"),
        lambda measure: measure.parameters["clients"],
        lambda clients: f"{clients} clients",
    )
