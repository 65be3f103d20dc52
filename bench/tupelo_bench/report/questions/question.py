"""A question of the literature, and the tables that answer it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tupelo_bench.presentation.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Run

Key = tuple[str, str]
"""An experiment, and one of its tables with printed numbers."""


class NoSuchTableError(Exception):
    """A question asks for a table that its experiment does not make: one of both was renamed."""


@dataclass(frozen=True)
class Question:
    """A question, how it is answered here, and the figures."""

    title: str
    how: str
    tables: tuple[Table, ...]
    printed: tuple[Key, ...] = ()
    """Which of the tables with printed numbers are among them."""


def printed_in(run: Run, experiments: Sequence[Experiment], key: Key) -> list[Table]:
    """That table of an experiment; none if the experiment is not of this run.

    Raises:
        NoSuchTableError: the experiment has no such table.
    """
    name, wanted = key
    for experiment in experiments:
        if experiment.name == name:
            tables = {table.key: table for table in experiment.printed(run)}
            if wanted not in tables:
                message = f"{name} has no table {wanted!r} among {', '.join(tables) or 'none'}"
                raise NoSuchTableError(message)
            return [Table(tables[wanted].title, tables[wanted].heads, tables[wanted].rows)]
    return []
