"""A line that shows how far something is, on a terminal and nowhere else."""

from __future__ import annotations

import sys
from time import monotonic

from tupelo.formatting import bar, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

__all__ = ["Bar"]

EVERY_S = 0.1
"""How often the line is drawn: an eye follows no more, and drawing costs more than a task."""


class Bar:
    """A line `squares  ████░░░░  512 of 1 000`, drawn over itself."""

    def __init__(self, label: str, total: int | None, out: TextIO | None = None) -> None:
        """Begin. Without a `total` there is a number only."""
        self._label = label
        self._total = total
        self._out = sys.stderr if out is None else out
        self._due = 0.0
        self._is_drawn = False
        self._moves = self._out.isatty()

    def show(self, done: int) -> None:
        """Draw the line, if it is due. A terminal that is gone is ignored."""
        if self._moves and monotonic() >= self._due:
            self._draw(done)
            self._due = monotonic() + EVERY_S

    def end(self, done: int) -> None:
        """Draw the line as it remains."""
        if self._moves:
            self._draw(done, "\n")

    def _draw(self, done: int, end: str = "") -> None:
        if self._total is None:
            text = f"{self._label}  {count(done)}"
        else:
            text = f"{self._label}  {bar(done, self._total)}  {count(done)} of {count(self._total)}"
        try:
            self._out.write(f"\r\x1b[K{text}{end}")
            self._out.flush()
        except (OSError, ValueError):  # it was hung up, or closed
            self._moves = False
