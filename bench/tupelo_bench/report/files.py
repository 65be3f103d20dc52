"""The files of a run: `run.json`, `run.csv`, `figures/*.svg`, `README.md`, `report.html`."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.record import load
from tupelo_bench.report import drawing
from tupelo_bench.report.page import beside, page
from tupelo_bench.report.results import markdown

if TYPE_CHECKING:
    from pathlib import Path

    from tupelo_bench.experiments.base import Experiment
    from tupelo_bench.harness.record import Run

COLUMNS = (
    "experiment", "backend", "parameters", "metric", "unit",
    "count", "mean", "sd", "median", "p99", "least", "greatest", "ci95",
    "repeats", "repeat_least", "repeat_greatest",
)  # fmt: skip


def csv_text(run: Run) -> str:
    """A line per measure, with its figures."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for measure in run.measures:
        figures, repeats = measure.summary, measure.repeats
        numbers = (
            *(figures.mean, figures.sd, figures.median, figures.p99),
            *(figures.least, figures.greatest, figures.ci95),
            *(repeats.count, repeats.least, repeats.greatest),
        )
        writer.writerow(
            (
                *(measure.experiment, measure.backend, told(measure.parameters)),
                *(measure.metric, measure.unit, figures.count),
                *("" if number is None else f"{number:.4g}" for number in numbers),
            )
        )
    return out.getvalue()


def write(run: Run, experiments: tuple[Experiment, ...], folder: Path) -> list[Path]:
    """Write all files of a run; what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "run.json", folder / "run.csv"]
    run.save(written[0])
    run = load(written[0])  # so that all files say what the record says, to the last digit
    written[1].write_text(csv_text(run), encoding="utf-8")
    drawn = []
    if drawing.missing() is None:
        figures = folder / "figures"
        figures.mkdir(exist_ok=True)
        for old in figures.glob("*.svg"):  # of an earlier run, which may have had others
            old.unlink()
        for experiment in experiments:
            for figure in experiment.figures(run):
                if not figure.empty:
                    path = figures / f"{figure.name}.svg"
                    path.write_text(drawing.svg(figure) + "\n", encoding="utf-8")
                    written.append(path)
                    drawn.append((figure.title, f"figures/{path.name}"))
    written += [folder / "README.md", folder / "report.html"]
    written[-2].write_text(markdown(run, experiments, drawn), encoding="utf-8")
    written[-1].write_text(page(run, experiments, beside), encoding="utf-8")
    return written
