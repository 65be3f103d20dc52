"""How much code does it take to use each system?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tupelo_bench.presentation.tables import Table
from tupelo_bench.report.beside import is_peer
from tupelo_bench.report.questions.question import Question

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run

LINES = re.compile(r"Its adapter has (\d+) lines")


def adapters(run: Run) -> Question:
    """The lines of each adapter of the suite."""
    return Question(
        "How much code does it take to use each?",
        "[RPC] finds a space easier to program than CORBA, and counts nothing. Here stand the lines"
        " of the suite's adapter for each system, without comments and empty lines: to start its"
        " server, to connect, and to put, read and take, or to call. What several adapters share is"
        " in none of them.",
        (_lines(run),),
    )


def _lines(run: Run) -> Table:
    matches = ((name, LINES.search(how)) for name, how in run.notes.items())
    counts = {name: int(match[1]) for name, match in matches if match is not None}
    ordered = sorted(counts.items(), key=lambda pair: (is_peer(pair[0]), pair[1]))
    rows = tuple((name, str(count)) for name, count in ordered)
    return Table("lines of an adapter", ("", "lines"), rows)
