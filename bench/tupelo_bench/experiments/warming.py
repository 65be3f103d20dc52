"""When a system is warm: a virtual machine compiles as it runs, and its first cycles are slower.

A fixed number of operations comes first. A system that compiles then goes on, in cycles of a
hundred operations or more, until five cycles in a row differ by less than two percent. It does at
most thirty such cycles. The record has how many cycles there were, and whether they became steady.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tupelo_bench.harness.profiler import Profiler
    from tupelo_bench.runner import Stage

IN_A_ROW, APART, CYCLES_MAX = 5, 0.02, 30
CYCLES = "cycles until it is warm"
STEADY = "share of processes that became steady"


@dataclass(frozen=True)
class WarmUp:
    """What a process does before its clock runs."""

    operations: int
    """At least so many."""
    until_steady: bool = False
    """Whether cycles follow, until they differ no more."""


class Warming:
    """Tells which cycles are before those that count."""

    def __init__(self, fixed: int, *, until_steady: bool) -> None:
        self.cycles = 0
        """How many there were so far."""
        self._fixed = fixed
        self._last: deque[int] = deque(maxlen=IN_A_ROW)
        self._is_over = not (fixed or until_steady)
        self._until_steady = until_steady

    def is_over(self) -> bool:
        """Whether the next cycle counts."""
        return self._is_over

    def add(self, cycle_ns: int) -> None:
        """Note a cycle that does not count."""
        self.cycles += 1
        if self.cycles > self._fixed:
            self._last.append(cycle_ns)
        enough = self.cycles >= self._fixed
        if self._until_steady:
            enough = enough and (self.is_steady() or self.cycles >= self._fixed + CYCLES_MAX)
        self._is_over = enough

    def is_steady(self) -> bool:
        """Whether the last cycles differ by so little."""
        if len(self._last) < IN_A_ROW:
            return False
        return max(self._last) <= (1 + APART) * min(self._last)

    def tell(self, profiler: Profiler) -> None:
        """Count the cycles, where their number was not fixed."""
        if self._until_steady:
            profiler.count(CYCLES, self.cycles)
            profiler.count(STEADY, self.is_steady())


def warm_until_steady(profiler: Profiler, cycle: Callable[[], object]) -> None:
    """Do cycles until they differ no more, and count them."""
    warming = Warming(0, until_steady=True)
    while not warming.is_over():
        begin = perf_counter_ns()
        cycle()
        warming.add(perf_counter_ns() - begin)
    warming.tell(profiler)


def note_warming(stage: Stage, profilers: Sequence[Profiler]) -> None:
    """Record the cycles of the process that had most, and how many processes became steady."""
    warmed = [profiler for profiler in profilers if CYCLES in profiler.counts]
    if warmed:
        stage.note(CYCLES, "", [float(max(each.counts[CYCLES] for each in warmed))])
        stage.note(STEADY, "", [sum(each.counts[STEADY] for each in warmed) / len(warmed)])
