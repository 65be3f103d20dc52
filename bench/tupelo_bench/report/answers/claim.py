"""A claim, and what a record says of it: computed from pairs of cells that the claim puts in order.

Each pair is of one system: the measure that should be less, and the one that should be more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tupelo_bench.experiments.base import OURS
from tupelo_bench.harness.statistics import differ, is_mostly_below
from tupelo_bench.report.beside import is_peer
from tupelo_bench.report.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo_bench.harness.record import Measure, Run

Pair = tuple["Measure", "Measure"]
"""Of one system: what should be less, and what should be more."""
Cells = dict[str, Any]
"""Parameters that cells have in common."""
Outcome = Literal["holds", "reverse", "equal", "untold"]
Word = Literal["confirmed", "refuted", "in part", "too little to tell", "not tested"]


@dataclass(frozen=True)
class Answer:
    """A claim in a line of the table."""

    claim: str
    source: str
    verdict: Word
    evidence: str
    figure: str = ""
    """A part of the name of the figure that shows it."""


def outcome(pair: Pair) -> Outcome:
    """What the repeats of a pair say of its order."""
    less, more = pair
    apart = differ(less.independent, more.independent)
    if apart is None:
        return "untold"
    if not apart:
        return "equal"
    return "holds" if is_mostly_below(less.independent, more.independent) else "reverse"


def in_order(
    claim: str,
    source: str,
    pairs: Iterable[Pair],
    *,
    figure: str = "",
    equal: bool = False,
    of: str = OURS,
) -> Answer:
    """A claim that the first of each pair is less, or that both are `equal`.

    The verdict is that of the cells of one system, which the claim is `of`.
    """
    found = list(pairs)
    ours = [pair for pair in found if pair[0].backend == of]
    theirs = [pair for pair in found if is_peer(pair[0].backend) and pair[0].backend != of]
    if not found:
        return not_tested(claim, source, "no cell of it was measured")
    sides = (("Tupelo" if of == OURS else of, ours), ("the others", theirs))
    parts = [_counted(who, pairs, equal=equal) for who, pairs in sides if pairs]
    verdict = _verdict([outcome(pair) for pair in ours], equal=equal) if ours else "not tested"
    return Answer(claim, source, verdict, "; ".join(parts), figure)


def at_most(
    claim: str, source: str, pairs: Iterable[Pair], times: float, *, figure: str = ""
) -> Answer:
    """A claim that the first of each pair is at most so many times the second."""
    limited = [(less, _times(more, times), more) for less, more in pairs]
    if not limited:
        return not_tested(claim, source, "no cell of it was measured")
    found = [outcome((less, limit)) for less, limit, _ in limited]
    ratios = [less.summary.mean / more.summary.mean for less, _, more in limited]
    text = f"{digits(min(ratios))} to {digits(max(ratios))} times in {len(ratios)} cells"
    return Answer(claim, source, _verdict(found, equal=False), text, figure)


def valued(
    claim: str,
    source: str,
    measures: Sequence[Measure],
    low: float,
    high: float,
    *,
    figure: str = "",
) -> Answer:
    """A claim that a figure of ours lies between two values, both included."""
    ours = [measure.summary.mean for measure in measures if measure.backend == OURS]
    theirs = [measure.summary.mean for measure in measures if is_peer(measure.backend)]
    if not ours:
        return not_tested(claim, source, "no cell of it was measured")
    within = [low <= value <= high for value in ours]
    verdict: Word = "confirmed" if all(within) else "in part" if any(within) else "refuted"
    parts = [f"Tupelo {_span(ours)}", *([f"the others {_span(theirs)}"] if theirs else [])]
    return Answer(claim, source, verdict, "; ".join(parts), figure)


def not_tested(claim: str, source: str, why: str) -> Answer:
    """A claim of which the record says nothing."""
    return Answer(claim, source, "not tested", why)


def paired(
    run: Run, experiment: str, metrics: str | tuple[str, str], less: Cells, more: Cells
) -> list[Pair]:
    """The pairs of all systems whose cells differ in these parameters, and in nothing else.

    Of one metric, or of the first of two in what should be less, and of the second in the other.
    """
    of_less, of_more = (metrics, metrics) if isinstance(metrics, str) else metrics
    others = {_rest(measure, more): measure for measure in run.find(experiment, of_more, **more)}
    both = ((m, others.get(_rest(m, less))) for m in run.find(experiment, of_less, **less))
    return [(measure, other) for measure, other in both if other is not None]


def _rest(measure: Measure, fixed: Cells) -> tuple[object, ...]:
    kept = {k: v for k, v in measure.parameters.items() if k not in fixed}
    return measure.backend, *sorted(kept.items())


def _times(measure: Measure, times: float) -> Measure:
    return replace(measure, samples=[times * sample for sample in measure.samples])


def _counted(who: str, pairs: Sequence[Pair], *, equal: bool) -> str:
    """In how many cells the claim holds, and how far apart the means are."""
    found = [outcome(pair) for pair in pairs]
    ratios = [m.summary.mean / less.summary.mean for less, m in pairs if less.summary.mean]
    text = f"{who}: in {found.count('equal' if equal else 'holds')} of {len(found)} cells"
    if (reverse := found.count("reverse")) and not equal:
        text += f", the reverse in {reverse}"
    if untold := found.count("untold"):
        text += f", too few repeats in {untold}"
    return f"{text} ({_span(ratios)} times)" if ratios else text


def _span(values: Sequence[float]) -> str:
    ends = dict.fromkeys(digits(value) for value in (min(values), max(values)))
    return " to ".join(ends)


def _verdict(found: Sequence[Outcome], *, equal: bool) -> Word:
    """What the cells of a claim come to."""
    told = [each for each in found if each != "untold"]
    if not told:
        return "too little to tell"
    right = told.count("equal" if equal else "holds")
    wrong = len(told) - right if equal else told.count("reverse")
    if right > len(told) / 2 and not (wrong and not equal):
        return "confirmed"
    if not right or (wrong > len(told) / 2):
        return "refuted"
    return "in part"
