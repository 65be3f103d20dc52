"""`bench settle`: the knee, and the workloads that age a space."""

import json
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from records import run_of

from tupelo_bench.backends.base import Backend, Schema
from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.manager import Manager
from tupelo_bench.backends.queue import Queue
from tupelo_bench.backends.redis import Redis
from tupelo_bench.backends.registry import PEERS
from tupelo_bench.backends.space import SharedSpace
from tupelo_bench.backends.sqlite import SQLite
from tupelo_bench.experiments.settle import (
    CLIENTS_AGED,
    CLIENTS_TOGETHER,
    Settle,
    job,
    phases,
    windows,
)
from tupelo_bench.experiments.settle.aging import (
    PRINTED_WORKLOAD,
    WORKLOADS,
    against_fresh,
    age,
    not_aged,
)
from tupelo_bench.experiments.settle.clients import check, client
from tupelo_bench.experiments.settle.knee import knee, knee_of
from tupelo_bench.experiments.settle.phases import check_whole
from tupelo_bench.experiments.settle.plan import Part, Plan
from tupelo_bench.experiments.workload import (
    ENTRIES,
    FILE_BYTES,
    KINDS,
    Entry,
    Workload,
    fields_of,
    generated,
    recorded,
    seed_of,
    template_of,
)
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.record import Measure, Run
from tupelo_bench.harness.workers import Bench, WrongResultError
from tupelo_bench.runner import Options, Stage, started


class Pile:
    """A backend of one space, which counts what it was asked."""

    def __init__(self):
        self.puts = self.takes = self.waits = 0

    def open(self, _):
        return self

    def array_kind(self):
        return bytes

    def close(self):
        pass

    def put(self, *_):
        self.puts += 1

    def take(self, *template):
        self.takes += 1
        return template

    def wait(self):
        self.waits += 1


def test_what_is_compared_with_each_other_is_repeated_in_turns():
    groups = {}
    for each in Settle().jobs(Redis, Options()):
        if each.in_turns:
            groups.setdefault(each.in_turns, []).append(each.parameters)
    assert [cell["clients"] for cell in groups.pop("all at once")] == list(CLIENTS_TOGETHER)
    assert len(groups) == 2 * len(KINDS) * 2
    for cells in groups.values():
        # A new space is one of them, and what was aged as in the paper is the next.
        assert [cell["aged by"] for cell in cells] == [0, 3_000, 1_000, 6_000, 12_000]
        assert len({(cell["series"], cell["entry"], cell["clients"]) for cell in cells}) == 1


def test_an_aged_space_is_compared_with_the_new_one_that_was_measured_in_turns_with_it():
    run = Run([], "", 1, quick=False, machine={}, versions={})
    for series, aged_by, seconds in (
        ("paper", None, 9.0), ("paper aged", 0, 1.0), ("paper aged", 3_000, 1.5),
    ):  # fmt: skip
        cell = {"series": series, "entry": "Null", "clients": 8}
        cell |= {} if aged_by is None else {"aged by": aged_by}
        run.measures.append(Measure("settle", "redis", cell, "response time", "s", [seconds]))
    ((fresh, aged),) = against_fresh(run, "response time", "paper aged")
    assert (fresh.samples, aged.samples) == ([1.0], [1.5])
    assert not_aged(run, "response time", {"series": "paper aged"}) == []
    del run.measures[1]
    ((fresh, _),) = against_fresh(run, "response time", "paper aged")
    assert fresh.samples == [9.0]
    (copied,) = not_aged(run, "response time", {"series": "paper aged"})
    assert copied.parameters["aged by"] == 0


def test_the_knee_is_where_throughput_no_longer_rises_and_the_response_time_does():
    assert knee([(2, 100, 1.0), (8, 400, 1.1), (14, 405, 2.0), (22, 390, 4.0)]) == 8


def test_there_is_no_knee_while_throughput_rises():
    assert knee([(2, 100, 1.0), (8, 400, 2.0), (14, 700, 3.0), (22, 1_100, 4.0)]) is None


def test_there_is_no_knee_where_the_response_time_stays():
    assert knee([(2, 100, 1.0), (8, 100, 1.0), (14, 100, 1.0)]) is None


def test_a_knee_of_few_points_or_of_the_last_one_alone_is_doubted():
    sure = knee_of([(2, 100, 1.0), (8, 400, 1.1), (14, 405, 2.0), (22, 390, 4.0)])
    assert (sure.clients, sure.points, sure.doubts) == (8, 4, [])
    by_last = knee_of([(2, 100, 1.0), (8, 400, 1.1), (14, 500, 2.0), (22, 390, 4.0)])
    assert by_last.clients == 14
    assert by_last.doubts == ["gone without the last point"]
    moved = knee_of([(2, 100, 1.0), (8, 102, 2.0), (14, 103, 3.0), (22, 107, 4.0)])
    assert (moved.clients, moved.doubts) == (8, ["at 2 without the last point"])
    few = knee_of([(2, 100, 1.0), (8, 60, 6.0)])
    assert few.doubts == ["2 points only", "gone without the last point"]


def test_the_report_says_what_a_knee_rests_on():
    def measure(metric, clients, value):
        parameters = {"series": "all at once", "entry": "Null", "clients": clients}
        return Measure("settle", "redis", parameters, metric, "s", [value])

    curve = ((2, 100.0, 1.0), (8, 60.0, 6.0))
    run = Run([], "", 1, quick=False, machine={}, versions={})
    for clients, throughput, response_s in curve:
        run.measures += [
            measure("throughput", clients, throughput),
            measure("response time", clients, response_s),
            measure("shortest window of a client", clients, clients / 10),
        ]
    knees = Settle().printed(run)[0]
    (row,) = knees.rows
    assert row[2:4] == ("2", "2 points only; gone without the last point")
    assert row[-1] == "200 ms"
    found = {m.metric: m.samples for m in Settle().derive(run)}
    assert found == {"knee": [2], "points of the knee": [2]}


def test_a_generated_workload_has_the_frequencies_that_were_asked_for():
    workload = generated(4_000, 1, {"read": 1, "take": 1, "write": 2}, {"Null": 3, "File": 1})
    operations = [operation for operation, _ in workload]
    kinds = [entry.tag for _, entry in workload]
    assert len(workload) == 4_000
    assert operations.count("write") == pytest.approx(2_000, rel=0.1)
    assert kinds.count("File") == pytest.approx(1_000, rel=0.1)
    assert generated(100, 1) == generated(100, 1) != generated(100, 2)


def test_the_papers_own_workload_only_writes():
    assert generated(1_000, 1).left() == 1_000


def test_what_is_left_counts_takes_that_found_something():
    null, file = ENTRIES["Null"], ENTRIES["File"]
    workload = Workload((("take", null), ("write", null), ("write", file), ("take", file)))
    assert workload.left() == 1


def test_a_recorded_history_is_a_workload(tmp_path):
    path = tmp_path / "run.jsonl"
    events = [
        {"verb": "put", "kinds": ["str", "int"]},
        {"verb": "put", "kinds": ["str", "array"]},
        {"verb": "take", "kinds": ["str", "bytes"]},
        {"verb": "count", "kinds": ["str"]},
        {"verb": "read", "kinds": ["str", "str", "null", "bool"]},
        {"verb": "put", "kinds": ["int", "float"]},
        {"verb": "put", "kinds": ["other"]},
    ]
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    workload = recorded(path)
    assert [(operation, entry.types) for operation, entry in workload] == [
        ("write", ("int",)),
        ("write", ("array",)),
        ("take", ("bytes",)),
        ("read", ("str", "null", "bool")),
        ("write", ("int", "float")),
        ("write", ()),
    ]
    assert len({entry.tag for _, entry in workload}) == len(workload)
    assert set(ENTRIES.values()) < set(workload.entries)


TYPED = Entry("recorded all", ("null", "bool", "int", "float", "str", "bytes", "array"))


def test_a_space_has_room_for_all_fields_of_a_recorded_workload():
    wide = Entry("recorded wide", ("bytes",) * 60)
    plan = Plan("Null", 1, quick=True, workload=Workload((("write", wide), ("take", wide)) * 100))
    least_bytes = 100 * 60 * FILE_BYTES
    assert job("paper aged", plan).size_bytes > least_bytes


def replay(bench, backend, workload):
    """What a workload of such entries leaves, and the numbers in their arrays."""
    bench.start.wait()
    space = backend.open("settle")
    workload.run(backend, space)
    template = template_of(backend, TYPED)
    left = list(iter(lambda: space.try_take(*template), None))
    space.close()
    return left, [backend.numbers(each[-1], "f8").tolist() for each in left]


@pytest.mark.parametrize("peer_type", [peer for peer in PEERS if issubclass(peer, Backend)])
def test_every_peer_ages_by_fields_of_all_types_that_a_record_has(peer_type):
    if peer_type.missing():
        # Which peers are installed is up to the machine; the suite says so of each, too.
        pytest.skip(f"{peer_type.name}: {peer_type.missing()}")
    workload = Workload((*[("write", TYPED)] * 5, ("read", TYPED), ("take", TYPED)))
    schema = Schema(tuple(entry.shape for entry in workload.entries), outlive=True)
    with started(peer_type) as peer:
        if why := peer.lacks(schema):
            # It takes no part in `settle`, as the results say: multiprocessing.Queue.
            pytest.skip(f"{peer_type.name}: {why}")
        peer.create(schema, ("settle",), 1 << 20)
        stage = Stage(peer, {}, placement("free"), 1, 0, quick=True, deadline=None)
        (((values, numbers),), _) = stage.run((replay, (peer, workload)))
        peer.drop()
    assert len(values) == workload.left() == 4
    seeds = [found[3] for found in values]
    for seed, found, array in zip(seeds, values, numbers, strict=True):
        assert found[:5] == (TYPED.tag, None, seed % 2 == 1, seed, float(seed))
        assert [*map(type, found[2:5])] == [bool, int, float]
        assert int(found[5]) == seed
        assert int.from_bytes(found[6][:8], "little") == seed
        assert array == [float(seed)] * 256
    assert len(set(seeds)) == 4, "same types, different values"


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_tells_from_what_it_was_made(kind):
    expected = 0 if kind == "Null" else 17
    entry = ENTRIES[kind]
    assert seed_of(Manager(), entry, fields_of(Manager(), entry, 17)) == expected


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
    workload = Workload((("write", ENTRIES["String"]),))
    plan = Plan("String", 1, quick=True, workload=workload)
    check(plan, 3, [Counter({0: 2, 1_000: 1})], left=1)


def test_an_aged_run_has_the_papers_objects_too_beside_which_the_workload_is_not_little():
    jobs = Settle().jobs(SQLite, Options())
    aged = [j for j in jobs if j.parameters["series"] == "paper aged"]
    assert {
        tuple(j.parameters[name] for name in ("entry", "clients", "aged by")) for j in aged
    } == {*product(KINDS, CLIENTS_AGED, (0, *WORKLOADS))}
    stage = Stage(SQLite(), {}, placement("free"), 1, 0, quick=False, deadline=None)
    for each in aged:
        parts = each.once.keywords["plan"].parts(stage)
        is_aged = each.parameters["aged by"] > 0
        assert {(part.objects, part.aged) for part in parts} == {(1_000, is_aged)}
        # As many before, also in the new space that it is compared with.
        assert {part.warm_up for part in parts} == {1_000}


class Written(Pile):
    """A backend, and the start of all clients, that writes down what happens."""

    def __init__(self):
        super().__init__()
        self.verbs = []

    def array(self, numbers):
        return numbers

    def put(self, *_):
        self.verbs.append("put")

    def take(self, *template):
        self.verbs.append("take")
        return template

    def wait(self):
        self.verbs.append("wait")


def test_a_space_is_aged_when_its_clients_are_warm_and_before_they_begin():
    aged, used = Written(), Written()
    age(Bench(1, Profiler(), aged), aged, Workload((("write", ENTRIES["Null"]),)), 0)
    client(Bench(0, Profiler(), used), used, Part("Null", 1, 0.0, 0.0, 1, aged=True))
    assert used.verbs == ["wait", "put", "take", "wait", "wait", "put", "take"]
    assert aged.verbs == ["wait", "wait", "put", "wait"]


def test_all_clients_and_whoever_ages_their_space_come_to_the_same_barriers():
    aged, used = Written(), Written()
    workload = Workload((("write", ENTRIES["Null"]),))
    age(Bench(1, Profiler(), aged), aged, workload, windows.BARRIERS)
    part = windows.WindowPart("Null", 60.0, 1, 60.0, 0, aged=True)
    windows.client(Bench(0, Profiler(), used), used, part)
    assert used.verbs.count("wait") == aged.verbs.count("wait") == 3 + windows.BARRIERS
    # A window ends where the bound is reached, here with one object. As many more are put then.
    warm = ["wait", "put", "take", "wait", "wait"]
    assert used.verbs == [*warm, "wait", "put", "wait", "put", "wait", "take", "take", "wait"]


@pytest.mark.parametrize("kind", KINDS)
def test_clients_that_are_active_at_once_take_all_that_they_put_and_clean_what_was_there(kind):
    workload = Workload((("write", ENTRIES["File"]),) * 3)
    plan = Plan(kind, 2, quick=True, workload=workload)
    with started(SQLite) as peer:
        peer.create(job("all at once, aged", plan).schema, ("settle",), 1 << 20)
        stage = Stage(peer, {}, placement("free"), 1, 0, quick=True, deadline=None)
        windows.once(stage, plan)
        peer.drop()
    noted = {note.metric: note.samples for note in stage.noted}
    assert 1 <= len(noted["response time"]) <= 2
    assert min(*noted["aging"], *noted["cleaning"]) > 0
    assert noted["shortest window of a client"][0] > 0


def test_all_systems_have_the_same_windows_and_the_same_numbers_of_clients():
    """[SETTLE]: the load is what differs between the points of a curve, not between systems."""
    cells = {}
    for peer_type in (SharedSpace, SQLite, Redis, JavaSpaces):
        for each in Settle().jobs(peer_type, Options()):
            if each.parameters["series"] == "all at once":
                plan = each.once.keywords["plan"]
                part = windows.window_part(plan, peer_type())
                cell = (plan.kind, plan.clients, part.length_s, part.objects_max)
                cells.setdefault(peer_type, []).append(cell)
    assert cells[SharedSpace] == cells[SQLite] == cells[Redis] == cells[JavaSpaces]
    assert {length_s for _, _, length_s, _ in cells[Redis]} == {1.0}
    counts = {clients for _, clients, *_ in cells[Redis]}
    assert counts == set(CLIENTS_TOGETHER) == {1, 2, 4, 8, 14, 22}


def test_what_is_there_at_any_moment_is_bounded_however_many_clients_put():
    for kind, clients in product(KINDS, CLIENTS_TOGETHER):
        plan = Plan(kind, clients, quick=False)
        part = windows.window_part(plan, SQLite())
        # What a client wrote in a window, and as much more for the takes.
        assert 2 * part.objects_max * clients <= windows.stock_max(plan)


def test_the_window_of_a_client_ends_with_its_time():
    calls = []
    window = windows.until(0.01, 10**9, lambda count: calls.append(count) or time.sleep(4e-3))
    assert window.done == sum(calls)
    assert window.length_s >= 0.01
    assert window.is_long
    assert 1 <= len(calls) <= 3
    bounded = windows.until(60.0, 250, calls.append)
    assert (bounded.done, bounded.is_long) == (250, False)


def window(done, length_s=1.0, begin_s=0.0, *, is_long=True):
    return windows.Window(done, begin_s, begin_s + length_s, is_long)


def test_a_response_time_is_that_of_a_thousand_objects_for_all_systems():
    fast = windows.Done(window(50_000), window(100_000), 100_000)
    slow = windows.Done(window(500), window(250), 1_000)
    assert fast.response_s == pytest.approx(0.020 + 0.010)
    assert slow.response_s == pytest.approx(2.0 + 4.0)
    assert (fast.operations_per_s, slow.operations_per_s) == (75_000, 375)
    assert windows.throughput([fast, slow]) == 75_375
    assert windows.response_s([fast, slow]) == [fast.response_s, slow.response_s]


def test_clients_whose_windows_are_short_are_not_taken_for_active_at_once():
    """Two clients that come one after the other do not do twice as much as one."""
    clients = [
        windows.Done(
            window(1_000, 0.01, begin_s, is_long=False),
            window(1_000, 0.01, begin_s, is_long=False),
            2_000,
        )
        for begin_s in (5.0, 5.01)
    ]
    assert sum(each.operations_per_s for each in clients) == pytest.approx(200_000)
    assert windows.throughput(clients) == pytest.approx(100_000)
    # Each of two clients is busy all the time: a thousand of its objects take twice as long.
    assert windows.response_s(clients) == [pytest.approx(2 * 2 * 0.01)]


@pytest.mark.parametrize(("lost", "left"), [(1, 0), (0, 1)])
def test_objects_that_are_lost_or_left_in_windows_are_a_wrong_result(lost, left):
    done = windows.Done(window(10), window(5), taken_in_all=20 - lost)
    windows.check(Plan("Null", 1, quick=True), [replace(done, taken_in_all=20)], 0)
    with pytest.raises(WrongResultError):
        windows.check(Plan("Null", 1, quick=True), [done], left)


def test_what_warms_up_is_not_timed():
    pile = Pile()
    bench = Bench(0, Profiler(), pile)
    _, _, taken = client(bench, pile, Part("Null", 30, 0.0, 0.0, 25, aged=False))
    assert pile.puts == pile.takes == 30 + 25
    assert taken == {0: 30}
    assert bench.profiler.tracks["phase"].total_operations == 2 * 30
    assert pile.waits == 2  # nobody begins while others warm up


def test_what_compiles_as_it_runs_is_warm_before_its_windows():
    pile = Pile()
    part = windows.WindowPart("Null", 60.0, 10, 0.0, 2_500, aged=False)
    done = windows.client(Bench(0, Profiler(), pile), pile, part)
    assert pile.puts == pile.takes == 2_500 + 2 * done.write.done
    plan = Plan("Null", 2, quick=False)
    assert windows.window_part(plan, JavaSpaces()).warm_objects == JavaSpaces.warm_up // 2 > 1_000


@pytest.mark.parametrize(("lacking", "is_right"), [(0, True), (1, False)])
def test_what_a_client_has_taken_is_counted(monkeypatch, lacking, is_right):
    """An answer with one less is found, in both series."""

    def take_each(_, templates):
        return 0, templates[lacking:]

    monkeypatch.setattr(phases, "take_each", take_each)
    pile = Pile()
    part = Part("Null", 30, 0.0, 0.0, 0, aged=False)
    _, _, taken = client(Bench(0, Profiler(), pile), pile, part)
    window = windows.WindowPart("Null", 60.0, 10, 0.0, 0, aged=False)
    done = windows.client(Bench(0, Profiler(), pile), pile, window)
    plan = Plan("Null", 1, quick=True)
    with nullcontext() if is_right else pytest.raises(WrongResultError, match="were taken"):
        check(plan, 30, [taken], left=0)
    with nullcontext() if is_right else pytest.raises(WrongResultError, match="and took"):
        windows.check(plan, [done], left=0)


@pytest.mark.parametrize(("peer_type", "objects"), [(SQLite, 1_000), (JavaSpaces, 2_500)])
def test_with_the_delays_of_the_paper_too_what_compiles_as_it_runs_is_warm(peer_type, objects):
    stage = Stage(peer_type(), {}, placement("free"), 1, 0, quick=False, deadline=None)
    parts = Plan("Null", 2, quick=False).parts(stage)
    assert {(part.warm_up, part.objects) for part in parts} == {(objects, 1_000)}


def test_a_queue_whose_puts_end_in_the_putting_process_takes_no_part_and_the_figures_say_so():
    """A window of writing would time a list of the client's own."""
    assert Queue not in Settle().peers(PEERS)
    assert {SharedSpace, SQLite, Redis} <= set(Settle().peers(PEERS))
    cell = {"series": "all at once", "entry": "Null", "clients": 2}
    figures = {
        backend: Settle().figures(
            Run([], "", 1, quick=False, machine={}, versions={}, measures=[
                Measure("settle", backend, cell, "throughput", "operations/s", [1.0])
            ])
        )
        for backend in ("sqlite", "mp-queue")
    }  # fmt: skip
    left_out = "multiprocessing.Queue is left out"
    by_clients = [figure for figure in figures["sqlite"] if figure.x_label == "clients"]
    assert by_clients
    assert all(figure.note.startswith(left_out) for figure in by_clients)
    assert not any(left_out in figure.note for figure in figures["mp-queue"])  # an older record


def test_to_age_and_to_clean_a_space_stand_beside_each_other_in_a_figure():
    cell = {"series": "paper aged", "entry": "Null", "clients": 8, "aged by": PRINTED_WORKLOAD}
    run = run_of(
        *(
            Measure("settle", name, cell, metric, unit, [value])
            for name in ("tupelo-shm", "redis")
            for metric, unit, value in (
                ("aging", "s", 2.0), ("cleaning", "s", 1.0),
                ("share of aging and cleaning", "", 0.2),
            )
        )
    )  # fmt: skip
    times, share = [figure for figure in Settle().figures(run) if not figure.empty]
    assert [series.label for series in times.series] == [
        "tupelo-shm", "tupelo-shm, to clean it", "redis", "redis, to clean it",
    ]  # fmt: skip
    assert [series.points[0].mean for series in share.series] == [0.2, 0.2]


def test_the_knee_is_looked_for_before_anything_else():
    jobs = Settle().jobs(SQLite, Options())
    first = [job.parameters for job in jobs if job.rank == 0]
    assert [p["clients"] for p in first] == [1, 2, 8, 22]
    assert {p["series"] for p in first} == {"all at once"}


def test_each_kind_of_entry_has_a_line_before_any_other_kind_is_aged():
    jobs = Settle().jobs(SQLite, Options())
    together = [job for job in jobs if job.parameters["series"] == "all at once"]
    for kind in set(KINDS) - {"Null"}:
        early = [job for job in together if job.parameters["entry"] == kind and job.rank <= 2]
        assert [job.parameters["clients"] for job in early] == [1, 8, 22]
        aged = [
            job for job in jobs if job.parameters["entry"] == kind and "aged by" in job.parameters
        ]
        assert {job.rank for job in aged} == {4}


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_that_is_not_what_was_put_is_refused(kind):
    entry = ENTRIES[kind]
    made = fields_of(SharedSpace(), entry, 17)
    check_whole(SharedSpace(), entry, [made, list(made)])
    damaged = {
        "str": "1" * 99,
        "bytes": b"12345678" * 511 + b"1234567!",
        "array": np.arange(256.0),
    }
    wrong = [("Nil", *made[1:]), (*made, 1), *((kind, damaged[name]) for name in entry.types)]
    for each in wrong:
        with pytest.raises(WrongResultError, match="was taken, but never put"):
            check_whole(SharedSpace(), entry, [made, each])
