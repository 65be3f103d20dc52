"""The record of a run: `run.json`. Tables, figures and the page are made from it alone.

A `Measure` is one metric of one backend at one set of parameters, with its raw samples. Where there
are very many, a histogram in the form of HdrHistogram stands beside a few. A `Remark` says what was
not measured, and why: nothing is left out silently.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, get_args

from tupelo_bench.harness.histogram import Histogram
from tupelo_bench.harness.packed import packed, rounded, unpacked
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.quantiles import pool
from tupelo_bench.harness.statistics import Summary, summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = 2
FORMATS = (1, FORMAT)  # that can be read: the first has its samples as they are
Parameters = dict[str, Any]
Why = Literal["not installed", "can not", "over budget", "failed", "wrong result", "repeat stopped"]
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
    groups: list[int] = field(default_factory=list)
    """How many of the samples are of the first repeat, of the second, and so on; empty if each
    repeat gave one."""
    derived: bool = False
    """Whether it follows from other measures of the record."""
    histograms: list[str] = field(default_factory=list)
    """That of each repeat, where an interval is to be told of a quantile of all of them."""
    pooled: float | None = None
    """Of a quantile: that of all calls of all repeats (`quantiles`). It is in no file."""

    @property
    def independent(self) -> list[float]:
        """A value per repeat: its mean.

        Samples within a repeat share a process and a space, and are alike. To take them for
        independent would find differences where there are none.
        """
        if not self.groups:
            return self.samples
        rest = iter(self.samples)
        return [math.fsum(islice(rest, count)) / count for count in self.groups]

    @property
    def repeats(self) -> Summary:
        """The figures of a value per repeat.

        Where the least and the greatest are far apart, as where a cache line is near in one process
        and far in another, the mean is of none of them.
        """
        return summary(self.independent)

    @property
    def summary(self) -> Summary:
        """The figures of the samples; the confidence interval is that of the repeats.

        Of a quantile the mean is that of all calls, as in the figures, and not of its repeats.
        """
        figures = replace(summary(self.samples), ci95=summary(self.independent).ci95)
        return figures if self.pooled is None else replace(figures, mean=self.pooled, ci95=None)

    def rounded(self) -> Measure:
        """The measure as it stands in a record."""
        return replace(self, samples=[rounded(sample) for sample in self.samples])

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
    spent_s: dict[str, dict[str, float]] = field(default_factory=dict)
    """How long each backend took, by experiment."""
    placements: dict[str, list[str]] = field(default_factory=dict)
    """Which processes of an experiment were on which processors."""

    caveats: list[str] = field(default_factory=list)
    """What is to be known before any figure is read, as where programs have changed since."""

    sittings: list[str] = field(default_factory=list)
    """When and how each part was made, if the record was made in several; else empty."""

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

    def find_one(
        self, experiment: str, metric: str, backend: str, **parameters: Any
    ) -> Measure | None:
        """The first such measure of a backend; None if there is none."""
        found = self.find(experiment, metric, **parameters)
        return next((measure for measure in found if measure.backend == backend), None)

    @property
    def left_out(self) -> list[Remark]:
        """The remarks of what has no measure; who lacks but a repeat has one."""
        measured = {(m.experiment, m.backend, told(m.parameters)) for m in self.measures}
        return [
            remark
            for remark in self.remarks
            if (remark.experiment, remark.backend, told(remark.parameters)) not in measured
        ]

    @property
    def failures(self) -> list[Remark]:
        """The remarks that mean that something is broken."""
        return [remark for remark in self.remarks if remark.why in FAILURES]

    def save(self, path: Path) -> None:
        """Write the record; samples with four digits."""
        raw = asdict(self)
        for measure in raw["measures"]:
            measure["samples"], measure["exponent"] = packed(measure["samples"])
            del measure["pooled"]
            for name in ("exponent", "histogram", "groups", "derived", "histograms"):
                if not measure[name]:
                    del measure[name]
        text = json.dumps({"format": FORMAT, **raw}, separators=(",", ":"))
        path.write_text(text.replace('{"experiment":', '\n{"experiment":') + "\n", encoding="utf-8")


class BadRecordError(Exception):
    """A file is not the record of a run."""


def _require(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion
    if not holds:
        message = f"{what} is not what a run writes"
        raise ValueError(message)


def _require_members(kind: type[Any], raw: Any, what: str) -> None:
    _require(isinstance(raw, dict), what)
    members = fields(kind)
    known = {member.name for member in members}
    needed = {m.name for m in members if m.default is MISSING and m.default_factory is MISSING}
    for names, fault in ((needed - set(raw), "lacks"), (set(raw) - known, "has an unknown")):
        if names:
            message = f"{what} {fault} {', '.join(sorted(names))}"
            raise ValueError(message)


def _run(raw: dict[str, Any]) -> Run:
    """A run, with members as it writes them.

    Raises:
        ValueError: one is not.
    """
    _require_members(Run, raw, "the run")
    run = Run(**raw)
    _require(isinstance(run.machine, dict) and isinstance(run.versions, dict), "its machine")
    _require(isinstance(run.begin, str) and isinstance(run.command, list), "its beginning")
    _require(isinstance(run.notes, dict) and isinstance(run.spent_s, dict), "its notes")
    pool(run)
    return run


def _measure(raw: dict[str, Any]) -> Measure:
    """A measure of a record, with members as a run writes them.

    Raises:
        ValueError: one is not.
    """
    _require(isinstance(raw, dict), "a measure")
    exponent = raw.pop("exponent", 0)
    _require_members(Measure, raw, "a measure")
    measure = Measure(**raw)
    words = (measure.experiment, measure.backend, measure.metric, measure.unit)
    what = f"the measure {words}"
    _require(all(isinstance(word, str) for word in words), what)
    _require(isinstance(measure.parameters, dict), what)
    samples, groups = measure.samples, measure.groups
    _require(isinstance(samples, list) and bool(samples), what)
    _require(all(type(one) in (int, float) for one in samples), what)
    _require(isinstance(groups, list) and all(type(one) is int and one > 0 for one in groups), what)
    _require(not groups or sum(groups) == len(samples), what)
    _require(isinstance(measure.histograms, list) and measure.pooled is None, what)
    one = [] if measure.histogram is None else [measure.histogram]
    for text in (*one, *measure.histograms):
        _require(isinstance(text, str), what)
        Histogram.decoded(text)
    measure = replace(measure, samples=unpacked(samples, exponent))
    _require(all(map(math.isfinite, measure.samples)), what)
    return measure


def _remark(raw: dict[str, Any]) -> Remark:
    """A remark of a record.

    Raises:
        ValueError: it is none.
    """
    _require_members(Remark, raw, "a remark")
    remark = Remark(**raw)
    what = f"the remark on {remark.backend!r}"
    _require(isinstance(remark.parameters, dict) and remark.why in get_args(Why), what)
    return remark


def load(path: Path) -> Run:
    """Read a record back, also one of an older form.

    Raises:
        BadRecordError: it is none, or one of another version of the suite.
        OSError: it can not be read.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        for name in ("format", "measures", "remarks"):
            _require(isinstance(raw, dict) and name in raw, f"a file without {name}")
        if raw.pop("format") not in FORMATS:
            message = f"{path} is of another version of the suite: its format is not {FORMAT}"
            raise BadRecordError(message)
        raw["measures"] = [_measure(measure) for measure in raw["measures"]]
        raw["remarks"] = [_remark(remark) for remark in raw["remarks"]]
        return _run(raw)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        message = f"{path} is not the record of a run: {error}"
        raise BadRecordError(message) from error
