"""What whole programs were to show: no peer faster, and no search that learns for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo.bench.experiments.cases.visits import CASE as VISITS
from tupelo.bench.experiments.cases.visits import SEEDS, comparisons
from tupelo.bench.harness.parameters import told
from tupelo.bench.report.beside import beside_us
from tupelo.bench.report.targets.verdict import Verdict, gaps, listed, none_faster, verdict
from tupelo.bench.report.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo.bench.harness.record import Run

COORDINATION_FROM = 0.2


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
    slower = [theirs for ours, theirs in chatty if ours.summary.mean >= theirs.summary.mean]
    yield Verdict(
        f"peers that are not slower where over {COORDINATION_FROM:.0%} is coordination",
        "none",
        f"{listed(slower, len(chatty))}{missing}" if chatty else "-",
        verdict(not slower, is_whole=not missing) if chatty else None,
    )


def visits(run: Run) -> Iterator[Verdict]:
    """Whether asking by success factor visits more spaces than asking in turn."""
    found = [each for each in comparisons(run) if each.parameters["case"] == VISITS]
    outcomes = [each.outcome for each in found]
    told_of = ", ".join(f"{outcomes.count(each)} {each}" for each in dict.fromkeys(outcomes))
    # A difference that the test does not see can still be there with every single seed.
    worst = max(found, key=lambda each: each.seeds_with_more or 0, default=None)
    if worst is not None and worst.seeds_with_more:
        told_of += (
            f"; with {worst.seeds_with_more} of {SEEDS} seeds more, where the tuples are"
            f" {worst.parameters['tuples']}: {digits(worst.learned.summary.mean)} for"
            f" {digits(worst.in_turn.summary.mean)}"
        )
    yield Verdict(
        f"visited spaces of a search by success factor, against in turn, of {SEEDS} seeds",
        "not significantly more",
        told_of or "-",
        "more" not in outcomes if found else None,
    )
