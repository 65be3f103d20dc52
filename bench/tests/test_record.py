"""The record of a run: what is kept, and what may be concluded from it."""

import json
import random

import pytest

from tupelo_bench.harness.histogram import Histogram, merged
from tupelo_bench.harness.record import Measure, Run, load
from tupelo_bench.harness.statistics import differ, student_t
from tupelo_bench.presentation.figure import percentiles
from tupelo_bench.presentation.tables import sign, tables
from tupelo_bench.report.compare import cautions, compared


def measure(samples, groups=(), backend="one", **options):
    return Measure("e", backend, {}, "time", "s", list(samples), groups=list(groups), **options)


def run_of(*measures, **options):
    wanted = {"machine": {"processor": "a", "load_1min": 0.1}, "versions": {}, "quick": False}
    return Run(["tupelo"], "now", 1, **(wanted | options), measures=list(measures))


def test_samples_of_one_process_are_not_taken_for_independent_ones():
    # Two processes, of which one was unlucky: a hundred samples say "slower", two can not.
    lucky = measure([1.0] * 50 + [1.1] * 50, [50, 50])
    unlucky = measure([1.2] * 50 + [1.3] * 50, [50, 50])
    assert differ(lucky.samples, unlucky.samples) is True
    assert sign(lucky, unlucky) == "?"


def test_the_interval_is_that_of_the_repeats_and_the_deviation_that_of_the_samples():
    figures = measure([1.0, 3.0, 2.0, 4.0, 3.0, 5.0], [2, 2, 2]).summary
    assert figures.mean == 3
    assert figures.ci95 == pytest.approx(student_t(0.95, 2) * 1.0 / 3**0.5)  # of 2, 3 and 4
    assert figures.sd == pytest.approx(2**0.5)


@pytest.mark.parametrize(
    ("n", "m", "can_tell"),
    [(3, 3, False), (3, 4, False), (3, 5, True), (4, 4, True), (1, 9, False)],
)
def test_a_difference_is_told_where_the_test_can_tell_one(n, m, can_tell):
    # The smallest p that n and m samples can have is 2 / (n + m over n).
    assert (differ(range(n), range(100, 100 + m)) is not None) is can_tell


def test_a_question_mark_says_that_nobody_can_tell_and_a_tilde_that_they_do_not_differ():
    few, others = measure([1.0, 1.1, 1.2]), measure([2.0, 2.1, 2.2])
    assert sign(few, others) == "?"
    assert sign(measure(range(10)), measure([x + 0.5 for x in range(10)])) == "~"
    assert sign(measure(range(10)), measure(range(100, 110))) == ""


def test_a_record_is_read_back_as_it_was_written(tmp_path):
    histogram = Histogram()
    histogram.record([1, 2, 3_000_000])
    run = run_of(
        measure([1.0, 2.0], [2], histogram=histogram.encoded()),
        measure([3.0], derived=True),
        spent_s={"e": {"one": 1.5}},
        placements={"e": ["free: all on 0"]},
    )
    run.save(tmp_path / "run.json")
    assert load(tmp_path / "run.json") == run


def test_samples_are_read_back_to_the_last_bit_and_are_whole_numbers_in_the_file(tmp_path):
    choice = random.Random(8)
    samples = [
        *(choice.lognormvariate(-14, 5) for _ in range(1_000)),
        *(0.0, -0.5, 1.0, 1e6, 3.0000001, 5e-324, 1.7e308),
    ]
    run = run_of(measure(samples), measure([0.0, 0.0]), measure([1.014e-07, 9.99e-08]))
    run.save(tmp_path / "run.json")
    assert load(tmp_path / "run.json").measures == [each.rounded() for each in run.measures]
    written = json.loads((tmp_path / "run.json").read_text())["measures"]
    assert all(type(number) is int for each in written for number in each["samples"])
    assert (written[2]["samples"], written[2]["exponent"]) == ([1014, 999], -10)


def test_a_record_of_the_form_before_is_read(tmp_path):
    run = run_of(measure([1.014e-07, 9.99e-08]))
    run.save(tmp_path / "run.json")
    raw = json.loads((tmp_path / "run.json").read_text()) | {"format": 1}
    raw["measures"][0]["samples"] = [1.014e-07, 9.99e-08]
    del raw["measures"][0]["exponent"]
    (tmp_path / "old.json").write_text(json.dumps(raw))
    assert load(tmp_path / "old.json") == run


def test_a_histogram_is_read_back_as_it_was_encoded():
    choice = random.Random(4)
    histogram = Histogram()
    histogram.record(int(choice.lognormvariate(12, 3)) for _ in range(5_000))
    back = Histogram.decoded(histogram.encoded())
    assert back.encoded() == histogram.encoded()
    assert back.total == 5_000
    assert Histogram.decoded(Histogram().encoded()).total == 0


@pytest.mark.parametrize("text", ["", "AAAA", "HISTFAAAACt4nJNpmSzM"])
def test_a_text_that_is_no_histogram_is_refused(text):
    with pytest.raises(ValueError, match=r"no histogram"):
        Histogram.decoded(text)


def test_histograms_of_several_repeats_are_one():
    parts = [Histogram(), Histogram()]
    parts[0].record(range(100))
    parts[1].record(range(100, 200))
    assert merged(parts).total == 200
    assert merged(parts).quantile(0.5) == 99


def test_percentiles_end_where_a_share_is_less_than_one_request():
    histogram = Histogram()
    histogram.record(range(1, 201))
    figure = percentiles("e", "t", [measure([1.0], histogram=histogram.encoded())], {}, {})
    (series,) = figure.series
    assert series.points[0].mean == 1e-9
    assert [round(1 - 1 / point.x, 3) for point in series.points][-1] == 0.995
    assert [point.mean for point in series.points] == sorted(p.mean for p in series.points)


def test_a_comparison_shows_what_differs_and_leaves_out_what_does_not():
    same = measure(range(1, 11), backend="same")
    follows = [measure([value], backend="follows", derived=True) for value in (1, 100)]
    old = run_of(same, measure(range(1, 11)), follows[0])
    new = run_of(same, measure(range(101, 111)), follows[1])
    rows = compared(old, new).rows
    assert [row[1] for row in rows] == ["one"]
    assert rows[0][-1].endswith(" x")


STEADY = [1.30 + n / 100 for n in range(10)]
FASTER_BUT_FOR_ONE = [*(1.00 + n / 100 for n in range(9)), 20.0]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        (FASTER_BUT_FOR_ONE, STEADY, "0.46 x; by the test it is more"),
        (STEADY, FASTER_BUT_FOR_ONE, "2.18 x; by the test it is less"),
        (STEADY, [2 * sample for sample in STEADY], "2.00 x"),
        (STEADY[:3], FASTER_BUT_FOR_ONE[:3], "0.77 x?"),
    ],
)
def test_one_repeat_that_stood_still_hides_no_change_from_a_comparison(old, new, change):
    (row,) = compared(run_of(measure(old)), run_of(measure(new))).rows
    assert row[-1] == change


@pytest.mark.parametrize(
    ("load", "metric", "unit", "rows"),
    [
        ("half of its own", "latency under load", "s", 0),
        ("half of its own", "rate", "/s", 1),
        ("1 000/s", "latency under load", "s", 1),
    ],
)
def test_a_comparison_leaves_out_times_of_different_work_and_says_so(load, metric, unit, rows):
    def run(factor):
        samples = [factor * n for n in range(1, 11)]
        return run_of(Measure("rpc", "redis", {"load": load}, metric, unit, samples))

    assert len(compared(run(1), run(100)).rows) == rows
    told = ["not compared: 1 times, each of as much work as filled it"]
    assert cautions(run(1), run(100)) == told[rows:]


def test_a_comparison_warns_of_another_machine_and_of_what_is_in_one_run_only():
    old = run_of(measure([1.0]), versions={"redis": "7"})
    new = run_of(
        measure([1.0]), measure([1.0], backend="new"), versions={"redis": "8"}, quick=True,
        machine={"processor": "b", "load_1min": 9.0},
    )  # fmt: skip
    told = "\n".join(cautions(old, new))
    assert "processor was a, and is b" in told
    assert "redis was 7, and is 8" in told
    assert "one of the runs is quick" in told
    assert "1 of 2 are in the new run only" in told
    assert "load" not in told
    assert cautions(old, old) == []


@pytest.mark.parametrize(
    ("unit", "parameters", "has_ratio"),
    [
        ("s", {}, True),
        ("s", {"load": "half of its own"}, False),
        ("operations/s", {"load": "half of its own"}, True),
        ("", {}, False),
    ],
)
def test_a_table_compares_what_is_comparable(unit, parameters, has_ratio):
    each = [Measure("e", name, parameters, "m", unit, [1.0 + n]) for n, name in enumerate("ab")]
    (table,) = tables(run_of(*each), "e")
    assert table.rows[0][2].endswith(" x") is has_ratio
