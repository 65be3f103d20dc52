"""Does the field order of a template matter?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.presentation.tables import Table
from tupelo_bench.presentation.units import whole
from tupelo_bench.report.beside import best, fill_max
from tupelo_bench.report.questions.grids import against, backends, text
from tupelo_bench.report.questions.question import Question

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run


def field_order(run: Run) -> Question:
    """A key in the first field, and in another."""
    return Question(
        "Does the field order of a template matter?",
        "In the literature it does where a system hashes the first field only. A take by a key"
        " in the first and in the last field, out of as many tuples as were tried; and the"
        " password search with its key as the first and as the second field.",
        (_field_order(run),),
    )


def _field_order(run: Run) -> Table:
    rows = []
    fill = fill_max(run, "key last")
    for backend in backends(run.find("mem", "take", entry="key last")):
        first = best(run, "take", backend, entry="key first", fill=fill, placement="apart")
        last = best(run, "take", backend, entry="key last", fill=fill, placement="apart")
        rows.append((f"take out of {whole(fill)}", backend, text(first), against(last, first)))
    sizes = [m.parameters["size"] for m in run.find("cases", "total", case="password", key="first")]
    for backend in backends(run.find("cases", "total", case="password", key="first")):
        size = max(sizes)
        for measure in run.find("cases", "total", case="password", key="first", size=size):
            if measure.backend == backend:
                workers = measure.parameters["workers"]
                wanted = {"case": "password", "key": "second", "size": size, "workers": workers}
                second = run.find_one("cases", "total", backend, **wanted)
                what = f"password search, {whole(size)}, {workers} workers"
                rows.append((what, backend, text(measure), against(second, measure)))
    return Table("by field", ("", "", "key first", "key last or second"), tuple(rows))
