"""The budget of a run: who gets how much time, what is left out, and what is repeated."""

import io
import sys
import threading
import time

import pytest

from tupelo.terminal import Terminal
from tupelo_bench.backends.base import Backend, Peer
from tupelo_bench.backends.space import SharedSpace
from tupelo_bench.harness.budget import FOREVER_S, Budget
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.progress import Progress
from tupelo_bench.harness.record import Run
from tupelo_bench.harness.statistics import can_tell
from tupelo_bench.harness.workers import OverBudgetError, WrongResultError
from tupelo_bench.runner import Block, Job, Options, Runner, blocks, turn
from tupelo_bench.runner.notebook import PACKAGES
from tupelo_bench.runner.turn import Turn


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Stone(Peer):
    """A peer that does nothing."""

    name = "stone"
    title = "a stone"


class Pebble(Stone):
    """Another."""

    name = "pebble"


def ran(*blocks, **options):
    """The record of a run of these blocks: (experiment, peer, jobs)."""
    run = Run([], "", 1, quick=False, machine={}, versions={})
    runner = Runner(run, Options(**options), Progress(Terminal(io.StringIO())), "tupelo-shm")
    runner.all_of([Block(name, peer, placement("free"), jobs, 1.0) for name, peer, jobs in blocks])
    return run


def job(name, once, **options):
    return Job({"cell": name}, once, **options)


def noting(stage):
    stage.note("figure", "", [stage.repeat])


def test_what_a_part_does_not_need_goes_to_those_that_follow():
    clock = Clock()
    budget = Budget(100.0, clock)
    budget.begin(4.0)
    first = budget.part(1.0)
    assert first.left_s == 25
    clock.now += 5
    assert first.left_s == 20
    assert budget.part(1.0).left_s == pytest.approx(95 / 3)
    assert budget.part(2.0).left_s == 95


def test_nobody_can_take_what_belongs_to_the_later_ones():
    clock = Clock()
    budget = Budget(100.0, clock)
    budget.begin(2.0)
    greedy = budget.part(1.0)
    assert greedy.cell_s(weight=1.0, left_weight=1.0) == 50
    clock.now += 50
    assert greedy.left_s == 0
    assert budget.part(1.0).left_s == 50


def test_a_cell_may_take_a_few_times_its_share_but_not_the_whole_part():
    budget = Budget(100.0, Clock())
    budget.begin(1.0)
    part = budget.part(1.0)
    assert part.cell_s(weight=1.0, left_weight=5.0) == pytest.approx(80)
    assert part.cell_s(weight=1.0, left_weight=1_000.0) == pytest.approx(50)
    assert part.cell_s(weight=1.0, left_weight=2.0) == 100


def test_a_cell_has_time_to_begin_also_where_little_is_left():
    clock = Clock()
    budget = Budget(10.0, clock)
    budget.begin(1.0)
    part = budget.part(1.0)
    clock.now += 4
    assert part.cell_s(weight=1.0, left_weight=1_000.0) == 5
    clock.now += 4
    assert part.cell_s(weight=1.0, left_weight=1_000.0) == 2


def test_when_the_time_of_a_peer_is_over_its_other_cells_are_not_tried():
    tried = []
    cells = [job(name, tried.append) for name in "ab"]
    run = ran(("e", Stone, cells), repeats=3, budget_s=0.1)
    assert tried == []
    assert {remark.text for remark in run.remarks} == {"not tried: the time of this peer was over"}


def test_without_a_budget_there_is_no_end():
    budget = Budget(None, Clock())
    budget.begin(1.0)
    assert budget.part(1.0).cell_s(1.0, 5.0) == FOREVER_S


def test_every_cell_is_repeated_as_often_as_was_asked_where_there_is_time():
    run = ran(("e", Stone, [job("a", noting), job("b", noting)]), repeats=5, budget_s=60.0)
    assert [measure.samples for measure in run.measures] == [[0, 1, 2, 3, 4]] * 2


def test_first_all_cells_are_repeated_as_often_as_needed_then_in_turn():
    order = []
    cells = [
        job(name, lambda stage, name=name: (order.append(name), noting(stage))) for name in "ab"
    ]
    ran(("e", Stone, cells), repeats=5, budget_s=60.0)
    assert "".join(order) == "aaa" + "bbb" + "ab" + "ab"


class Ours(Stone):
    """The one with which all are compared."""

    name = SharedSpace.name


def test_what_compares_with_nothing_is_not_repeated_more_often_than_needed(clock):
    """Where we were over budget: the time goes to the peers that follow. Else nothing is lost."""

    def stopped(_):
        raise OverBudgetError

    ours = [job("a", noting), job("b", stopped)]
    theirs = [job(name, lasting(clock, 1)) for name in ("a", "b", "only theirs")]
    run = ran(
        ("e", Ours, ours), ("e", Stone, theirs), ("other", Pebble, theirs),
        repeats=8, budget_s=3_000.0,
    )  # fmt: skip
    least = Options(budget_s=3_000.0).repeats_least
    assert [
        (measure.backend, measure.parameters["cell"], len(measure.samples))
        for measure in run.measures
    ] == [
        (Ours.name, "a", 8),
        ("stone", "a", 8), ("stone", "b", least), ("stone", "only theirs", 8),
        ("pebble", "a", 8), ("pebble", "b", 8), ("pebble", "only theirs", 8),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("budget_s", "least"), [(None, 5), (5_400.0, 5), (3_599.0, 4), (900.0, 4), (60.0, 3)]
)
def test_who_gives_a_run_its_time_gets_repeats_of_which_a_difference_can_be_told(budget_s, least):
    assert Options(budget_s=budget_s).repeats_least == least
    assert Options(budget_s=budget_s, repeats=2).repeats_least == 2
    assert can_tell(least, least) is (least > 3)
    order = []
    cells = [
        job(name, lambda stage, name=name: (order.append(name), noting(stage))) for name in "ab"
    ]
    ran(("e", Stone, cells), repeats=6, budget_s=budget_s)
    assert "".join(order) == "a" * least + "b" * least + "ab" * (6 - least)


def test_what_tells_more_comes_first_and_the_record_keeps_the_order_of_the_cells():
    order = []

    def once(stage):
        order.append(stage.parameters["cell"])
        noting(stage)

    cells = [job("late", once, rank=2), job("first", once), job("next", once, rank=1)]
    run = ran(("e", Stone, cells), repeats=1)
    assert order == ["first", "next", "late"]
    assert [m.parameters["cell"] for m in run.measures] == ["late", "first", "next"]


def test_a_cell_over_its_share_is_listed_and_larger_ones_of_its_family_are_not_tried():
    def stopped(_):
        raise OverBudgetError

    cells = [
        job("small", noting, family="f", weight=1.0),
        job("large", stopped, family="f", weight=2.0),
        job("larger", noting, family="f", weight=3.0),
        job("between", noting, family="f", weight=1.5),
        job("another", noting, family="g", weight=3.0),
    ]
    run = ran(("e", Stone, cells), repeats=3, budget_s=60.0)
    assert [m.parameters["cell"] for m in run.measures] == ["small", "between", "another"]
    assert [(r.parameters["cell"], r.why) for r in run.remarks] == [
        ("large", "over budget"),
        ("larger", "over budget"),
    ]
    assert "not tried: over budget at cell=large" in run.remarks[1].text


def test_a_cell_whose_repeats_will_not_fit_is_given_up_after_the_first(monkeypatch):
    calls = []
    plain = Turn._repeat  # noqa: SLF001

    def slow(stage):
        calls.append(stage.deadline)
        noting(stage)

    def repeat(turn, cell, deadline):
        done = plain(turn, cell, deadline)
        cell.longest_s = 30.0
        return done

    monkeypatch.setattr(Turn, "_repeat", repeat)
    run = ran(("e", Stone, [job("slow", slow)]), budget_s=60.0)
    assert len(calls) == 1
    assert run.measures == []
    assert "2 more are needed, and 60 s of its share are left" in run.remarks[0].text


@pytest.fixture
def clock(monkeypatch):
    """The clock of the budget and of the turns, which a test moves."""
    moved = Clock()
    monkeypatch.setattr(blocks, "Budget", lambda total_s: Budget(total_s, moved))
    return moved


def lasting(clock, seconds, tried=None):
    """A repeat that takes so long."""

    def once(stage):
        clock.now += seconds
        if tried is not None:
            tried.append(stage.parameters["cell"])
        noting(stage)

    return once


@pytest.mark.parametrize(("repeat_s", "samples"), [(20, 5), (21, 4), (25, 4), (26, 3), (33, 3)])
def test_a_cell_whose_share_suffices_for_fewer_repeats_has_those(
    clock, monkeypatch, repeat_s, samples
):
    monkeypatch.setattr(Options, "repeats_least", 5)
    run = ran(("e", Stone, [job("a", lasting(clock, repeat_s))]), budget_s=100.0)
    assert [len(measure.samples) for measure in run.measures] == [samples]
    assert can_tell(samples, 5)


def test_a_cell_whose_share_does_not_suffice_for_three_repeats_has_none(clock):
    run = ran(("e", Stone, [job("a", lasting(clock, 34))]), budget_s=100.0)
    assert run.measures == []
    assert run.remarks[0].text == (
        "a repeat takes 34.0 s, 2 more are needed, and 66 s of its share are left"
    )


def test_what_can_not_be_done_leaves_its_time_to_those_in_turns_with_it(clock):
    deadlines = []

    def once(stage):
        deadlines.append(stage.deadline - clock.now)
        noting(stage)

    cells = [
        job("heavy", once, weight=90.0, in_turns="t", lack="it can not"),
        job("light", once, in_turns="t"),
    ]
    ran(("e", Stone, cells), repeats=1, budget_s=100.0)
    assert deadlines == [100]


def test_a_cell_that_is_stopped_keeps_its_repeats_if_they_are_enough():
    def stopped(at):
        def once(stage):
            if stage.repeat == at:
                raise OverBudgetError
            noting(stage)

        return once

    cells = [job("early", stopped(2), family="e"), job("late", stopped(3), family="l")]
    run = ran(("e", Stone, cells), repeats=5, budget_s=5_000.0)
    assert [(m.parameters["cell"], m.samples) for m in run.measures] == [("late", [0, 1, 2])]
    assert "stopped in repeat 3 of 5" in run.remarks[0].text
    assert run.remarks[1].text == (
        "repeat 4 was stopped after 0.0 s; the 3 before count, of up to 0.0 s each"
    )
    assert [remark.parameters["cell"] for remark in run.left_out] == ["early"]
    assert not run.failures


@pytest.mark.parametrize("hangs_at", [0, 1, 2, 3, 8])
@pytest.mark.parametrize(("lasts_s", "is_long"), [(19.0, False), (21.0, True)])
def test_a_repeat_that_hangs_where_others_were_done_soon_is_a_failure(
    clock, hangs_at, lasts_s, is_long
):
    """Of the first one of a large size nobody can say more than that it is over its share."""
    fails = is_long and hangs_at > 0

    def once(stage):
        hangs = stage.repeat == hangs_at
        clock.now += lasts_s if hangs else 5.0
        if hangs:
            raise OverBudgetError
        noting(stage)

    run = ran(("e", Stone, [job("a", once)]), budget_s=1_000.0)
    assert [remark.why for remark in run.remarks] == [
        "failed" if fails else "over budget" if hangs_at < 3 else "repeat stopped"
    ]
    assert [len(measure.samples) for measure in run.measures] == (
        [hangs_at] if hangs_at >= 3 and not fails else []
    )
    if fails:
        assert run.failures[0].text == (
            f"repeat {hangs_at + 1} was stopped after 21.0 s;"
            f" none of the {hangs_at} before took more than 5.0 s"
        )


@pytest.mark.parametrize("budget_s", [1.0, 180.0, None])
@pytest.mark.parametrize("hangs_at", [0, 1])
def test_a_repeat_of_the_smallest_sizes_that_hangs_is_a_failure_whatever_the_budget(
    clock, monkeypatch, budget_s, hangs_at
):
    """Also the first of all, beside which there are no others, and in a run without an end."""
    monkeypatch.setattr(turn, "QUICK_MOST_S", 1.0)

    def once(stage):
        stage.deadline += time.monotonic() - clock.now  # it is one of the clock that a test moves
        if stage.repeat == hangs_at:
            stage.run((waits_in_vain, ()))
        noting(stage)

    cells = [job("a", once), job("b", noting)]
    run = ran(("e", Stone, cells), quick=True, repeats=2, budget_s=budget_s)
    assert [(remark.parameters["cell"], remark.why) for remark in run.remarks] == [("a", "failed")]
    assert "somebody waits in vain" in run.failures[0].text
    assert [measure.parameters["cell"] for measure in run.measures] == ["b"]


def waits_in_vain(_bench):
    """Wait for what never happens, in a process of its own."""
    threading.Event().wait()


def test_a_repeat_of_the_smallest_sizes_has_the_same_time_on_any_machine(clock):
    """One that is slow takes more than its share, which those that follow lack: they are listed."""
    left_s = []

    def slow(stage):
        left_s.append(stage.deadline - clock.now)
        clock.now += 59.0
        noting(stage)

    cells = [job("a", slow), job("b", noting)]
    run = ran(("e", Stone, cells), quick=True, repeats=1, budget_s=3.0)
    assert left_s == [60.0]
    assert [measure.parameters["cell"] for measure in run.measures] == ["a"]
    assert [remark.text for remark in run.remarks] == ["not tried: the time of this peer was over"]
    assert run.failures == []


def test_a_repeat_that_a_busy_machine_held_up_for_seconds_does_not_hang(clock):
    def once(stage):
        clock.now += 4.9 if stage.repeat == 4 else 0.1
        if stage.repeat == 4:
            raise OverBudgetError
        noting(stage)

    run = ran(("e", Stone, [job("a", once)]), budget_s=1_000.0)
    assert [remark.why for remark in run.remarks] == ["repeat stopped"]
    assert run.left_out == []  # no cell is missing


def test_cells_that_are_compared_are_repeated_in_turns():
    order = []
    cells = [
        job(name, lambda stage, name=name: (order.append(name), noting(stage)), **options)
        for name, options in {
            "x": {"rank": 2},
            "a": {"in_turns": "t"},
            "y": {},
            "b": {"in_turns": "t", "rank": 1},
        }.items()
    ]
    ran(("e", Stone, cells), repeats=3, budget_s=60.0)
    assert "".join(order) == "ababab" + "yyy" + "xxx"


def test_among_cells_in_turns_those_go_on_that_there_is_time_for_in_the_order_of_what_they_tell(
    clock,
):
    tried = []
    options = {"family": "f", "in_turns": "t"}
    cells = [
        job("larger", lasting(clock, 6, tried), rank=1, weight=3.0, **options),
        job("large", lasting(clock, 15, tried), rank=1, weight=2.0, **options),
        job("small", lasting(clock, 6, tried), weight=1.0, **options),
    ]
    run = ran(("e", Stone, cells), repeats=3, budget_s=60.0)
    # After the first of each 33 s are left: the small needs 12 of them, the large one 30.
    assert tried == ["small", "larger", "large"] + ["small", "larger"] * 2
    assert {m.parameters["cell"]: m.samples for m in run.measures} == {
        "small": [0, 1, 2],
        "larger": [0, 1, 2],
    }
    assert [(r.parameters["cell"], r.why) for r in run.remarks] == [("large", "over budget")]


def test_the_first_repeat_of_a_cell_can_not_take_the_time_of_those_in_turns_with_it(clock):
    deadlines = []

    def once(stage):
        deadlines.append(stage.deadline - clock.now)
        noting(stage)

    cells = [job(name, once, in_turns="t") for name in "abcdefghij"]
    ran(("e", Stone, cells), repeats=2, budget_s=100.0)
    assert deadlines[0] == 50
    assert deadlines[10] == 100


@pytest.mark.parametrize("bad_repeat", [0, 4])
def test_a_wrong_result_in_any_repeat_takes_the_whole_cell_out(bad_repeat):
    def once(stage):
        if stage.repeat == bad_repeat:
            message = "two and two are five"
            raise WrongResultError(message)
        noting(stage)

    run = ran(("e", Stone, [job("a", once), job("b", noting)]), repeats=5)
    assert [m.parameters["cell"] for m in run.measures] == ["b"]
    assert [(r.why, r.text) for r in run.failures] == [("wrong result", "two and two are five")]


def test_repeats_have_seeds_of_their_own_and_their_samples_are_kept_apart():
    seeds = []

    def once(stage):
        seeds.append(stage.seed)
        stage.note("figure", "s", [1.0, 3.0])

    (measure,) = ran(("e", Stone, [job("a", once)]), repeats=3, seed=7).measures
    assert seeds == [7_000, 7_001, 7_002]
    assert measure.samples == [1.0, 3.0] * 3
    assert measure.groups == [2, 2, 2]
    assert measure.independent == [2.0, 2.0, 2.0]


def test_every_peer_gets_its_time_and_what_was_spent_is_recorded():
    run = ran(
        ("e", Stone, [job("a", noting)]), ("e", Pebble, [job("a", noting)]),
        repeats=1, budget_s=60.0,
    )  # fmt: skip
    assert [m.backend for m in run.measures] == ["stone", "pebble"]
    assert set(run.spent_s["e"]) == {"stone", "pebble"}
    assert run.placements["e"][0].startswith("free: all on")


class Brick(Backend):
    """A backend whose server is gone when it is to drop its spaces."""

    name = "brick"
    title = "a brick"
    open = None

    def drop(self):
        raise ConnectionRefusedError


def test_what_cleaning_up_says_hides_neither_a_stop_nor_a_failure():
    def stopped(_stage):
        raise KeyboardInterrupt

    def wrong(_stage):
        raise WrongResultError

    with pytest.raises(KeyboardInterrupt):
        ran(("walls", Brick, [job("one", stopped)]))
    assert [remark.why for remark in ran(("walls", Brick, [job("one", wrong)])).remarks] == [
        "wrong result"
    ]


class Wreck(Brick):
    """A backend whose client says in its own way that the server is gone."""

    def create(self, *_):
        message = "the connection is closed"
        raise RuntimeError(message)


class Unnamed(Stone):
    """A peer that can not say its version."""

    @classmethod
    def version(cls):
        message = "what version?"
        raise RuntimeError(message)


@pytest.mark.parametrize(
    ("peer", "text"),
    [
        (Wreck, "RuntimeError: the connection is closed"),
        (Unnamed, "RuntimeError: what version?"),
    ],
)
def test_whatever_a_peer_raises_is_its_own_failure_and_the_others_go_on(peer, text):
    run = ran(("sea", peer, [job("one", noting)]), ("sea", Pebble, [job("two", noting)]))
    assert [(failure.why, failure.text) for failure in run.failures] == [("failed", text)]
    assert [measure.backend for measure in run.measures] == ["pebble"]


class Absent(Stone):
    """A peer that is not here."""

    how_to_install = f"mvn -f {PACKAGES[0]}/pom.xml {PACKAGES[1]}/tupelo"

    @classmethod
    def missing(cls):
        return "no stone"


def test_who_is_not_installed_is_told_once_with_a_path_that_is_there_and_recorded_without(capsys):
    run = Run([], "", 1, quick=False, machine={}, versions={})
    runner = Runner(run, Options(), Progress(Terminal(sys.stdout)), "tupelo-shm")
    runner.all_of([Block("one", Absent, placement(p), [], 1.0) for p in ("apart", "together")])
    assert [remark.text for remark in run.remarks] == ["no stone: mvn -f pom.xml tupelo"]
    shown = f"not installed: no stone: {Absent.how_to_install}"
    assert capsys.readouterr().out.count(shown) == 1
