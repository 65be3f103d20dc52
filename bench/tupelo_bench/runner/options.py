"""What the user asked for, and how often that repeats a cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tupelo_bench.harness.budget import FOREVER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tupelo_bench.experiments.workload import Operation, Workload

# (a budget in seconds, repeats): how often every cell is repeated before any is repeated more, with
# that budget or a larger one. Three samples and three can never be told apart (Mann-Whitney at
# 0.05), four and four can if they do not overlap, five and five even if they do a little.
REPEATS_LEAST = ((3_600.0, 5), (900.0, 4))
# With less time than these, and for a cell whose share suffices for no more: three and three can
# not be told apart, but three and five can.
REPEATS_MIN = 3


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    quick: bool = False
    repeats: int = 10
    seed: int = 1
    budget_s: float | None = None
    workload: Workload | None = None
    """That ages the spaces of `settle`, instead of a generated one."""
    operations: Mapping[Operation, float] | None = None
    """How often a generated workload reads, takes and writes."""
    kinds: Mapping[str, float] | None = None
    """How often it has each kind of entry."""
    by_lot: bool = False
    """Whether the order of the peers in an experiment is drawn by lot, each time anew."""
    visits: int = 1
    """How often each peer has its turn in an experiment.

    In each turn its cells get a part of their repeats, so that slow minutes hit all peers alike.
    """
    before: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """How many repeats a record has already, by experiment, backend and parameters as told."""

    @property
    def repeats_least(self) -> int:
        """How often a cell that has the time is repeated before any is repeated more often."""
        budget_s = FOREVER_S if self.budget_s is None else self.budget_s
        enough = (repeats for from_s, repeats in REPEATS_LEAST if budget_s >= from_s)
        return min(self.repeats, next(enough, REPEATS_MIN))
