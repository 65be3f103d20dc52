"""Figures as SVG, with matplotlib (extra `bench`). A backend has one colour in all figures."""

from __future__ import annotations

import io
import re
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.registry import PEERS
from tupelo.bench.report.units import quantity

if TYPE_CHECKING:
    from tupelo.bench.report.figure import Figure, Series

WIDTH_INCH, HEIGHT_INCH = 7.2, 4.0
GROUP = 0.82  # of the distance between two groups of bars is bars
MARKS = "osD^vP*X<>"

STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "svg.fonttype": "path",  # the same on every machine
    "svg.hashsalt": "tupelo",  # the same file from the same record
}


def missing() -> str | None:
    """What has to be installed before anything can be drawn; None if nothing."""
    if find_spec("matplotlib") is None:
        return "figures need matplotlib: pip install 'tupelo[bench]'"
    return None


def svg(figure: Figure) -> str:
    """The figure as the text of an SVG element."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        canvas, axes = plt.subplots(figsize=(WIDTH_INCH, HEIGHT_INCH), layout="constrained")
        if figure.log_y:
            axes.set_yscale("log")
        {"bars": _bars, "lines": _lines, "marks": _marks}[figure.kind](axes, figure)
        axes.set_title(figure.title, loc="left", fontweight="bold")
        axes.set_xlabel(figure.x_label)
        axes.set_ylabel(figure.y_label)
        axes.yaxis.set_major_formatter(lambda value, _: quantity(value, figure.unit, short=True))
        if len(figure.series) > 1:
            axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        out = io.StringIO()
        canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(canvas)
    text = out.getvalue()
    # Many figures stand on one page: the names inside must not meet.
    text = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{figure.name}-", text)
    return text[text.index("<svg") :]


def _colour(label: str, number: int) -> str:
    names = [peer.name for peer in PEERS]
    place = names.index(label) if label in names else number
    return f"C{place % 10}"


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
            label=series.label,
            color=_colour(series.label, number),
        )
    axes.set_xticks(range(len(values)), [_tick(value) for value in values])
    axes.grid(visible=False, axis="x")


def _lines(axes: Any, figure: Figure) -> None:
    for number, series in enumerate(figure.series):
        points = sorted(series.points, key=lambda point: point.x)
        ordered = type(series)(series.label, tuple(points))
        axes.errorbar(
            [point.x for point in points],
            [point.mean for point in points],
            yerr=_errors(ordered, log=figure.log_y),
            marker=MARKS[number % len(MARKS)],
            markersize=4,
            linewidth=1.2,
            capsize=2,
            label=series.label,
            color=_colour(series.label, number),
        )
    if figure.log_x:
        axes.set_xscale("symlog", linthresh=1)
    values = sorted({point.x for series in figure.series for point in series.points})
    axes.set_xticks(values, [_tick(value) for value in values])
    axes.minorticks_off()


def _marks(axes: Any, figure: Figure) -> None:
    for number, series in enumerate(figure.series):
        axes.plot(
            [point.x for point in series.points],
            [point.mean for point in series.points],
            MARKS[number % len(MARKS)],
            markersize=2.5,
            alpha=0.7,
            label=series.label,
        )


def _errors(series: Series, *, log: bool) -> list[list[float]] | None:
    """Standard deviations; on a log scale the lower one stays above zero."""
    if all(point.sd is None for point in series.points):
        return None
    up = [point.sd or 0.0 for point in series.points]
    down = [
        min(point.sd or 0.0, 0.9 * point.mean) if log else (point.sd or 0.0)
        for point in series.points
    ]
    return [down, up]


def _tick(value: Any) -> str:
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)
