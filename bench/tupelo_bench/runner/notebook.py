"""Writes into the record what repeats noted, and what was not measured, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tupelo
import tupelo_bench
from tupelo_bench.harness.histogram import merged
from tupelo_bench.harness.lifetime import ServerFailedError
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.record import Measure, Remark
from tupelo_bench.harness.workers import WorkerFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.harness.progress import Progress
    from tupelo_bench.harness.record import Parameters, Run, Why
    from tupelo_bench.runner.stage import Note, Stage

PACKAGES = tuple(Path(str(each.__file__)).parents[1] for each in (tupelo_bench, tupelo))


@dataclass
class Notebook:
    """What a run writes while it goes on."""

    run: Run
    progress: Progress

    def keep(
        self, experiment: str, backend: str, parameters: Parameters, stages: Sequence[Stage]
    ) -> None:
        """Record what the repeats of a cell noted, those of a metric together."""
        together: dict[str, list[Note]] = {}
        for stage in stages:
            for note in stage.noted:
                together.setdefault(note.metric, []).append(note)
        for metric, notes in together.items():
            groups = [len(note.samples) for note in notes]
            histograms = [note.histogram for note in notes if note.histogram is not None]
            self.run.measures.append(
                Measure(
                    experiment,
                    backend,
                    parameters,
                    metric,
                    notes[0].unit,
                    [sample for note in notes for sample in note.samples],
                    merged(histograms).encoded() if histograms else None,
                    groups if max(groups) > 1 else [],
                    histograms=[
                        note.histogram.encoded()
                        for note in notes
                        if note.histogram is not None and note.is_kept
                    ],
                )
            )

    def remark(
        self, experiment: str, backend: str, parameters: Parameters, why: Why, text: str
    ) -> None:
        """Record why a cell, or a repeat of it, has no measure, and show it."""
        # A record is published: where the packages lie on a disk is nobody's business. Whoever
        # sees the line needs to know.
        kept = text
        for folder in PACKAGES:
            kept = kept.replace(f"{folder}/", "")
        remark = Remark(experiment, backend, parameters, why, kept)
        if why == "not installed" and remark in self.run.remarks:
            return  # of a second block of the same peer
        self.run.remarks.append(remark)
        self.progress.line(f"  {experiment}, {backend} {told(parameters)}: {why}: {text}")


def what_failed(error: Exception) -> str:
    """What a remark says of what went wrong. What the suite raises itself needs no name."""
    if isinstance(error, (OSError, ServerFailedError, WorkerFailedError)):
        return str(error)
    return f"{type(error).__name__}: {error}"
