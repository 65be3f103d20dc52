"""Which systems that compile as they run became warm, in how many cycles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.warming import APART, CYCLES, CYCLES_MAX, IN_A_ROW, STEADY
from tupelo_bench.presentation.tables import Table, span

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run

HOW = (
    "A system that compiles as it runs goes on to warm up after the operations that every system"
    f" does first. It stops when {IN_A_ROW} cycles in a row differ by less than"
    f" {100 * APART:.0f} %, or after {CYCLES_MAX} more. The cycles are those of the process with"
    " most. Processes that share processors with many others seldom become steady: their times are"
    " those of a machine that compiled for as long as that."
)


def warmed(run: Run) -> Table:
    """A row per experiment and system."""
    rows = []
    for experiment in dict.fromkeys(measure.experiment for measure in run.measures):
        found = list(run.find(experiment, CYCLES))
        for backend in dict.fromkeys(measure.backend for measure in found):
            cycles = [each for each in found if each.backend == backend]
            repeats = [round(sample) for measure in cycles for sample in measure.samples]
            shares = [
                share
                for measure in run.find(experiment, STEADY)
                if measure.backend == backend
                for share in measure.samples
            ]
            steady = f"{100 * sum(shares) / len(shares):.0f} %" if shares else "-"
            rows.append((experiment, backend, str(len(cycles)), span(repeats), steady))
    heads = ("experiment", "system", "cells", "cycles of a repeat", "processes that became steady")
    return Table("Until it is warm", heads, tuple(rows))
