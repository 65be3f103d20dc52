"""The record of a run: `run.json`. Tables, figures and the page are made from it alone.

A `Measure` is one metric of one backend at one set of parameters, with its raw samples. Where there
are very many, a histogram in the form of HdrHistogram stands beside a few. A `Remark` says what was
not measured, and why: nothing is left out silently.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tupelo.bench.harness.statistics import Summary, summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = 1
Parameters = dict[str, Any]
Why = Literal["not installed", "can not", "over budget", "over memory", "failed", "wrong result"]
FAILURES: tuple[Why, ...] = ("failed", "wrong result")


@dataclass(frozen=True)
class Measure:
    """One metric of one backend at one set of parameters."""

    experiment: str
    backend: str
    parameters: Parameters
    metric: str
    unit: str
    samples: list[float]
    histogram: str | None = None

    @property
    def summary(self) -> Summary:
        """The figures of the samples."""
        return summary(self.samples)

    def key(self) -> tuple[Any, ...]:
        """What it has in common with the same measure of another run."""
        return (self.experiment, self.backend, tuple(sorted(self.parameters.items())), self.metric)


@dataclass(frozen=True)
class Remark:
    """What was not measured, and why."""

    experiment: str
    backend: str
    parameters: Parameters
    why: Why
    text: str


@dataclass
class Run:
    """Everything that is known of one run."""

    command: list[str]
    begin: str
    seed: int
    quick: bool
    machine: dict[str, Any]
    versions: dict[str, str]
    measures: list[Measure] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    """What is to be known of each backend before its figures are read."""
    duration_s: float = 0.0

    def of(self, experiment: str) -> list[Measure]:
        """The measures of one experiment."""
        return [measure for measure in self.measures if measure.experiment == experiment]

    def find(self, experiment: str, metric: str, **parameters: Any) -> Iterator[Measure]:
        """The measures of a metric whose parameters are these and perhaps others."""
        for measure in self.measures:
            if measure.experiment == experiment and measure.metric == metric:
                own = measure.parameters
                if all(own.get(name) == value for name, value in parameters.items()):
                    yield measure

    @property
    def failures(self) -> list[Remark]:
        """The remarks that mean that something is broken."""
        return [remark for remark in self.remarks if remark.why in FAILURES]

    def save(self, path: Path) -> None:
        """Write the record; samples with seven digits, which is more than any clock has."""
        raw = asdict(self)
        for measure in raw["measures"]:
            measure["samples"] = [float(f"{sample:.6e}") for sample in measure["samples"]]
        text = json.dumps({"format": FORMAT, **raw}, separators=(",", ":"))
        path.write_text(text.replace('{"experiment":', '\n{"experiment":') + "\n", encoding="utf-8")


class BadRecordError(Exception):
    """A file is not the record of a run."""


def load(path: Path) -> Run:
    """Read a record back.

    Raises:
        BadRecordError: it is none, or one of another version of the suite.
        OSError: it can not be read.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw.pop("format") != FORMAT:
            message = f"{path} is of another version of the suite: its format is not {FORMAT}"
            raise BadRecordError(message)
        raw["measures"] = [Measure(**measure) for measure in raw["measures"]]
        raw["remarks"] = [Remark(**remark) for remark in raw["remarks"]]
        return Run(**raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is not the record of a run: {error!r}"
        raise BadRecordError(message) from error
