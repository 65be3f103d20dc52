"""What whole programs were to show: no peer faster, and no search that learns for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.cases.visits import CASE as VISITS
from tupelo_bench.experiments.cases.visits import SEEDS, SHARES, comparisons
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.statistics import differ
from tupelo_bench.presentation.units import digits
from tupelo_bench.report.beside import beside_us, is_faster_than
from tupelo_bench.report.targets.verdict import Verdict, gaps, listed, none_faster, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.record import Measure, Run

COORDINATION_FROM = 0.2
REACHED = {"fewer": True, "no difference": True, "more": False}


def cases(run: Run) -> Iterator[Verdict]:
    """Which peers are faster, and which are not slower where programs coordinate much."""
    pairs = list(beside_us(run, "cases", "total"))
    missing = gaps(run, "cases", "total")
    yield none_faster(
        "peers that are significantly faster in a case, size and number of workers",
        pairs,
        missing,
    )
    shares = {
        (m.backend, told(m.parameters)): m.summary.mean for m in run.find("cases", "coordination")
    }
    chatty = [
        (ours, theirs)
        for ours, theirs in pairs
        if max(shares.get((m.backend, told(m.parameters)), 0.0) for m in (ours, theirs))
        > COORDINATION_FROM
    ]
    judged = [(theirs, _is_slower(theirs, ours)) for ours, theirs in chatty]
    not_slower = [theirs for theirs, is_slower in judged if is_slower is False]
    untold = sum(is_slower is None for _, is_slower in judged)
    measured = listed(not_slower, len(chatty)) + (f"; {untold} can not be told" if untold else "")
    yield Verdict(
        f"peers that are not slower where over {COORDINATION_FROM:.0%} is coordination",
        "none",
        f"{measured}{missing}" if chatty else "-",
        verdict(not not_slower, is_whole=not (untold or missing)) if chatty else None,
    )


def _is_slower(one: Measure, other: Measure) -> bool | None:
    """Whether one is significantly slower, as it has to be; None if too few repeats tell."""
    if differ(one.independent, other.independent) is None:
        return None
    return is_faster_than(other, one)


def visits(run: Run) -> Iterator[Verdict]:
    """Whether asking by success factor visits more spaces than asking in turn, wherever they are.

    Each distribution by itself: that it visits fewer in one makes up for nothing in another.
    """
    found = {
        each.parameters["tuples"]: each
        for each in comparisons(run)
        if each.parameters["case"] == VISITS
    }
    for tuples in SHARES:
        each = found.get(tuples)
        measured = "-"
        if each and each.seeds:
            means = [digits(m.summary.mean) for m in (each.learned, each.in_turn)]
            more, fewer = each.seeds
            measured = f"{' for '.join(means)}; more with {more} seeds, fewer with {fewer}"
            measured += f": {each.outcome} (p = {each.p:.2g})"
        yield Verdict(
            f"visited spaces of a search by success factor, against in turn, of {SEEDS} seeds,"
            f" tuples {tuples}",
            "not significantly more",
            measured,
            REACHED.get(each.outcome) if each else None,
        )
