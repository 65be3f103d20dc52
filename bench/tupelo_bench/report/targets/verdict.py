"""A target and its verdict, and the verdict that many comparisons come to.

One comparison is enough to miss a target. To reach one takes all of them: where some were not made
the verdict is that there is too little to tell, beside how many those are, and why.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tupelo_bench.experiments.base import OURS
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.statistics import differ, is_mostly_below
from tupelo_bench.report.beside import is_faster_than, is_peer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.harness.record import Measure, Run

NAMED_MAX = 3  # examples in a cell of a table


@dataclass(frozen=True)
class Verdict:
    """A target, and what became of it."""

    what: str
    target: str
    measured: str
    reached: bool | None
    """None if it was not measured, or not enough of it to tell."""


def verdict(reached: bool, *, is_whole: bool) -> bool | None:  # noqa: FBT001 - the verdict so far
    """The verdict on a target, of which a part was not measured if not `is_whole`."""
    return reached if is_whole or not reached else None


def is_below(one: Measure, times: float, other: Measure) -> bool | None:
    """Whether one is significantly less than so many times the other; None if nobody can tell.

    The same test as everywhere compares the repeats of the one with so many times those of the
    other. Two means say nothing if the repeats of either differ by more than the means differ from
    a limit.
    """
    limits = [times * value for value in other.independent]
    if not differ(one.independent, limits):
        return None
    return is_mostly_below(one.independent, limits)


@dataclass
class Gaps:
    """Comparisons that were to be made and were not."""

    cells: Counter[str] = field(default_factory=Counter)
    """How many, by reason."""
    systems: list[str] = field(default_factory=list)
    """Whole systems, each with the reason: how many cells they would have had nobody noted."""

    def __bool__(self) -> bool:
        return bool(self.cells or self.systems)

    def __str__(self) -> str:
        """What stands behind the comparisons that were made; empty if all of them were."""
        reasons = ", ".join(f"{count} {why}" for why, count in self.cells.most_common())
        if len(self.cells) == 1:  # whose number stands there already
            (reasons,) = self.cells
        counted = [f"{self.cells.total()} not made ({reasons})"] if self.cells else []
        return "".join(f"; {part}" for part in [*counted, *self.systems])


def gaps(run: Run, experiment: str, metric: str, peer: str | None = None) -> Gaps:
    """What keeps a metric of peers, or of one, from being compared with ours.

    Not what a system can not do: nobody could ever compare that.
    """

    def concerns(backend: str) -> bool:
        return backend == peer if peer else is_peer(backend)

    found = Gaps()
    ours = {told(m.parameters) for m in run.find(experiment, metric) if m.backend == OURS}
    reasons: dict[str, str] = {}  # why we have no figure of a cell
    for remark in run.left_out:
        if remark.experiment != experiment or remark.why == "can not":
            continue
        if remark.backend == OURS:
            reasons[told(remark.parameters)] = remark.why
        elif concerns(remark.backend) and remark.parameters:
            found.cells[remark.why] += 1
        elif concerns(remark.backend):
            found.systems.append(f"{remark.backend} {remark.why}")
    for measure in run.find(experiment, metric):
        cell = told(measure.parameters)
        if concerns(measure.backend) and cell not in ours:
            found.cells[reasons.get(cell, "not measured")] += 1
    found.systems = list(dict.fromkeys(found.systems))  # said again for each placement
    return found


def none_faster(what: str, pairs: Sequence[tuple[Measure, Measure]], missing: Gaps) -> Verdict:
    """Whether no peer is significantly faster; unknown if one is and there are too few repeats."""
    judged = [(theirs, is_faster_than(theirs, ours)) for ours, theirs in pairs]
    faster = [theirs for theirs, is_faster in judged if is_faster]
    perhaps = [theirs for theirs, is_faster in judged if is_faster is None]
    measured = listed(faster, len(pairs)) if pairs else "-"
    if perhaps:
        measured += f"; perhaps {listed(perhaps, len(pairs))}"
    if pairs:
        measured += str(missing)
    is_whole = bool(pairs) and not perhaps and not missing
    return Verdict(what, "none", measured, verdict(not faster, is_whole=is_whole))


def listed(found: Sequence[Measure], of: int) -> str:
    """How many of so many comparisons, and the first of them by name."""
    named = [f"{m.backend} {told(m.parameters)}" for m in found[:NAMED_MAX]]
    more = [f"{len(found) - NAMED_MAX} more"] if len(found) > NAMED_MAX else []
    return "; ".join([f"{len(found)} of {of} comparisons", *named, *more])
