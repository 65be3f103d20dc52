"""Visit order: how many spaces a search looks into, by the order in which it asks them.

A process puts a tuple into one of seven spaces, by a random choice with fixed shares, and searches
for it: 200 times. Each seed is a repeat with a search that has learned nothing yet. All repeats are
of one process, since the count depends on the seed alone, and not on any clock. By success factor a
search may need as many looks as in turn where there is nothing to learn, but not more.

Both orders get the same seeds, and with the same seed the same tuples at the same places: so they
are compared pair by pair, with the sign test. That finds a difference of a percent, which is little
beside the differences between seeds. The repeats of the ocean model have no such pairs: there what
is visited depends on when the neighbours are ready, too.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.experiments.cases.skeleton import SEARCHES, VISITED, Searcher, Worker, names
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.record import Measure
from tupelo_bench.harness.statistics import (
    SIGNIFICANCE,
    can_tell,
    can_tell_pairs,
    is_mostly_below,
    mann_whitney_p,
    sign_test_p,
)
from tupelo_bench.harness.workers import Bench, WrongResultError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.backends.base import VisitOrder
    from tupelo_bench.harness.record import Run
    from tupelo_bench.runner import Stage

CASE = "visits"
ROUND_ROBIN: VisitOrder = "round robin"
SUCCESS_FACTOR: VisitOrder = "success factor"
ORDERS: tuple[VisitOrder, ...] = (ROUND_ROBIN, SUCCESS_FACTOR)
SEEDS = 20
SEARCHES_OF_A_SEED = 200
SPACES = 7
# How often a tuple is in each of the spaces, of which the first is the own one.
SHARES: dict[str, tuple[int, ...]] = {
    "at two neighbours": (0, 1, 0, 0, 2, 0, 0),  # as in the ocean model
    "more in the last ones": (1, 2, 3, 4, 5, 6, 7),
    "everywhere": (1,) * SPACES,  # nothing to learn
    "mostly in the first": (64, 32, 16, 8, 4, 2, 1),  # the list has the best order already
}
SCHEMA = Schema((Shape("border", 2, (1,)),))
P_OF_ORDERS = "p of visited nodes, by success factor and in turn"


@dataclass(frozen=True)
class Plan:
    """One cell of the case."""

    tuples: str
    """Where they are."""
    order: VisitOrder
    seed: int


def once(stage: Stage, plan: Plan) -> None:
    """All seeds, each as a repeat."""
    ((means,), _) = stage.run((search, (stage.peer, plan)))
    for mean in means:
        stage.note(VISITED, "", [mean])


def search(bench: Bench, backend: Backend, plan: Plan) -> list[float]:
    """Put and search; the mean of visited spaces of each seed."""
    spaces = [backend.open(name) for name in names(SPACES)[1:]]
    means = []
    for seed in range(plan.seed, plan.seed + SEEDS):
        choice = random.Random(seed)
        own = Bench(bench.number, Profiler(), bench.start)
        searcher = Searcher(Worker(own, backend, 0, spaces, None), plan.order)
        for number in range(SEARCHES_OF_A_SEED):
            (space,) = choice.choices(spaces, SHARES[plan.tuples])
            space.put("border", number)
            found = searcher.take("border", number)
            if tuple(found) != ("border", number):
                message = f"searched for border {number}, found {found!r:.100}"
                raise WrongResultError(message)
        means.append(own.profiler.counts[VISITED] / own.profiler.counts[SEARCHES])
    for space in spaces:
        space.close()
    return means


# --- what follows ---


@dataclass(frozen=True)
class Comparison:
    """The two orders at the same parameters."""

    in_turn: Measure
    learned: Measure

    @property
    def parameters(self) -> dict[str, object]:
        """What both have in common."""
        return {k: v for k, v in self.in_turn.parameters.items() if k != "search"}

    @property
    def p(self) -> float:
        """How likely so large a difference is by chance, two-sided.

        That of the sign test where the samples are pairs, else Mann-Whitney's.
        """
        test = sign_test_p if self.is_paired else mann_whitney_p
        return test(self.in_turn.independent, self.learned.independent)

    @property
    def is_paired(self) -> bool:
        """Whether both orders had the same to search for."""
        return bool(self.in_turn.parameters["case"] == CASE)

    @property
    def seeds(self) -> tuple[int, int] | None:
        """With how many seeds success factor visits more, and fewer; None where it is unpaired."""
        if not self.is_paired:
            return None
        pairs = list(zip(self.in_turn.samples, self.learned.samples, strict=True))
        more = sum(learned > in_turn for in_turn, learned in pairs)
        return more, sum(learned < in_turn for in_turn, learned in pairs)

    @property
    def outcome(self) -> str:
        """What the samples say of success factor: "fewer", "more", or that they do not tell."""
        counts = (len(self.in_turn.independent), len(self.learned.independent))
        if not (can_tell_pairs(min(counts)) if self.is_paired else can_tell(*counts)):
            return "too few repeats to tell"
        if self.p >= SIGNIFICANCE:
            return "no difference"
        if self.seeds:
            more, fewer = self.seeds
            return "more" if more > fewer else "fewer"
        fewer_in_turn = is_mostly_below(self.in_turn.independent, self.learned.independent)
        return "more" if fewer_in_turn else "fewer"


def comparisons(run: Run) -> Iterator[Comparison]:
    """Every cell of `cases` that was run in both orders; those of this case first."""
    measures = list(run.find("cases", VISITED))
    learned = {
        (m.backend, told({**m.parameters, "search": ""})): m
        for m in measures
        if m.parameters.get("search") == SUCCESS_FACTOR
    }
    in_turn = [m for m in measures if m.parameters.get("search") == ROUND_ROBIN]
    for measure in sorted(in_turn, key=lambda m: m.parameters["case"] != CASE):
        other = learned.get((measure.backend, told({**measure.parameters, "search": ""})))
        if other is not None:
            yield Comparison(measure, other)


def derived(run: Run) -> list[Measure]:
    """The p of each comparison, for the record."""
    return [
        Measure(
            "cases", each.in_turn.backend, each.parameters, P_OF_ORDERS, "", [each.p], derived=True
        )
        for each in comparisons(run)
    ]
