"""Shares the time of a run: every experiment gets its part, and every peer in it.

The parts are of what is left, so that what one does not need goes to all that follow, and nobody
can take what belongs to the later ones. Within a part the cells come in the order of what they
tell: each is repeated as often as the statistics need (`Options.repeats_least`), then what time is
left goes to further repeats, in turns.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

GENEROUS = 4.0  # a cell may take so many times its share: weights are guesses
OF_THE_REST = 0.5  # or that much of what is left: what comes first tells most
CELL_MIN_S = 5.0  # the least that a cell may take, if there is that much: processes take time
FOREVER_S = float("inf")


@dataclass
class Budget:
    """The time of a run, shared by weight."""

    total_s: float | None
    """None for no limit."""
    clock: Callable[[], float] = time.monotonic
    _left_weight: float = 0.0
    _end: float = field(default=FOREVER_S)

    def begin(self, weight: float) -> None:
        """Start the clock; that much weight is to come."""
        self._left_weight = weight
        if self.total_s is not None:
            self._end = self.clock() + self.total_s

    def part(self, weight: float) -> Part:
        """The part of what comes next; it is no longer among what is to come."""
        if self.total_s is None:
            return Part(FOREVER_S, self.clock)
        now = self.clock()
        share = weight / max(self._left_weight, weight)
        self._left_weight -= weight
        return Part(now + max(0.0, self._end - now) * share, self.clock)


@dataclass(frozen=True)
class Part:
    """The time of one peer in one experiment."""

    end: float
    clock: Callable[[], float]

    @property
    def left_s(self) -> float:
        """What is left of it."""
        return max(0.0, self.end - self.clock())

    def cell_s(self, weight: float, left_weight: float) -> float:
        """The most that a cell may take, when the weight of all that are left is `left_weight`."""
        left_s = self.left_s
        if left_s == FOREVER_S:
            return FOREVER_S
        share = max(OF_THE_REST, min(1.0, GENEROUS * weight / max(left_weight, weight)))
        return min(left_s, max(CELL_MIN_S, left_s * share))
