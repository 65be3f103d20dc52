"""A target and its verdict, and the verdict that many comparisons come to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tupelo.bench.harness.parameters import told
from tupelo.bench.report.beside import is_faster_than

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.bench.harness.record import Measure, Run

NAMED_MAX = 3  # examples in a cell of a table


@dataclass(frozen=True)
class Verdict:
    """A target, and what became of it."""

    what: str
    target: str
    measured: str
    reached: bool | None
    """None if it was not measured, or not enough of it to tell."""


def none_faster(what: str, pairs: Sequence[tuple[Measure, Measure]], missing: int) -> Verdict:
    """Whether no peer is significantly faster; unknown if one is and there are too few repeats."""
    judged = [(theirs, is_faster_than(theirs, ours)) for ours, theirs in pairs]
    faster = [theirs for theirs, is_faster in judged if is_faster]
    perhaps = [theirs for theirs, is_faster in judged if is_faster is None]
    measured = listed(faster, len(pairs)) if pairs else "-"
    if perhaps:
        measured += f"; perhaps {listed(perhaps, len(pairs))}"
    if missing:
        measured += f"; {missing} more were over the budget"
    is_known = bool(faster) or (bool(pairs) and not perhaps)
    return Verdict(what, "none", measured, not faster if is_known else None)


def listed(found: Sequence[Measure], of: int) -> str:
    """How many of so many comparisons, and the first of them by name."""
    named = [f"{m.backend} {told(m.parameters)}" for m in found[:NAMED_MAX]]
    more = [f"{len(found) - NAMED_MAX} more"] if len(found) > NAMED_MAX else []
    return "; ".join([f"{len(found)} of {of} comparisons", *named, *more])


def over_budget(run: Run, experiment: str, peer: str | None = None) -> int:
    """How many cells of peers, or of one, were over their share of the time."""
    return sum(
        remark.experiment == experiment
        and remark.why == "over budget"
        and (remark.backend == peer if peer else not remark.backend.startswith("tupelo"))
        for remark in run.remarks
    )
