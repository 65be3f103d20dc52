"""Each claim of the literature in a line: confirmed, refuted or not tested, and by what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.report.answers.claim import ALIKE
from tupelo_bench.report.answers.of_calls import of_calls
from tupelo_bench.report.answers.of_cases import of_cases
from tupelo_bench.report.answers.of_spaces import of_spaces
from tupelo_bench.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Collection

    from tupelo_bench.harness.record import Run
    from tupelo_bench.report.answers.claim import Answer

HOW = (
    "A claim is judged by Tupelo's own cells, by the test (Mann-Whitney, 0.05). It is"
    " confirmed where it holds in most cells that tell, and none says the reverse. It is refuted"
    " where it holds in none, or most say the reverse. Else it holds in part. Two figures are alike"
    f" where each is at most {ALIKE} times the other, also by the test. In brackets stand the"
    " ratios of the means. The other systems stand beside. Where cells are untold, there are too"
    " few repeats, or the figure is too near to a limit of the claim."
)


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
