"""How much memory does a tuple take?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.mem.memory import ASKED_FIRST, METRIC
from tupelo_bench.presentation.units import whole
from tupelo_bench.report.questions.grids import grid
from tupelo_bench.report.questions.question import Question

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run
    from tupelo_bench.presentation.tables import Table

INDEXED = "Those with a key were asked for by it before: an index is part of what they take."
UNTOLD = (
    "Whether those with a key were asked for by it before, so that Tupelo had an index over them,"
    " the record does not say."
)


def memory(run: Run) -> Question:
    """What a system holds after a fill, less what it held before, by tuple."""
    was_asked = any(run.find("mem", ASKED_FIRST))
    return Question(
        "How much memory does a tuple take?",
        "What a system says it holds after a fill, less what it held before, by tuple: the"
        " operating system's figure for a server that can not tell. Entries of 0, 4, 32, 256,"
        f" 2 048 and 16 384 bytes. {INDEXED if was_asked else UNTOLD}",
        (_memory(run),),
    )


def _memory(run: Run) -> Table:
    found = list(run.find("mem", METRIC, placement="apart"))
    order = list(dict.fromkeys(measure.parameters["entry"] for measure in found))
    return grid(
        METRIC,
        found,
        lambda m: (order.index(m.parameters["entry"]), m.parameters["fill"]),
        lambda at: f"{order[at[0]]}, {whole(at[1])}",
    )
