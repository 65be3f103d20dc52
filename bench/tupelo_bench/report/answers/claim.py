"""A claim, and what a record says of it: computed from pairs of cells that the claim puts in order.

Each pair is of one system: the measure that should be less, and the one that should be more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from tupelo_bench.experiments.base import OURS
from tupelo_bench.harness.statistics import differ, is_mostly_below
from tupelo_bench.presentation.units import digits, quantity
from tupelo_bench.report.beside import is_peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tupelo_bench.harness.record import Measure, Run

Pair = tuple["Measure", "Measure"]
"""Of one system: what should be less, and what should be more."""
Cells = dict[str, Any]
"""Parameters that cells have in common."""
Outcome = Literal["holds", "reverse", "equal", "untold"]
Word = Literal["confirmed", "refuted", "not shown", "in part", "too little to tell", "not tested"]


ALIKE = 1.1
"""Two figures are alike where neither is more than so many times the other."""

BY_CHANCE = 1
"""So many of several cells may hold, or say the reverse, by chance: that alone shows nothing."""


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


def bounded(pair: Pair, times: float) -> Outcome:
    """Whether the first is at most so many times the second; untold so near that limit."""
    less, more = pair
    found = outcome((less, _times(more, times)))
    return "untold" if found == "equal" else found


def alike(pair: Pair) -> Outcome:
    """Whether neither is more than `ALIKE` times the other.

    That the test tells no difference would not be enough: with few repeats it never does.
    """
    less, more = pair
    both = (bounded((less, more), ALIKE), bounded((more, less), ALIKE))
    if "reverse" in both:
        return "reverse"
    return "holds" if both == ("holds", "holds") else "untold"


def in_order(
    claim: str,
    source: str,
    pairs: Iterable[Pair],
    *,
    figure: str = "",
    of: str = OURS,
    note: str = "",
    cells: int = 0,
) -> Answer:
    """A claim that the first of each pair is less.

    The verdict is that of the cells of one system, which the claim is `of`. The note stands behind
    the evidence. There are `cells` of it in all, if that is given: fewer than half of them tell too
    little.
    """
    return _judged(_Claim(claim, source, figure, note, of, cells=cells), list(pairs), outcome)


def as_long(
    claim: str, source: str, pairs: Iterable[Pair], *, figure: str = "", note: str = ""
) -> Answer:
    """A claim that the two of each pair are alike."""
    return _judged(_Claim(claim, source, figure, note), list(pairs), alike)


def at_most(
    claim: str,
    source: str,
    pairs: Iterable[Pair],
    times: float,
    *,
    figure: str = "",
    note: str = "",
) -> Answer:
    """A claim that the first of each pair is at most so many times the second."""
    of_first = _Claim(claim, source, figure, note, of_first=True)
    return _judged(of_first, list(pairs), partial(bounded, times=times))


@dataclass(frozen=True)
class _Claim:
    """What is said, by whom, and of which system."""

    text: str
    source: str
    figure: str
    note: str
    of: str = OURS
    of_first: bool = False
    """Whether the ratios are those of the first of each pair to the second."""
    cells: int = 0
    """How many cells the claim is of; 0 where that is not said."""


def _judged(claim: _Claim, pairs: list[Pair], judge: Callable[[Pair], Outcome]) -> Answer:
    """The verdict on a claim, and in how many cells of whom it holds."""
    ours = [pair for pair in pairs if pair[0].backend == claim.of]
    theirs = [pair for pair in pairs if is_peer(pair[0].backend) and pair[0].backend != claim.of]
    if not ours and not theirs:
        return not_tested(claim.text, claim.source, "no cell of it was measured")
    sides = (("Tupelo" if claim.of == OURS else claim.of, ours), ("the others", theirs))
    parts = [
        _counted(who, [judge(pair) for pair in side], _ratios(side, of_first=claim.of_first))
        for who, side in sides
        if side
    ]
    verdict = _verdict([judge(pair) for pair in ours]) if ours else "not tested"
    if 2 * len(ours) < claim.cells:
        verdict = "too little to tell"
        parts.append(f"there are {claim.cells} cells of it")
    evidence = "; ".join([*parts, *([claim.note] if claim.note else [])])
    return Answer(claim.text, claim.source, verdict, evidence, claim.figure)


def valued(
    claim: str,
    source: str,
    measures: Sequence[Measure],
    low: float,
    high: float,
    *,
    figure: str = "",
    of: str = OURS,
    note: str = "",
) -> Answer:
    """A claim that a figure of one system lies between two values, both included."""
    ours = [measure.summary.mean for measure in measures if measure.backend == of]
    peers = [m for m in measures if is_peer(m.backend) and m.backend != of]
    theirs = [measure.summary.mean for measure in peers]
    if not ours:
        return not_tested(claim, source, "no cell of it was measured")
    within = [low <= value <= high for value in ours]
    verdict: Word = "confirmed" if all(within) else "in part" if any(within) else "refuted"
    who = "Tupelo" if of == OURS else of
    unit = next((measure.unit for measure in measures), "")
    parts = [f"{who} {_span(ours, unit)}"]
    parts += [f"the others {_span(theirs, unit)}"] if theirs else []
    return Answer(claim, source, verdict, "; ".join([*parts, *([note] if note else [])]), figure)


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


def _ratios(pairs: Sequence[Pair], *, of_first: bool) -> list[float]:
    """How many times the first the second is, or the other way round."""
    both = [(less.summary.mean, more.summary.mean) for less, more in pairs]
    turned = [(more, less) for less, more in both] if of_first else both
    return [numerator / divisor for divisor, numerator in turned if divisor]


def _counted(who: str, found: Sequence[Outcome], ratios: Sequence[float]) -> str:
    """In how many cells the claim holds, and how far apart the means are."""
    text = f"{who}: in {found.count('holds')} of {len(found)} cells"
    if reverse := found.count("reverse"):
        text += f", the reverse in {reverse}"
    if untold := found.count("untold"):
        text += f", {untold} can not be told"
    return f"{text} ({_span(ratios)} times)" if ratios else text


def _span(values: Sequence[float], unit: str = "") -> str:
    """The least and the greatest; those that are times with their units."""
    both = (min(values), max(values))
    ends = dict.fromkeys(quantity(v, unit) if unit == "s" else digits(v) for v in both)
    return " to ".join(ends)


def _verdict(found: Sequence[Outcome]) -> Word:
    """What the cells of a claim come to."""
    told = [each for each in found if each != "untold"]
    if not told:
        return "too little to tell"
    right, wrong = told.count("holds"), told.count("reverse")
    if right > len(told) / 2 and not wrong:
        return "confirmed"
    if wrong > len(told) / 2 or (wrong > BY_CHANCE and not right):
        return "refuted"
    return "in part" if max(right, wrong) > BY_CHANCE else "not shown"
