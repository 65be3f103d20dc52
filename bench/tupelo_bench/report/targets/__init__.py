"""What the results were to show, and whether they do: computed from the record alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.presentation.tables import Table
from tupelo_bench.report.targets.cases import cases, visits
from tupelo_bench.report.targets.mem import faster, filled
from tupelo_bench.report.targets.rpc import calls, tails
from tupelo_bench.report.targets.settle import knee
from tupelo_bench.report.targets.sort import sorts

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run
    from tupelo_bench.report.targets.verdict import Verdict

JUDGES = (
    (faster, "mem"),
    (filled, "mem"),
    (knee, "settle"),
    (cases, "cases"),
    (visits, "cases"),
    (calls, "rpc"),
    (tails, "rpc"),
    (sorts, "sort"),
)


def targets(run: Run) -> Table:
    """All targets whose experiment was run."""
    found = [verdict for judge, of in JUDGES if run.of(of) for verdict in judge(run)]
    return Table(
        "What it was to show",
        ("", "target", "measured", "reached"),
        tuple((v.what, v.target, v.measured, _word(v)) for v in found),
    )


def _word(verdict: Verdict) -> str:
    if verdict.reached is None:
        return "not measured" if verdict.measured == "-" else "too little to tell"
    return "yes" if verdict.reached else "**no**"
