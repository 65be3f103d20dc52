"""Which space should a search ask first?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.cases import visits
from tupelo_bench.harness.parameters import told
from tupelo_bench.presentation.tables import Table
from tupelo_bench.report.questions.grids import text
from tupelo_bench.report.questions.question import Question

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run


def search(run: Run) -> Question:
    """How many spaces a search visits in turn, and by success factor."""
    return Question(
        "Which space should a search ask first?",
        "Who does not know where a tuple is looks into one space after the other: in turn, or"
        " first where most searches for such a tuple ended so far (success factor). Visited"
        f" spaces by search, of {visits.SEEDS} seeds; in the ocean model, of its repeats. p is"
        " how likely so large a difference is by chance, two-sided: by the sign test where both"
        " orders had the same seeds, and so the same tuples at the same places, which finds a"
        " difference of a percent, too; by Mann-Whitney where they had not.",
        (_visits(run),),
    )


def _visits(run: Run) -> Table:
    rows = tuple(
        (
            told(each.parameters),
            each.in_turn.backend,
            text(each.in_turn),
            text(each.learned),
            str(len(each.learned.independent)),
            f"{each.p:.2g}",
            each.outcome,
            "-" if each.seeds is None else f"{each.seeds[0]} of {len(each.learned.samples)}",
        )
        for each in visits.comparisons(run)
    )
    heads = ("", "", *visits.ORDERS, "repeats", "p", "by success factor", "more with seeds")
    return Table("visited spaces of a search", heads, rows)
