"""Does filling a space slow it down?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.mem.entries import ENTRIES
from tupelo_bench.presentation.units import whole
from tupelo_bench.report.questions.grids import against, grid, text
from tupelo_bench.report.questions.question import Question

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Measure, Run
    from tupelo_bench.presentation.tables import Table


OTHERS = 10_000  # tuples of the paper's full space


def filling(run: Run) -> Question:
    """What so many others in a space add to a put and a take."""
    return Question(
        "Does filling a space slow it down?",
        "[SETTLE] says yes, [MEM] says no. One client puts and takes entries, while so many others"
        " of the same type lie there; behind each time, how many times that of the empty space it"
        " is. Client and server on two processors. Small entries tell whether a system looks at the"
        " other tuples. Large ones fill more than the caches: who copies a tuple out of memory that"
        " the program maps itself waits for that memory, and no other tuple was looked at.",
        (
            *(_by_fill(run, metric) for metric in ("put", "take")),
            *(_by_entry(run, metric) for metric in ("put", "take")),
        ),
    )


def _by_entry(run: Run, metric: str) -> Table:
    """Every type of entry beside so many others, of all systems."""
    empty = {
        (measure.backend, measure.parameters["entry"]): measure
        for measure in run.find("mem", metric, fill=0, placement="apart")
    }
    names = [entry.name for entry in ENTRIES]
    full = [
        measure
        for measure in run.find("mem", metric, fill=OTHERS, placement="apart")
        if measure.parameters["entry"] in names
    ]

    def cell(row: dict[Any, Measure], place: int) -> str:
        measure = row.get(place)
        return against(measure, empty.get((measure.backend, names[place]))) if measure else "-"

    return grid(
        f"{metric} of every entry, with {whole(OTHERS)} of them there",
        full,
        lambda measure: names.index(measure.parameters["entry"]),
        lambda place: names[place],
        cell,
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
