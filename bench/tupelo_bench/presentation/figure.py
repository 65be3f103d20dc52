"""Figures as data, and how they are taken from a record. Drawing is the business of `drawing`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from tupelo_bench.harness.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tupelo_bench.harness.record import Measure, Run


@dataclass(frozen=True)
class Point:
    """One mark of a series: the mean, and the standard deviation if there is one."""

    x: Any
    mean: float
    sd: float | None


@dataclass(frozen=True)
class Series:
    """The marks of one colour."""

    label: str
    points: tuple[Point, ...]
    beside: str = ""
    """The series that it is to be compared with: it is drawn in the same colour."""
    dashes: Literal["--", ":", "-."] = "--"
    """How its line is drawn where there is such a series."""
    is_reference: bool = False
    """Whether it is what could be at best, and was not measured."""
    detail: str = ""
    """What the legend says of it beside its label."""


@dataclass(frozen=True)
class Figure:
    """One figure."""

    name: str
    """Of its file."""
    title: str
    kind: Literal["bars", "lines", "marks"]
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_scale: Literal["linear", "log", "nines"] = "linear"
    log_y: bool = True
    note: str = ""
    unit: str = ""
    experiment: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """What all its cells have in common: so it is known why there are none, if there are none."""

    @property
    def empty(self) -> bool:
        """Whether there is too little to compare: no line, or half of its marks missing."""
        marks, cells = self.filled
        if self.kind == "lines" and len(self.values) < 2:  # noqa: PLR2004
            return True
        return marks < 2 or (self.kind != "marks" and 2 * marks < cells)  # noqa: PLR2004

    @property
    def filled(self) -> tuple[int, int]:
        """How many marks there are, and how many there would be if each series had all."""
        measured = [series for series in self.series if not series.is_reference]
        marks = sum(len(series.points) for series in measured)
        return marks, len(measured) * len(self.values)

    @property
    def values(self) -> tuple[Any, ...]:
        """Where on the axis of x there are marks."""
        measured = [series for series in self.series if not series.is_reference]
        return tuple(dict.fromkeys(point.x for series in measured for point in series.points))


def with_beside(
    figure: Figure, other: Figure, words: str, dashes: Literal["--", ":", "-."] = "--"
) -> Figure:
    """The figure with the series of another one, each beside that of the same system.

    A system that is in the other one alone is left out: it would stand beside nothing. The note
    says in `words` what the other lines are.
    """
    present = [series.label for series in figure.series]
    added = tuple(
        replace(series, label=f"{series.label}, {words}", beside=series.label, dashes=dashes)
        for series in other.series
        if series.label in present
    )
    drawn = {"--": "dashed", ":": "dotted", "-.": "dashes and dots"}[dashes]
    if figure.kind == "bars":
        drawn = "pale"
    note = "; ".join(part for part in (figure.note, f"{drawn}: {words}" if added else "") if part)
    series = [*figure.series, *added]
    if figure.kind == "bars":  # a pale one stands right of its own
        series.sort(key=lambda one: present.index(one.beside or one.label))
    return replace(figure, series=tuple(series), note=note)


def bars(
    run: Run,
    experiment: str,
    metric: str,
    x: str,
    values: Sequence[Any],
    *,
    fixed: dict[str, Any],
    title: str,
    log_y: bool = True,
    note: str = "",
    also: Iterable[Measure] = (),
) -> Figure:
    """A group of bars per value of the parameter `x`, a bar per backend.

    With the measures of `also`, where else they were measured.
    """
    every = (*also, *run.find(experiment, metric, **fixed))
    found = [measure for measure in every if measure.parameters.get(x) in values]
    blank = Figure(
        slug(f"{experiment} {title}"), title, "bars", x, metric, (), log_y=log_y, note=note,
        experiment=experiment, fixed=fixed,
    )  # fmt: skip
    return _with_series(blank, found)


def lines(
    run: Run,
    experiment: str,
    metric: str,
    x: str,
    *,
    fixed: dict[str, Any],
    title: str,
    only: Sequence[Any] | None = None,
    log_x: bool = False,
    log_y: bool = True,
    note: str = "",
    also: Sequence[Measure] = (),
) -> Figure:
    """A line per backend over the values of the parameter `x`; over some of them if `only` is.

    With the measures of `also`, whatever they are of.
    """
    found = [
        *also,
        *(
            measure
            for measure in run.find(experiment, metric, **fixed)
            if x in measure.parameters and (only is None or measure.parameters[x] in only)
        ),
    ]
    scale: Literal["linear", "log"] = "log" if log_x else "linear"
    blank = Figure(
        slug(f"{experiment} {title}"), title, "lines", x, metric, (), scale, log_y, note,
        experiment=experiment, fixed=fixed,
    )  # fmt: skip
    return _without_lone_marks(_with_series(blank, found))


def _without_lone_marks(figure: Figure) -> Figure:
    """The figure without systems that have one mark, if it is drawn then and else is not."""
    if not figure.empty:
        return figure
    kept = tuple(series for series in figure.series if len(series.points) > 1)
    lone = ", ".join(series.label for series in figure.series if len(series.points) == 1)
    left_out = f"not drawn, with one mark each: {lone}"
    note = "; ".join(part for part in (figure.note.rstrip("."), left_out) if part)
    rest = replace(figure, series=kept, note=note)
    return figure if rest.empty or len(kept) == 1 else rest


def marks(
    run: Run, experiment: str, metrics: str, *, fixed: dict[str, Any], title: str, note: str = ""
) -> Figure:
    """A mark per sample, in the order of the samples; a series per metric that begins so."""
    wanted = dict(fixed)
    backend = wanted.pop("backend")
    found = [
        measure
        for measure in run.of(experiment)
        if measure.metric.startswith(metrics)
        and measure.backend == backend
        and all(measure.parameters.get(name) == value for name, value in wanted.items())
    ]
    series = tuple(
        Series(
            measure.metric,
            tuple(Point(number, sample, None) for number, sample in enumerate(measure.samples)),
        )
        for measure in found
    )
    unit = found[0].unit if found else ""
    name = slug(f"{experiment} {title}")
    return Figure(
        name, title, "marks", "operation", "time", series, log_y=False, note=note, unit=unit,
        experiment=experiment, fixed=fixed,
    )  # fmt: skip


SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999)


def percentiles(
    experiment: str,
    title: str,
    measures: Iterable[Measure],
    fixed: Mapping[str, Any],
    details: Mapping[str, str],
) -> Figure:
    """How long the slowest requests took: a line per backend over the share that was faster.

    `fixed` is what the measures have in common, `details` what is to be said of each backend. A
    share is drawn where it stands for one request at
    least; the scale is that of HdrHistogram's plots, each nine as wide as the one before.
    """
    series = []
    for measure in measures:
        if measure.histogram is None:
            continue
        histogram = Histogram.decoded(measure.histogram)
        points = tuple(
            Point(1 / (1 - share), histogram.quantile(share) / 1e9, None)
            for share in SHARES
            if (1 - share) * histogram.total >= 1
        )
        detail = details.get(measure.backend, "")
        series.append(Series(measure.backend, points, detail=detail))
    name = slug(f"{experiment} {title}")
    return Figure(
        name, title, "lines", "requests that were faster", "latency", tuple(series), unit="s",
        x_scale="nines", note="Open loop: counted from when a request was due.",
        experiment=experiment, fixed=fixed,
    )  # fmt: skip


def _with_series(blank: Figure, measures: Sequence[Measure]) -> Figure:
    """The figure with a series per backend."""
    series: dict[str, list[Point]] = {}
    for measure in measures:
        figures = measure.summary
        point = Point(measure.parameters[blank.x_label], figures.mean, figures.sd)
        series.setdefault(measure.backend, []).append(point)
    return replace(
        blank,
        unit=measures[0].unit if measures else "",
        series=tuple(Series(label, tuple(points)) for label, points in series.items()),
    )


def slug(text: str) -> str:
    """A text as the name of a file."""
    kept = "".join(letter if letter.isalnum() else "-" for letter in text.lower())
    return "-".join(part for part in kept.split("-") if part)
