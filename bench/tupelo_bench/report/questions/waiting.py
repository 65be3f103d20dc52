"""What does it cost how a side waits?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.round_trips import CPU_TIME
from tupelo_bench.experiments.rpc.calls import ROUND_TRIP
from tupelo_bench.harness.placement import PLACEMENTS
from tupelo_bench.presentation.tables import Table
from tupelo_bench.report.beside import SPINNING
from tupelo_bench.report.questions.grids import backends, text
from tupelo_bench.report.questions.question import Question

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run


def waiting(run: Run) -> Question:
    """A round trip and its processor time, of sides that look again and of sides that sleep."""
    return Question(
        "Spinning against sleeping: what does a round trip cost the processors?",
        "A waiter of Tupelo looks again and again for up to 100 µs before it sleeps, and a socket's"
        " reader sleeps at once. So two columns have it the other way round: UDP whose readers look"
        " again (udp-spinning), and Tupelo whose sides sleep in an event loop (tupelo-aio). The"
        " processor time is that of both sides, and of a server. Calls of 256 bytes without a"
        " pause.",
        (_waiting(run),),
    )


def _waiting(run: Run) -> Table:
    measured = list(run.find("rpc", CPU_TIME, bytes=256))
    rows = []
    for backend in backends(measured):
        cells = [
            text(run.find_one("rpc", metric, backend, bytes=256, placement=where))
            for where in PLACEMENTS
            for metric in (ROUND_TRIP, CPU_TIME)
        ]
        rows.append((backend, _how(backend), *cells))
    heads = ("", "sides that wait", *(f"{what}, {where}" for where in PLACEMENTS
                                      for what in ("round trip", "processor time")))  # fmt: skip
    return Table("a round trip and its processor time", heads, tuple(rows))


def _how(backend: str) -> str:
    if backend in SPINNING:
        return "spin"
    spins_first = backend.startswith("tupelo-shm")
    return "spin, then sleep" if spins_first else "sleep"
