"""How far a run is: a bar on a terminal, nothing where the output is a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tupelo.terminal import Terminal


class Progress:
    """Shows what runs now, and how many cells are done."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._total = 0
        self._done = 0

    def expect(self, total: int) -> None:
        """So many cells are to come."""
        self._total = total

    def done(self, cells: int = 1) -> None:
        """So many cells more are done, or were left out."""
        self._done += cells

    def show(self, label: str, repeat: int, repeats: int) -> None:
        """This cell runs now."""
        self._terminal.bars(
            [(f"cells of {self._total:,}", self._done, self._total), (label, repeat, repeats)]
        )

    def line(self, text: str) -> None:
        """One line that stays."""
        self._terminal.line(text)
