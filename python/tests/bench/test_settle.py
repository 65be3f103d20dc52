"""`bench settle`: the knee, and the workloads that age a space."""

import json
from collections import Counter

import pytest

from tupelo.bench.backends.manager import Manager
from tupelo.bench.backends.sqlite import SQLite
from tupelo.bench.experiments.settle import CLIENTS, Load, Plan, Settle, check, check_empty, knee
from tupelo.bench.experiments.workload import (
    KINDS,
    Workload,
    fields_of,
    generated,
    recorded,
    seed_of,
)
from tupelo.bench.harness.placement import placement
from tupelo.bench.harness.runner import Options, Stage, started
from tupelo.bench.harness.workers import WrongResultError


def test_the_knee_is_where_throughput_no_longer_rises_and_the_response_time_does():
    assert knee([(2, 100, 1.0), (8, 400, 1.1), (14, 405, 2.0), (22, 390, 4.0)]) == 8


def test_there_is_no_knee_while_throughput_rises():
    assert knee([(2, 100, 1.0), (8, 400, 2.0), (14, 700, 3.0), (22, 1_100, 4.0)]) is None


def test_there_is_no_knee_where_the_response_time_stays():
    assert knee([(2, 100, 1.0), (8, 100, 1.0), (14, 100, 1.0)]) is None


def test_a_generated_workload_has_the_frequencies_that_were_asked_for():
    workload = generated(4_000, 1, {"read": 1, "take": 1, "write": 2}, {"Null": 3, "File": 1})
    operations = [operation for operation, _ in workload]
    kinds = [kind for _, kind in workload]
    assert len(workload) == 4_000
    assert operations.count("write") == pytest.approx(2_000, rel=0.1)
    assert kinds.count("File") == pytest.approx(1_000, rel=0.1)
    assert generated(100, 1) == generated(100, 1) != generated(100, 2)


def test_the_papers_own_workload_only_writes():
    assert generated(1_000, 1).left() == 1_000


def test_what_is_left_counts_takes_that_found_something():
    workload = Workload((("take", "Null"), ("write", "Null"), ("write", "File"), ("take", "File")))
    assert workload.left() == 1


def test_a_recorded_history_is_a_workload(tmp_path):
    path = tmp_path / "run.jsonl"
    events = [
        {"verb": "put", "kinds": ["str", "int"]},
        {"verb": "put", "kinds": ["str", "array"]},
        {"verb": "take", "kinds": ["str", "bytes"]},
        {"verb": "count", "kinds": ["str"]},
        {"verb": "read", "kinds": ["str", "str"]},
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert list(recorded(path)) == [
        ("write", "Null"),
        ("write", "Array"),
        ("take", "File"),
        ("read", "String"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_tells_from_what_it_was_made(kind):
    expected = 0 if kind == "Null" else 17
    assert seed_of(Manager(), kind, fields_of(Manager(), kind, 17)) == expected


def test_clients_that_take_what_they_put_together_are_right():
    plan = Plan("String", 2, quick=True)
    check(plan, 3, [Counter({0: 1, 1: 2}), Counter({0: 2, 1: 1})], left=0)


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ([Counter({0: 3}), Counter({0: 1, 1: 2})], 0),  # one twice, and one lost
        ([Counter({0: 3}), Counter({1: 2})], 0),
        ([Counter({0: 3}), Counter({1: 3})], 1),
    ],
)
def test_a_tuple_that_came_twice_or_never_is_a_wrong_result(taken, left):
    with pytest.raises(WrongResultError):
        check(Plan("String", 2, quick=True), 3, taken, left)


def test_in_an_aged_space_any_tuple_of_the_kind_may_be_taken():
    workload = Workload((("write", "String"),))
    plan = Plan("String", 1, quick=True, workload=workload)
    check(plan, 3, [Counter({0: 2, 1_000: 1})], left=1)


def test_the_amount_of_work_is_found_once_for_all_cells_of_a_peer():
    plans = [job.once.keywords["plan"] for job in Settle().jobs(SQLite, Options())]
    overlapping = [plan for plan in plans if plan.load is not None]
    assert {plan.clients for plan in overlapping} == set(CLIENTS)
    assert len({id(plan.load) for plan in overlapping}) == 1
    load = Load(phase_s=0.01, objects_max=5_000)
    with started(SQLite) as peer:
        peer.create(Settle().jobs(SQLite, Options())[0].schema, ("settle",), 1 << 20)
        stage = Stage(peer, {}, placement("free"), 1, 0, quick=True, deadline=None)
        load.find(stage)
        found = load.objects
        load.phase_s = 10.0
        load.find(stage)
        peer.drop()
    assert 200 <= found == load.objects


@pytest.mark.parametrize(("minutes", "phase_s"), [(None, 1.0), (300, 1.0), (90, 0.3), (1, 0.05)])
def test_a_run_with_less_time_has_shorter_phases(minutes, phase_s):
    options = Options(budget_s=None if minutes is None else 60.0 * minutes)
    plans = [job.once.keywords["plan"] for job in Settle().jobs(SQLite, options)]
    assert {round(plan.load.phase_s, 6) for plan in plans if plan.load} == {phase_s}


def test_the_knee_is_looked_for_before_anything_else():
    jobs = Settle().jobs(SQLite, Options())
    first = [job.parameters for job in jobs if job.rank == 0]
    assert [p["clients"] for p in first] == [2, 8, 22]
    assert {p["series"] for p in first} == {"overlapping"}


def test_an_empty_entry_that_is_not_what_was_put_is_refused():
    check_empty(("Null",), [("Null",), ["Null"]])
    with pytest.raises(WrongResultError, match="'Nil'"):
        check_empty(("Null",), [("Null",), ("Nil",)])
