"""What a run shows on the terminal: its tables, what changed, what was reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.everything import YARDSTICKS
from tupelo_bench.presentation.tables import tables
from tupelo_bench.report.compare import cautions, compared
from tupelo_bench.report.targets import targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.terminal import Terminal
    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Run
    from tupelo_bench.presentation.tables import Table


def show(
    run: Run, old: Run | None, wanted: Sequence[Experiment], against: str | None, terminal: Terminal
) -> None:
    """Show the tables, what changed since an old run, and what was to be reached.

    In the tables all stand beside the backend `against`; if it is None, beside ours.
    """
    for experiment in (YARDSTICKS, *wanted):
        for table in tables(run, experiment.name, experiment.main, narrow=True, against=against):
            _table(table, terminal)
    if old is not None:
        _changes(old, run, terminal)
    verdicts = targets(run)
    if verdicts.rows and not run.quick:
        _table(verdicts, terminal)


def _changes(old: Run, run: Run, terminal: Terminal) -> None:
    terminal.line()
    for caution in cautions(old, run):
        terminal.line(f"caution: {caution}")
    changes = compared(old, run)
    if changes.rows:
        _table(changes, terminal)
    else:
        terminal.line("nothing changed since the old run")


def _table(table: Table, terminal: Terminal) -> None:
    terminal.line()
    terminal.line(table.title)
    terminal.table(table.heads, table.rows)
