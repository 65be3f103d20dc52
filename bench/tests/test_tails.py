"""The slowest calls: the same quantile in every table and figure, and our target beside peers."""

import json

import pytest
from records import run_of

from tupelo_bench.experiments.everything import EXPERIMENTS
from tupelo_bench.experiments.rpc.load import OWN_LOAD, SAME_LOAD, UNDER_LOAD, open_loop
from tupelo_bench.harness.bootstrap import quantile_ratio
from tupelo_bench.harness.histogram import Histogram, merged
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.progress import Progress
from tupelo_bench.harness.quantiles import QUANTILES, pool
from tupelo_bench.harness.record import BadRecordError, Measure, load
from tupelo_bench.harness.sittings import added
from tupelo_bench.presentation.figure import percentiles
from tupelo_bench.presentation.tables import tables
from tupelo_bench.report.faster import comparisons
from tupelo_bench.report.results import markdown
from tupelo_bench.report.targets import targets
from tupelo_bench.runner import Stage
from tupelo_bench.runner.notebook import Notebook

MS_NS = 1_000_000
CALLS = 1_000


def calls(base_ms, slow, slow_ms=50):
    """The calls of a repeat, in nanoseconds: so many of a thousand are slow."""
    return [base_ms * MS_NS] * (CALLS - slow) + [slow_ms * MS_NS] * slow


def histogram_of(values_ns):
    histogram = Histogram()
    histogram.record(values_ns)
    return histogram


def measured(backend, repeats, where="apart", load=SAME_LOAD, *, is_kept=True):
    """What the record has of these repeats, each a list of calls."""
    cell = {"bytes": 256, "placement": where, "load": load}
    each = [histogram_of(values_ns) for values_ns in repeats]
    yield Measure(
        "rpc", backend, cell, UNDER_LOAD, "s", [1e-3] * len(each),
        histogram=merged(each).encoded(),
        histograms=[histogram.encoded() for histogram in each] if is_kept else [],
    )  # fmt: skip
    for name, share in QUANTILES:
        of_repeats = [histogram.quantile(share) / 1e9 for histogram in each]
        yield Measure("rpc", backend, cell, f"{UNDER_LOAD} {name}", "s", of_repeats)


ONE_SLOW = [calls(1, 0)] * 9 + [calls(1, 200)]
"""Of ten repeats one has slow calls, 2 % of all: their 99th is 50 ms, the mean of the ten 5.9."""


def test_every_table_and_figure_has_the_quantile_of_all_calls():
    run = run_of(*measured("tupelo-shm", ONE_SLOW), *measured("redis", [calls(1, 0)] * 10))
    pool(run)
    ours = run.find_one("rpc", f"{UNDER_LOAD} p99", "tupelo-shm")
    assert sum(ours.samples) / 10 == pytest.approx(5.9e-3, rel=0.01)
    assert ours.summary.mean == pytest.approx(50e-3, rel=0.001)
    (table,) = tables(run, "rpc", only=[f"{UNDER_LOAD} p99"])
    assert table.rows[0][1].startswith("50.0 ms")
    (row,) = [r for r in markdown(run, EXPERIMENTS, []).splitlines() if "| tupelo-shm | - |" in r]
    assert [cell.strip() for cell in row.split("|")[3:5]] == ["1.00 ms", "50.0 ms"]
    figure = percentiles("rpc", "t", run.find("rpc", UNDER_LOAD), {}, {})
    drawn = {point.x: point.mean for point in figure.series[0].points}
    assert drawn[1 / (1 - 0.99)] == pytest.approx(ours.summary.mean)
    (p99,) = [each for each in comparisons(run) if each.metric.endswith("p99")]
    assert p99.ratio == pytest.approx(50, rel=0.01)


def test_a_quantile_without_a_histogram_is_that_of_its_repeats():
    run = run_of(Measure("rpc", "redis", {}, f"{UNDER_LOAD} p99", "s", [1.0, 3.0]))
    pool(run)
    assert run.measures[0].summary.mean == 2.0


def test_a_record_has_the_histograms_and_not_what_follows_from_them(tmp_path):
    run = run_of(*measured("redis", ONE_SLOW))
    pool(run)
    run.save(tmp_path / "run.json")
    raw = json.loads((tmp_path / "run.json").read_text())
    assert not any("pooled" in each for each in raw["measures"])
    back = load(tmp_path / "run.json")
    assert back.measures[0].histograms == run.measures[0].histograms
    assert [each.pooled for each in back.measures] == [each.pooled for each in run.measures]
    raw["measures"][0]["histograms"][3] = "HISTFAAA"
    (tmp_path / "run.json").write_text(json.dumps(raw))
    with pytest.raises(BadRecordError):
        load(tmp_path / "run.json")


def test_of_two_sittings_the_quantile_is_that_of_the_calls_of_both():
    first, second = (run_of(*measured("redis", part)) for part in (ONE_SLOW[:5], ONE_SLOW[5:]))
    pool(first)
    both = added(first, second)
    pool(both)
    assert len(both.measures[0].histograms) == 10
    p99 = both.find_one("rpc", f"{UNDER_LOAD} p99", "redis")
    assert p99.summary.mean == pytest.approx(50e-3, rel=0.001)


@pytest.mark.parametrize(("at", "kept"), [(SAME_LOAD, 1), (OWN_LOAD, 0)])
def test_the_histogram_of_a_repeat_is_kept_where_systems_are_compared_by_it(at, kept):
    """At its own rate each has as many calls as it can do: their histograms would be large."""
    profiler = Profiler()
    profiler.add(UNDER_LOAD, 5_000)
    stage = Stage(None, {"load": at}, placement("apart"), 1, 0, quick=True, deadline=None)
    stage.run_at = lambda *_: ((None, (1_000.0, 999.0)), (None, profiler))
    open_loop(stage, None)
    run = run_of()
    Notebook(run, Progress(None)).keep("rpc", "redis", stage.parameters, [stage])
    measure = run.find_one("rpc", UNDER_LOAD, "redis")
    assert measure.histogram is not None
    assert len(measure.histograms) == kept


# --- the interval ---


def test_repeats_that_are_alike_have_an_interval_of_no_width():
    alike = [histogram_of(calls(2, 0)) for _ in range(5)]
    half = [histogram_of(calls(1, 0)) for _ in range(5)]
    low, high = quantile_ratio(alike, half, 0.99)
    assert low == high == pytest.approx(2, rel=0.002)


def test_an_interval_is_wide_where_one_repeat_makes_the_quantile():
    """Calls would be drawn as if each were for itself: the interval would be far too narrow."""
    low, high = quantile_ratio(
        [histogram_of(each) for each in ONE_SLOW], [histogram_of(calls(1, 0))] * 10, 0.99
    )
    assert low == pytest.approx(1, rel=0.002)  # of a third of all draws that repeat is no part
    assert high == pytest.approx(50, rel=0.002)


def test_the_quantile_of_a_draw_is_that_of_the_merged_histogram():
    """With one repeat there is one draw."""
    one, other = histogram_of(range(1, 5_000)), histogram_of([1])
    for share in (0.5, 0.99, 0.999, 1.0):
        assert quantile_ratio([one], [other], share) == (one.quantile(share),) * 2


# --- the target ---


def verdicts(*measures):
    found = [row for row in targets(run_of(*measures)).rows if "that sleeps" in row[0]]
    return {row[0].split(",")[0]: row[2:] for row in found if "server apart" in row[0]}


def test_our_tail_is_worse_if_the_whole_interval_says_so_and_not_worse_if_its_figure_does():
    even = [calls(2, 0)] * 5
    found = verdicts(*measured("tupelo-shm", even), *measured("redis", [calls(1, 0)] * 5),
                     *measured("udp", [calls(3, 0)] * 5))  # fmt: skip
    assert set(found) == {"p99 of a call at 1 000/s", "p99.9 of a call at 1 000/s"}
    for measured_text, reached in found.values():
        assert measured_text == "2.00 ms, redis 1.00 ms: 2.00 x (2.00 to 2.00 by the bootstrap)"
        assert reached == "**no**"
    found = verdicts(*measured("tupelo-shm", ONE_SLOW), *measured("redis", [calls(1, 0)] * 10))
    assert found["p99 of a call at 1 000/s"][1] == "too little to tell"  # one repeat of ten decides
    found = verdicts(*measured("tupelo-shm", even), *measured("redis", [calls(4, 0)] * 5))
    assert found["p99 of a call at 1 000/s"] == (
        "2.00 ms, redis 4.00 ms: 0.50 x (0.50 to 0.50 by the bootstrap)", "yes",
    )  # fmt: skip


def test_a_spinning_peer_and_another_of_our_own_are_not_who_it_is_beside():
    found = verdicts(
        *measured("tupelo-shm", [calls(2, 0)] * 5), *measured("redis", [calls(4, 0)] * 5),
        *measured("udp-spinning", [calls(1, 0)] * 5), *measured("tupelo-aio", [calls(1, 0)] * 5),
        *measured("grpc", [calls(1, 0)] * 5, load=OWN_LOAD),  # at another rate
        *measured("grpc", [calls(1, 0)] * 5, where="together"),
    )  # fmt: skip
    assert found["p99 of a call at 1 000/s"][0].startswith("2.00 ms, redis 4.00 ms")


@pytest.mark.parametrize(
    ("ours", "theirs", "word"),
    [
        ([], [calls(1, 0)] * 5, "not measured"),
        ([calls(1, 0)] * 5, [], "not measured"),
        ([calls(1, 0)] * 3, [calls(1, 0)] * 3, "too little to tell"),
    ],
)
def test_without_repeats_there_is_no_verdict_on_the_tail(ours, theirs, word):
    sides = (("tupelo-shm", ours), ("redis", theirs))
    some = Measure("rpc", "udp-spinning", {}, "round trip", "s", [1.0])
    measures = [m for backend, repeats in sides if repeats for m in measured(backend, repeats)]
    assert verdicts(some, *measures)["p99 of a call at 1 000/s"][1] == word


def test_an_older_record_without_the_histograms_of_repeats_has_no_verdict():
    sides = [measured(each, [calls(1, 0)] * 5, is_kept=False) for each in ("tupelo-shm", "redis")]
    found = verdicts(*sides[0], *sides[1])["p99.9 of a call at 1 000/s"]
    assert found[1] == "too little to tell"
    assert found[0].endswith("this record has the calls of all repeats together")
