"""What does a remote read cost on one host?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.cases.matrix_summed import CASE as SUMMED
from tupelo_bench.experiments.cases.skeleton import LOCAL_HIT, REMOTE_HIT
from tupelo_bench.harness.placement import PLACEMENTS
from tupelo_bench.presentation.tables import Table
from tupelo_bench.report.questions.grids import backends, text
from tupelo_bench.report.questions.question import Question

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run

ROWS_CASE = {"case": SUMMED, "rows": "uniform"}


def remote(run: Run) -> Question:
    """A read of another process's space, beside one of its own, and beside a call."""
    return Question(
        "What does a remote read cost on one host?",
        "The space of another process is remote, also on the same machine. Reads of rows of the"
        " matrix that are there, from the own space and from that of the next worker, while all"
        " others rest; and a call and its answer between two processes, on two processors and on"
        " one.",
        (_remote(run),),
    )


def _remote(run: Run) -> Table:
    reads = list(run.find("cases", REMOTE_HIT, **ROWS_CASE))
    size = max((m.parameters["size"] for m in reads), default=0)
    workers = [m.parameters["workers"] for m in reads if m.parameters["size"] == size]
    wanted = {**ROWS_CASE, "size": size, "workers": 5 if 5 in workers else max(workers, default=0)}  # noqa: PLR2004
    calls = list(run.find("rpc", "round trip", bytes=256))
    rows = [
        (
            backend,
            text(run.find_one("cases", LOCAL_HIT, backend, **wanted)),
            text(run.find_one("cases", REMOTE_HIT, backend, **wanted)),
            *(
                text(run.find_one("rpc", "round trip", backend, bytes=256, placement=where))
                for where in PLACEMENTS
            ),
        )
        for backend in backends([*reads, *calls])
    ]
    pings = [
        text(run.find_one("yardsticks", "ping-pong", "machine", placement=where))
        for where in PLACEMENTS
    ]
    if rows:
        rows.append(("a byte through a pipe and back", "-", "-", *pings))
    heads = ("", "read of the own space", "of another's", "call of 256 bytes, apart", "together")
    cell = f"matrix {size} x {size}, {wanted['workers']} workers" if size else "calls only"
    return Table(f"reads ({cell})", heads, tuple(rows))
