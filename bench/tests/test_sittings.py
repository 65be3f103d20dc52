"""A record that is made in several sittings."""

import io
from dataclasses import replace
from typing import ClassVar

import pytest
from records import run_of

from tupelo.terminal import Terminal
from tupelo_bench.backends.base import Peer
from tupelo_bench.command.arguments import arguments
from tupelo_bench.command.measuring import visits
from tupelo_bench.harness.histogram import Histogram
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.progress import Progress
from tupelo_bench.harness.record import BadRecordError, Measure, Remark
from tupelo_bench.harness.sittings import added, repeats_before, require_same_plan, without
from tupelo_bench.runner import Block, Job, Options, Runner

CELL = {"size": 7}


def measure(*samples, backend="redis", **also):
    return Measure("sort", backend, CELL, "response time", "s", list(samples), **also)


def test_a_cell_gets_the_repeats_of_both_sittings():
    old = run_of(measure(1.0, 2.0), measure(5.0, backend="sqlite"))
    new = run_of(measure(3.0), measure(7.0, backend="rinda"))
    run = added(old, replace(new, begin="tomorrow"))
    assert {m.backend: m.samples for m in run.measures} == {
        "redis": [1.0, 2.0, 3.0], "sqlite": [5.0], "rinda": [7.0],
    }  # fmt: skip
    assert repeats_before(run) == {
        ("sort", "redis", "size=7"): 3,
        ("sort", "sqlite", "size=7"): 1,
        ("sort", "rinda", "size=7"): 1,
    }
    assert [text.split(",")[0] for text in run.sittings] == ["today", "tomorrow"]
    assert run.caveats == []


def test_groups_and_histograms_of_a_cell_are_joined():
    histograms = [Histogram(), Histogram()]
    histograms[0].record([1_000])
    histograms[1].record([9_000])
    first, second = (each.encoded() for each in histograms)
    old = run_of(measure(1.0, 2.0, groups=[2], histogram=first))
    new = run_of(measure(3.0, 4.0, 5.0, groups=[1, 2], histogram=second))
    (joined,) = added(old, new).measures
    assert joined.groups == [2, 1, 2]
    assert joined.independent == [1.5, 3.0, 4.5]
    assert Histogram.decoded(joined.histogram).total == 2


def test_what_was_over_budget_and_is_measured_now_is_no_longer_left_out():
    lost = Remark("sort", "redis", CELL, "over budget", "not tried")
    other = Remark("sort", "redis", {"size": 9}, "over budget", "not tried")
    run = added(run_of(remarks=[lost, other]), run_of(measure(1.0)))
    assert run.remarks == [other]
    again = Remark("sort", "redis", {"size": 9}, "failed", "it broke")
    assert added(run, run_of(remarks=[again])).remarks == [again]


@pytest.mark.parametrize("why", ["wrong result", "repeat stopped"])
def test_a_result_that_was_wrong_once_is_not_undone_by_a_sitting_that_gets_it_right(why):
    wrong = Remark("sort", "redis", CELL, why, "it was so")
    run = added(run_of(remarks=[wrong]), run_of(measure(1.0)))
    assert run.remarks == [wrong]
    assert run.left_out == []
    assert added(run, run_of(measure(2.0), remarks=[wrong])).remarks == [wrong]


def test_another_machine_is_marked_and_other_sizes_are_refused():
    old, new = run_of(measure(1.0)), run_of(measure(2.0))
    new.machine = {**new.machine, "processor": "slide rule"}
    (caveat,) = added(old, new).caveats
    assert "processor slide rule, before abacus" in caveat
    assert caveat.endswith("Its repeats of sort stand beside theirs.")
    with pytest.raises(BadRecordError, match="--seed 1"):
        require_same_plan(old, quick=False, seed=2)
    with pytest.raises(BadRecordError, match="without --quick"):
        require_same_plan(old, quick=True, seed=1)
    require_same_plan(old, quick=False, seed=1)


def test_an_experiment_that_is_measured_anew_has_nothing_of_the_sittings_before():
    settle = Measure("settle", "redis", CELL, "response time", "s", [9.0])
    lost = Remark("sort", "rinda", CELL, "over budget", "not tried")
    old = replace(
        run_of(measure(1.0), settle, remarks=[lost]), spent_s={"sort": {"redis": 1.0}, "settle": {}}
    )
    rest = without(old, ["sort"])
    assert (rest.measures, rest.remarks, rest.spent_s) == ([settle], [], {"settle": {}})
    new = run_of(measure(2.0))
    new.machine = {**new.machine, "processor": "slide rule"}
    run = added(rest, new)
    assert {m.experiment: m.samples for m in run.measures} == {"settle": [9.0], "sort": [2.0]}
    (caveat,) = run.caveats
    assert caveat.endswith("All of sort was measured in it, and no more.")


def test_of_an_experiment_one_system_is_measured_anew_alone():
    of_redis = Measure("sort", "redis", CELL, "response time", "s", [9.0])
    of_rinda = Measure("sort", "rinda", CELL, "response time", "s", [8.0])
    lost = [Remark("sort", name, CELL, "over budget", "not tried") for name in ("redis", "rinda")]
    spent_s = {"sort": {"redis": 1.0, "rinda": 2.0}, "settle": {"redis": 3.0}}
    old = replace(run_of(of_redis, of_rinda, remarks=lost), spent_s=spent_s)
    rest = without(old, ["sort"], ["redis"])
    assert rest.measures == [of_rinda]
    assert rest.remarks == lost[1:]
    assert rest.spent_s == {"sort": {"rinda": 2.0}, "settle": {"redis": 3.0}}
    assert rest.placements == old.placements


def test_the_yardsticks_of_another_machine_stand_for_themselves():
    yardstick = Measure("yardsticks", "machine", {}, "memcpy", "s", [1.0])
    old, same, other = (run_of(yardstick) for _ in range(3))
    other.machine = {**other.machine, "processor": "slide rule"}
    (joined,) = added(old, same).measures
    assert joined.samples == [1.0, 1.0]
    apart = added(old, other).measures
    assert [m.parameters for m in apart] == [{}, {"of": "slide rule"}]


class Noted(Peer):
    """A peer whose repeats are written down."""

    done: ClassVar = []


class First(Noted):
    name = title = "first"


class Second(Noted):
    name = title = "second"


def block(peer, jobs=1):
    def once(stage):
        Noted.done.append((stage.peer.name, stage.parameters["job"], stage.repeat, stage.seed))
        stage.note("time", "s", [1.0])

    cells = [Job({"job": number}, once) for number in range(jobs)]
    return Block("sort", peer, placement("free"), cells, 1.0)


def run_blocks(blocks, **options):
    Noted.done = []
    run = run_of()
    asked = Options(repeats=10, **options)
    Runner(run, asked, Progress(Terminal(io.StringIO())), "tupelo-shm").all_of(blocks)
    return run, Noted.done


def test_a_sitting_makes_only_the_repeats_that_the_record_lacks_with_seeds_of_their_own():
    before = {("sort", "first", "job=0"): 7, ("sort", "second", "job=0"): 10}
    run, done = run_blocks([block(First), block(Second)], before=before)
    assert [(name, repeat) for name, _, repeat, _ in done] == [
        ("first", 7), ("first", 8), ("first", 9),
    ]  # fmt: skip
    assert [seed for *_, seed in done] == [1_007, 1_008, 1_009]
    assert [len(m.samples) for m in run.measures] == [3]


def test_further_repeats_of_a_cell_are_not_begun_in_the_last_moment_of_a_sitting():
    """None could end: each would be listed as stopped."""
    run, done = run_blocks([block(First)], before={("sort", "first", "job=0"): 7}, budget_s=0.2)
    assert (done, run.remarks) == ([], [])


def test_peers_are_interleaved_repeat_by_repeat_in_an_order_by_lot():
    _, done = run_blocks([block(First, 2), block(Second, 2)], visits=5, by_lot=True)
    assert len(done) == 2 * 2 * 10
    names = [name for name, *_ in done]
    visits = [names[begin : begin + 4] for begin in range(0, 16, 4)]
    # In each visit both have a repeat of each of their cells.
    assert all(sorted(visit) == ["first"] * 2 + ["second"] * 2 for visit in visits)
    repeats = [repeat for *_, repeat, _ in done]
    assert repeats[:16] == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    orders = set()
    for seed in range(1, 9):
        _, done = run_blocks([block(First), block(Second)], visits=5, by_lot=True, seed=seed)
        orders.add(done[0][0])
    assert orders == {"first", "second"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--quick",), 1),
        (("--budget", "90"), 1),
        (("--budget", "200"), 2),
        (("--budget", "600"), 5),
        (("--budget", "none"), 5),
        ((), 1),
    ],
)
def test_a_short_run_has_one_visit_so_that_slow_cells_have_time(words, expected):
    assert visits(arguments().parse_args(["all", *words])) == expected
