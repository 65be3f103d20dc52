"""Cells and tables of the answers: a row per backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.presentation.tables import Table, mean_of, sign
from tupelo_bench.presentation.units import digits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tupelo_bench.harness.record import Measure


def backends(measures: Iterable[Measure]) -> list[str]:
    """Whose measures these are, in their order."""
    return list(dict.fromkeys(measure.backend for measure in measures))


def text(measure: Measure | None) -> str:
    """The mean, between the least and the greatest of the repeats, or a dash."""
    return mean_of(measure) if measure else "-"


def against(measure: Measure | None, yardstick: Measure | None) -> str:
    """The mean, and how many times the yardstick's it is."""
    if measure is None or yardstick is None or not yardstick.summary.mean:
        return text(measure)
    ratio = digits(measure.summary.mean / yardstick.summary.mean)
    return f"{text(measure)}, {sign(yardstick, measure)}{ratio} x"


def grid(
    title: str,
    measures: Iterable[Measure],
    column: Callable[[Measure], Any],
    head: Callable[[Any], str],
    cell: Callable[[dict[Any, Measure], Any], str] = lambda row, at: text(row.get(at)),
) -> Table:
    """A row per backend, and a column per value of what `column` says."""
    rows: dict[str, dict[Any, Measure]] = {}
    for measure in measures:
        rows.setdefault(measure.backend, {})[column(measure)] = measure
    columns = sorted({at for row in rows.values() for at in row})
    return Table(
        title,
        ("", *map(head, columns)),
        tuple((backend, *(cell(row, at) for at in columns)) for backend, row in rows.items()),
    )
