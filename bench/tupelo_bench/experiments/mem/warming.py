"""When a system is warm: a virtual machine compiles as it runs, and its first cycles are slower.

A fixed number of cycles comes first. A system that compiles then goes on until five cycles in a row
differ by less than two percent, but for at most thirty cycles more. The record has how many those
were, and whether they became steady.
"""

from __future__ import annotations

from collections import deque

IN_A_ROW, APART, CYCLES_MAX = 5, 0.02, 30
CYCLES = "cycles until it is warm"


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
            enough = enough and (self._is_steady() or self.cycles >= self._fixed + CYCLES_MAX)
        self._is_over = enough

    def _is_steady(self) -> bool:
        if len(self._last) < IN_A_ROW:
            return False
        return max(self._last) <= (1 + APART) * min(self._last)
