"""Output for people: lines that stay, and bars that move on a terminal.

The demos and the evaluation suite have it. Plain ANSI, no dependency. Where the output is not a
terminal (a file, a test) bars are not shown and everything else is the same text.
"""

import shutil
from collections.abc import Sequence
from typing import TextIO

from tupelo.formatting import bar, count


class Terminal:
    """Writes lines, tables and, on a terminal, a block of bars that is drawn over itself."""

    def __init__(self, out: TextIO, *, quiet: bool = False) -> None:
        """Show things on `out`; nothing at all if `quiet`."""
        self._out = out
        self._quiet = quiet
        self._moves = not quiet and out.isatty()
        self._drawn = 0

    def line(self, text: str = "") -> None:
        """One line that stays; bars that were shown are wiped."""
        if self._quiet:
            return
        self._wipe()
        self._out.write(text + "\n")
        self._out.flush()

    def bars(self, rows: Sequence[tuple[str, int, int]]) -> None:
        """One bar per (label, done, total), over the bars shown before."""
        if not self._moves:
            return
        columns = shutil.get_terminal_size().columns
        lines = [f"  {label}  {bar(done, total)}  {count(done)}" for label, done, total in rows]
        self._wipe()
        self._out.write("".join(line[: columns - 1] + "\n" for line in lines))
        self._out.flush()
        self._drawn = len(lines)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table: the first column to the left, the others to the right."""
        widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
        for row in (heads, *rows):
            first, *others = (
                cell.rjust(width) if index else cell.ljust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            self.line("  " + "   ".join([first, *others]).rstrip())

    def _wipe(self) -> None:
        """Remove the bars, so that the next line stands where they stood."""
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0
