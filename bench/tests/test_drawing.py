"""How figures look: whoever is in one can be told from all others."""

import re
from dataclasses import replace

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from records import run_of

from tupelo_bench.backends.registry import PEERS
from tupelo_bench.experiments.settle import NOTE_RESPONSE, Settle
from tupelo_bench.experiments.sort import Sort
from tupelo_bench.experiments.workload import KINDS
from tupelo_bench.harness.record import Measure, Run
from tupelo_bench.presentation.figure import Figure, Point, Series, lines
from tupelo_bench.report.drawing import COLOURS, MARKS, svg

POINTS = (Point(1, 1e-3, None), Point(15, 2e-3, None))


def test_every_peer_has_a_colour_and_a_mark_of_its_own():
    assert len(set(COLOURS)) == len(COLOURS) >= len(PEERS)
    assert len(set(MARKS)) == len(MARKS) >= len(PEERS)


@pytest.mark.parametrize(
    ("low_ms", "high_ms", "last"), [(2.1, 15.5, "15"), (3.0, 19.0, "15"), (2.0, 9.3, "9")]
)
def test_a_short_logarithmic_axis_has_labels_up_to_what_is_highest(low_ms, high_ms, last):
    points = (Point(1, low_ms / 1_000, None), Point(15, high_ms / 1_000, None))
    blank = Figure("a", "A", "lines", "workers", "total", (Series("tupelo-shm", points),), unit="s")
    labels = re.findall(r">([\d.]+) ms<", svg(blank))
    assert last in [label.removesuffix(".0").removesuffix(".00") for label in labels], labels


BOLD, TITLE_SIZE = FontProperties(family="DejaVu Sans", weight="bold"), 10.8
TITLES = (
    "Put",
    "Matrix of a hundred rows, uniform: each search of five workers, tupelo",
    "Matrix of a hundred rows, uniform: each search of five workers, tupelo-shm",
    30 * "put ",
)


@pytest.mark.parametrize("kind", ["lines", "marks"])
@pytest.mark.parametrize("title", TITLES)
def test_no_title_is_cut_at_an_edge_of_its_figure(title, kind):
    """A long one has several lines."""
    series = (Series("#0 (3 above)", POINTS),)
    drawn = svg(Figure("a", title, kind, "#", "~", series, log_y=kind == "lines", unit="s"))
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn).groups())
    # Of a line alone it says where in attributes, of one of several by how far it is moved.
    places = r'(?:x="([-\d.]+)" y="([-\d.]+)" [^>]*|translate\(([-\d.]+) ([-\d.]+)\)[^>]*)'
    found = re.findall(rf"<text [^>]*?{places}>([^<]+)</text>", drawn)
    texts = [(float(x or right), float(y or down), text) for x, y, right, down, text in found]
    lines = [text for text in texts if text[2].strip() in title]
    assert " ".join(line.strip() for *_, line in lines) == title.strip()
    for x, y, line in lines:
        box = TextPath((0, 0), line, size=TITLE_SIZE, prop=BOLD).get_extents()
        assert 0 <= x < x + box.width <= width
        assert TITLE_SIZE <= y < height


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ((0, 10_000, 100_000, 1_000_000), ["0", "10k", "100k", "1M"]),
        ((256, 1_024, 8_192), ["256", "1 024", "8 192"]),
    ],
)
def test_the_labels_of_an_axis_of_decades_have_room_beside_each_other(values, labels):
    points = tuple(Point(value, 1.0, None) for value in values)
    series = (Series("tupelo-shm", points),)
    drawn = svg(Figure("a", "A", "lines", "fill", "put", series, "log"))
    assert [text for text in re.findall(r">([^<>]+)</text>", drawn) if text in labels] == labels


def test_the_response_time_of_clients_at_once_says_of_what_work_it_is():
    figures = Settle().figures(Run([], "", 1, quick=False, machine={}, versions={}))
    noted = [figure.title for figure in figures if NOTE_RESPONSE in figure.note]
    assert noted == [f"{kind}, all at once: response time" for kind in KINDS]


def test_a_line_is_dotted_and_faint_where_a_cell_was_not_measured():
    """Of three numbers of workers the second was measured for the other system only."""
    ours = tuple(Point(x, 1e-3, None) for x in (1, 5, 10, 15))
    theirs = tuple(point for point in ours if point.x != 10)
    series = (Series("tupelo-shm", ours), Series("redis", theirs))
    figure = Figure("a", "A", "lines", "workers", "total", series, unit="s")

    def moves_and_dotted(label):
        only = [one for one in series if one.label == label]
        drawn = svg(replace(figure, series=(*series[:1], *only)))
        moves = max(d.count("M") for d in re.findall(r' d="([^"]+)"', drawn))
        return moves, drawn.count("stroke-dasharray: 0.8")

    assert moves_and_dotted("tupelo-shm") == (1, 0)
    assert moves_and_dotted("redis") == (2, 1)


def test_axes_say_their_units_and_the_caption_stands_in_the_figure():
    series = (Series("tupelo-shm", (Point(1, 2e-6, None), Point(15, 3e-3, None))),)
    figure = Figure(
        "a", "A", "lines", "workers", "total", series, unit="s", note="Figure 99 of the paper"
    )
    texts = re.findall(r">([^<>]+)</text>", svg(figure))
    assert {"workers [processes]", "total [µs to ms]", "Figure 99 of the paper"} <= set(texts)


def test_a_standard_deviation_that_reaches_zero_goes_on_to_the_edge_and_makes_no_axis_longer():
    points = (Point(1, 1e-3, 5e-3), Point(15, 2e-3, 1e-4))
    series = (Series("tupelo-shm", points),)
    drawn = svg(Figure("a", "A", "lines", "workers", "total", series, unit="s"))
    labels = re.findall(r">([\d.]+ [µm]?s)<", drawn)
    assert labels
    assert not [label for label in labels if "µs" in label and float(label.split()[0]) < 500]


def test_a_figure_that_is_more_than_half_empty_is_not_drawn():
    full = Series("tupelo-shm", tuple(Point(x, 1.0, None) for x in (1, 5, 10, 15)))
    single = [Series(name, (Point(1, 1.0, None),)) for name in ("redis", "sqlite", "rinda")]
    figure = Figure("a", "A", "lines", "workers", "total", (full, *single))
    assert figure.filled == (7, 16)
    assert figure.empty
    assert not replace(figure, series=(full, *single[:2])).empty


def test_systems_with_one_mark_are_left_out_where_the_figure_is_too_empty_with_them():
    cells = {"redis": (1, 2, 3, 4), "sqlite": (1, 2, 3), "rinda": (1,), "postgres": (2,),
             "udp": (3,), "grpc": (1,)}  # fmt: skip
    measures = [
        Measure("sort", name, {"workers": at}, "response time", "s", [1.0, 2.0])
        for name, all_at in cells.items() for at in all_at
    ]  # fmt: skip
    run = run_of(*measures)
    figure = lines(run, "sort", "response time", "workers", fixed={}, title="t", note="n")
    assert [series.label for series in figure.series] == ["redis", "sqlite"]
    assert figure.note == "n; not drawn, with one mark each: rinda, postgres, udp, grpc"
    assert not figure.empty
    full = run_of(*(m for m in measures if m.backend != "grpc"))
    figure = lines(full, "sort", "response time", "workers", fixed={}, title="t")
    assert len(figure.series) == 5  # half of its marks are there
    alone = run_of(*(m for m in measures if m.backend != "sqlite"))
    assert lines(alone, "sort", "response time", "workers", fixed={}, title="t").empty


def test_a_speed_up_stands_beside_what_the_processors_would_allow():
    measures = [
        Measure("sort", "tupelo-shm", {"size": 8, "workers": workers}, metric, "", [1.0])
        for workers in (1, 2, 8)
        for metric in ("speed-up", "work-normalised speed-up")
    ]
    run = Run([], "", 1, quick=False, machine={"processors": [0, 1]}, versions={},
              measures=measures)  # fmt: skip
    ideal = {
        figure.y_label: [point.mean for point in figure.series[-1].points]
        for figure in Sort().figures(run)
        if figure.series and figure.series[-1].is_reference
    }
    # P parts are a P-th of the work, and two of them are worked on at a time.
    assert ideal == {"speed-up": [1, 4, 16], "work-normalised speed-up": [1, 2, 2]}
