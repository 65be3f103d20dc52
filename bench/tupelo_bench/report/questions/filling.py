"""Does filling a space slow it down?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.report.questions.grids import against, grid, text
from tupelo_bench.report.questions.question import Question
from tupelo_bench.report.units import whole

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Measure, Run
    from tupelo_bench.report.tables import Table


def filling(run: Run) -> Question:
    """What so many others in a space add to a put and a take."""
    return Question(
        "Does filling a space slow it down?",
        "[SETTLE] says yes, [MEM] says no. One client puts and takes Integers, while so many"
        " others lie there; behind each time, how many times that of the empty space it is."
        " Client and server on two processors.",
        tuple(_by_fill(run, metric) for metric in ("put", "take")),
    )


def _by_fill(run: Run, metric: str) -> Table:
    def cell(row: dict[Any, Measure], fill: int) -> str:
        return against(row.get(fill), row.get(0)) if fill else text(row.get(0))

    return grid(
        f"{metric} of an Integer, by the tuples that are there",
        run.find("mem", metric, entry="Integer", placement="apart"),
        lambda measure: measure.parameters["fill"],
        whole,
        cell,
    )
