"""The figures that can not be drawn, and why: one that is not there would be missed by nobody."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tupelo_bench.presentation.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Remark, Run
    from tupelo_bench.presentation.figure import Figure


def undrawn(run: Run, experiments: Sequence[Experiment]) -> Table:
    """Those of the experiments that were run, with their numbers in the publications."""
    rows = tuple(
        (figure.title, figure.note, _why(run, figure))
        for experiment in experiments
        if run.of(experiment.name)
        for figure in experiment.figures(run)
        if figure.empty
    )
    if run.of("cases"):
        between = "The paper's figures 27 to 30 have these, too."
        rows += (("containers and a network", between, "all is on one host"),)
    return Table("Figures that can not be drawn", ("figure", "", "why"), rows)


def _why(run: Run, figure: Figure) -> str:
    """What the record says of the cells that would be in a figure."""
    remarks = [remark for remark in run.left_out if _concerns(remark, figure)]
    cells = Counter(remark.why for remark in remarks if remark.parameters)
    whole = dict.fromkeys(f"{r.backend} {r.why}" for r in remarks if not r.parameters)
    parts = [f"{count} cells {why}" for why, count in cells.most_common()]
    marks, wanted = figure.filled
    if marks == 1:
        parts.insert(0, "one mark only")
    elif len(figure.values) == 1:
        parts.insert(0, f"{figure.x_label} {figure.values[0]} only")
    elif marks:
        parts.insert(0, f"{marks} of {wanted} marks")
    return "; ".join([*parts, *whole]) or "not measured"


def _concerns(remark: Remark, figure: Figure) -> bool:
    """Whether a remark is of a cell that would be in a figure; one of a whole system is."""
    wanted = {"backend": remark.backend, **figure.fixed}
    return (
        remark.experiment == figure.experiment
        and wanted.pop("backend") == remark.backend
        and (not remark.parameters or wanted.items() <= remark.parameters.items())
    )
