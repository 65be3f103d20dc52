"""How figures look: whoever is in one can be told from all others."""

import re

import pytest

from tupelo.bench.backends.registry import PEERS
from tupelo.bench.experiments.settle import NOTE_OWN_WORK, Settle
from tupelo.bench.experiments.workload import KINDS
from tupelo.bench.harness.record import Run
from tupelo.bench.report.drawing import COLOURS, MARKS, svg
from tupelo.bench.report.figure import Figure, Point, Series


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


def test_what_is_of_different_work_is_called_so_below_its_figure():
    figures = Settle().figures(Run([], "", 1, quick=False, machine={}, versions={}))
    noted = [figure.title for figure in figures if figure.note == NOTE_OWN_WORK]
    assert noted == [f"{kind}, overlapping delays: response time" for kind in KINDS]
