"""Each claim of the literature in a line: confirmed, refuted or not tested, and by what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.cases import Cases
from tupelo_bench.experiments.mem import Mem
from tupelo_bench.experiments.rpc import RPC
from tupelo_bench.experiments.settle import Settle
from tupelo_bench.experiments.sort import Sort
from tupelo_bench.presentation.tables import Table
from tupelo_bench.report.answers.claim import ALIKE
from tupelo_bench.report.answers.of_calls import of_calls
from tupelo_bench.report.answers.of_cases import of_cases
from tupelo_bench.report.answers.of_spaces import of_spaces

if TYPE_CHECKING:
    from collections.abc import Collection

    from tupelo_bench.harness.record import Run
    from tupelo_bench.report.answers.claim import Answer

HOW = tuple(
    f"""
A claim is judged by Tupelo's own cells. The other systems stand beside, and do not count.
A cell holds where the repeats differ as the claim says, by the test (Mann-Whitney, 0.05).
It says the reverse where they differ the other way.
It can not be told where there are too few repeats, or where it is too near to a limit.
Confirmed: it holds in most of the cells that can be told, and none says the reverse.
Refuted: most of these say the reverse, or it holds in none and more than one says the reverse.
Not shown: it holds in one of several at most, and one at most says the reverse, as by chance.
In part: it is none of these.
Two figures are alike where each is at most {ALIKE} times the other, also by the test.
In brackets stand the ratios of the means.
""".strip().splitlines()
)
"""How the verdicts are found, a point at a time."""
SHORT = {"MEM": Mem, "SETTLE": Settle, "LINDA": Cases, "LIMBO": RPC, "RPC": Sort}
"""What the publications are called in the table."""
SOURCES = "; ".join(f"{name} is {each.source}" for name, each in SHORT.items())


def answers(run: Run, drawn: Collection[str] = ()) -> Table:
    """The table of all claims; `drawn` are the files of figures that there are."""
    found = [*of_spaces(run), *of_cases(run), *of_calls(run)]
    rows = tuple(
        (answer.claim, answer.source, answer.verdict, answer.evidence, _figure(answer, drawn))
        for answer in found
    )
    return Table("Answers", ("claim", "of", "here", "evidence", "figure"), rows)


def _figure(answer: Answer, drawn: Collection[str]) -> str:
    path = next((path for path in drawn if answer.figure and answer.figure in path), None)
    return f"[figure]({path})" if path else "-"
