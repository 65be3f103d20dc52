"""Figures as SVG, with matplotlib (extra `bench`). A backend has one colour in all figures."""

from __future__ import annotations

import io
import math
import textwrap
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.registry import PEERS
from tupelo_bench.harness.statistics import quantile
from tupelo_bench.presentation.figure import Point
from tupelo_bench.presentation.units import quantity, scale, whole
from tupelo_bench.report.slim import slim

if TYPE_CHECKING:
    from tupelo_bench.presentation.figure import Figure, Series

WIDTH_INCH, HEIGHT_INCH = 7.2, 4.0
WIDE_INCH, MANY_BARS = 11.0, 14  # so wide is a figure with more bars than that side by side
SVG_DPI = 72  # that of every SVG: with another one a title is measured elsewhere than it stands
GROUP = 0.82  # of the distance between two groups of bars is bars
# One for each peer, that can be told apart, also in pairs; ours is the darkest.
COLOURS = (
    "#000000", "#7f7f7f", "#2ca02c", "#d62728", "#9467bd", "#c5b0d5", "#ff7f0e",
    "#1f77b4", "#bcbd22", "#8c564b", "#17becf", "#e377c2", "#98df8a", "#393b79",
    "#c49c94", "#f7b6d2", "#aec7e8", "#9edae5", "#525252", "#737373", "#969696", "#bdbdbd",
)  # fmt: skip
REFERENCE = "#555555"
MARKS = "osD^vP*X<>phdH81234+x|"
PALE = 0.45
NEARLY_ALL = 0.999_999  # of a mean: a line down to there ends below every axis
MARKS_SHARE, MARKS_ABOVE = 0.98, 1.2  # of single operations: what is above is shown at the end
BARS_SPREAD = 10.0  # bars that differ by less than that begin at zero, and so can be compared
FAR_BELOW, ROOM_BELOW = 10.0, 1.2  # how far a standard deviation makes a logarithmic axis longer
NARROW = 2.0  # a logarithmic axis is not shorter than that
LABELLED_DECADES = 3  # a longer axis has labels at powers of ten only
NINES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)

NOTE_WIDTH, NOTE_SIZE = 125, 7  # letters in a line of a caption, and how large they are
# What an axis of x counts, beside the name of the parameter.
X_UNITS = {
    "workers": "workers [processes]",
    "clients": "clients [processes]",
    "size": "size [numbers that are sorted]",
    "fill": "fill [tuples that are there]",
    "bytes": "payload [bytes]",
    "aged by": "workload that aged the space [operations]",
    "operation": "operation [number in its process]",
    "requests that were faster": "requests that were faster [%]",
}

TITLE_SHARE = 0.9  # of the width that is there has letters: they are not all as wide

STYLE = {
    "font.size": 9,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",  # letters as outlines would be most of the file
    "svg.hashsalt": "tupelo",  # the same file from the same record
}


def missing() -> str | None:
    """What has to be installed before anything can be drawn; None if nothing."""
    if find_spec("matplotlib") is None:
        return "figures need matplotlib: pip install ./bench in a checkout"
    return None


def svg(figure: Figure) -> str:
    """The figure as the text of an SVG element."""
    import matplotlib as mpl

    mpl.use("svg")
    with mpl.rc_context(STYLE):
        drawn, share = _drawn(figure, figure.title)
        if share < 1:
            width = int(TITLE_SHARE * share * len(figure.title))
            drawn, _ = _drawn(figure, textwrap.fill(figure.title, width))
    return slim(drawn, figure.name)


def _drawn(figure: Figure, title: str) -> tuple[str, float]:
    """The file of a figure, and for how much of its title there is room.

    Room is made for the height of a title, and for its width none: what is too long is cut.
    """
    from matplotlib import pyplot as plt

    is_wide = figure.kind == "bars" and len(figure.series) > MANY_BARS
    size = (WIDE_INCH if is_wide else WIDTH_INCH, HEIGHT_INCH)
    canvas, axes = plt.subplots(figsize=size, dpi=SVG_DPI, layout="constrained")
    axes.yaxis.set_major_formatter(lambda value, _: quantity(value, figure.unit, short=True))
    is_log = figure.log_y and (figure.kind != "bars" or _spread(figure) > BARS_SPREAD)
    if is_log:
        axes.set_yscale("log")  # before anything is drawn: bars begin at its lower end
    {"bars": _bars, "lines": _lines, "marks": _marks}[figure.kind](axes, figure)
    shown = axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(X_UNITS.get(figure.x_label, figure.x_label))
    axes.set_ylabel(f"{figure.y_label} [{_units(figure)}]")
    if is_log:
        _bottom(axes, figure)
        _log_scale(axes, figure.unit)
    if figure.note:
        caption = textwrap.fill(figure.note, NOTE_WIDTH)
        canvas.supxlabel(caption, x=0.01, ha="left", fontsize=NOTE_SIZE, color="#444444")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    out = io.StringIO()
    canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    box = shown.get_window_extent()  # where it is in the file: to draw again may move it
    share = (canvas.bbox.x1 - box.x0) / box.width
    plt.close(canvas)
    return out.getvalue(), share


def _units(figure: Figure) -> str:
    """In what the ticks of y are: the unit of the least mark, and that of the greatest."""
    every = [point.mean for series in figure.series for point in series.points] or [1.0]
    ends = (scale(value, figure.unit)[1].strip() for value in (min(every), max(every)))
    return " to ".join(dict.fromkeys(ends)) or "number"


def _bottom(axes: Any, figure: Figure) -> None:
    """Let no standard deviation that reaches zero make a logarithmic axis longer.

    Its line then goes on to the lower edge.
    """
    ends = [
        end
        for series in figure.series
        for point in series.points
        for end in (point.mean, point.mean - (point.sd or 0.0))
        if end > 0
    ]
    low = min(point.mean for series in figure.series for point in series.points)
    axes.set_ylim(bottom=max(min(ends), low / FAR_BELOW) / ROOM_BELOW)


def _colour(label: str, number: int) -> str:
    return COLOURS[_place(label, number) % len(COLOURS)]


def _mark(label: str, number: int) -> str:
    return MARKS[_place(label, number) % len(MARKS)]


def _place(label: str, number: int) -> int:
    """That of a backend among all backends, so that it looks the same in every figure."""
    names = [peer.name for peer in PEERS]
    return names.index(label) if label in names else number


def _log_scale(axes: Any, unit: str) -> None:
    """Label a logarithmic axis, also one of less than a decade, up to what is highest in it."""
    from matplotlib import ticker

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high / low < NARROW:
        low, high = low / NARROW, high * NARROW
        axes.set_ylim(low, high)
    decades = math.log10(high / low)
    # On the shortest with one between 10 and 20: else what is there is above the last label.
    within = (1, 2, 5) if decades > 1 else (1, 1.5, *range(2, 10))
    subs = (1,) if decades > LABELLED_DECADES else within
    if unit == "bytes" and decades > 1:  # 1, 4, 16 … KiB
        locator = ticker.LogLocator(base=4, subs=(1,), numticks=12)
    else:
        locator = ticker.LogLocator(subs=subs, numticks=12)
    axes.yaxis.set_major_locator(locator)
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: quantity(value, unit, short=True))


def _spread(figure: Figure) -> float:
    """How many times the smallest figure the largest is."""
    every = [point.mean for series in figure.series for point in series.points]
    return max(every) / min(every) if min(every) > 0 else math.inf


def _bars(axes: Any, figure: Figure) -> None:
    values = list(dict.fromkeys(point.x for series in figure.series for point in series.points))
    width = GROUP / max(1, len(figure.series))
    for number, series in enumerate(figure.series):
        shift = (number - (len(figure.series) - 1) / 2) * width
        axes.bar(
            [values.index(point.x) + shift for point in series.points],
            [point.mean for point in series.points],
            width,
            yerr=_errors(series, log=figure.log_y),
            error_kw={"linewidth": 0.8},
            label=None if series.beside else series.label,
            alpha=PALE if series.beside else None,
            color=_colour(series.beside or series.label, number),
        )
    axes.set_xticks(range(len(values)), [_tick(value).replace(" ", "\n", 1) for value in values])
    axes.grid(visible=False, axis="x")


def _lines(axes: Any, figure: Figure) -> None:
    for number, series in enumerate(figure.series):
        # Where a cell was not measured there is no mark, and the line is faint: NaN breaks it.
        measured = {point.x: point for point in series.points}
        every = measured if figure.x_scale == "nines" else figure.values
        points = [measured.get(x, Point(x, math.nan, None)) for x in sorted(every)]
        ordered = replace(series, points=tuple(points))
        like = series.beside or series.label
        axes.errorbar(
            [point.x for point in points],
            [point.mean for point in points],
            yerr=_errors(ordered, log=figure.log_y),
            marker="" if series.is_reference else _mark(like, number),
            markersize=4,
            markerfacecolor="none" if series.beside else None,
            linestyle=series.dashes if series.beside or series.is_reference else "-",
            linewidth=1.2,
            capsize=2,
            label=f"{series.label}, {series.detail}" if series.detail else series.label,
            color=REFERENCE if series.is_reference else _colour(like, number),
        )
        if len(series.points) < len(points) and not (series.beside or series.is_reference):
            _across_gaps(axes, series, _colour(like, number))
    values = sorted(figure.values)
    if figure.x_scale == "nines":
        axes.set_xscale("log")
        nines = [share for share in NINES if 1 / (1 - share) <= values[-1] * 1.01]
        axes.set_xticks([1 / (1 - share) for share in nines], [f"{100 * s:g} %" for s in nines])
    else:
        tick = _tick
        if figure.x_scale == "log":
            axes.set_xscale("symlog", linthresh=1)
            tick = _short  # a decade is no wider than a number of seven digits
        axes.set_xticks(values, [tick(value) for value in values])
    axes.minorticks_off()


def _across_gaps(axes: Any, series: Series, colour: str) -> None:
    """A faint dotted line from mark to mark, so that marks of one system are seen together."""
    points = sorted(series.points, key=lambda point: point.x)
    axes.plot(
        [point.x for point in points],
        [point.mean for point in points],
        linestyle=":",
        linewidth=0.8,
        alpha=PALE,
        color=colour,
    )


def _marks(axes: Any, figure: Figure) -> None:
    """A mark per sample; the few that are far above the others stand at the upper end."""
    every = sorted(point.mean for series in figure.series for point in series.points)
    top = MARKS_ABOVE * quantile(every, MARKS_SHARE)
    for number, series in enumerate(figure.series):
        colour = _colour(series.label, number)
        near = [point for point in series.points if point.mean <= top]
        far = [point for point in series.points if point.mean > top]
        label = series.label
        if far:
            farthest = quantity(max(point.mean for point in far), figure.unit, short=True)
            label += f" ({len(far)} above, up to {farthest})"
        axes.plot(
            [point.x for point in near],
            [point.mean for point in near],
            _mark(series.label, number),
            markersize=2.5,
            alpha=0.7,
            label=label,
            color=colour,
        )
        axes.plot([point.x for point in far], [top] * len(far), "^", color=colour, clip_on=False)
    axes.set_ylim(0, top)


def _errors(series: Series, *, log: bool) -> list[list[float]] | None:
    """Standard deviations; on a logarithmic scale what would reach zero stays above it, unseen."""
    if all(point.sd is None for point in series.points):
        return None
    up = [point.sd or 0.0 for point in series.points]
    down = [
        max(0.0, min(point.sd or 0.0, NEARLY_ALL * point.mean)) if log else (point.sd or 0.0)
        for point in series.points
    ]
    return [down, up]


def _tick(value: Any) -> str:
    return whole(value) if isinstance(value, int) else str(value)


def _short(value: int) -> str:
    """A number as it is written where little room is: 512, 8 192, 10k, 1M."""
    return whole(value) if value % 1_000 else quantity(value, "", short=True)
