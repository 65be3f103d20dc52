"""`bench settle`: the knee, and the workloads that age a space."""

import json
import time
from collections import Counter
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest

from tupelo_bench.backends.base import Backend, Schema
from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.manager import Manager
from tupelo_bench.backends.redis import Redis
from tupelo_bench.backends.registry import PEERS
from tupelo_bench.backends.space import SharedSpace
from tupelo_bench.backends.sqlite import SQLite
from tupelo_bench.experiments.settle import CLIENTS, CLIENTS_AGED, Settle, job, phases
from tupelo_bench.experiments.settle.aging import PRINTED_WORKLOAD, WORKLOADS, age
from tupelo_bench.experiments.settle.clients import check, check_whole, client, once
from tupelo_bench.experiments.settle.knee import knee, knee_of
from tupelo_bench.experiments.settle.load import LENGTHS, Asked, Length, Load, calibrate, rounds
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
from tupelo_bench.harness.runner import Options, Stage, started
from tupelo_bench.harness.workers import Bench, WrongResultError


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
    turns = [j for j in Settle().jobs(Redis, Options()) if j.in_turns]
    cells = [(j.parameters["series"], j.parameters["clients"]) for j in turns]
    overlapping = [("overlapping", n) for n in CLIENTS]
    assert cells == [("paper", 8), *overlapping, ("paper aged", 8), ("aged", 8)]
    assert {j.parameters.get("aged by") for j in turns} == {None, PRINTED_WORKLOAD}
    words = {}
    for j in turns:
        words.setdefault(j.in_turns, set()).add(j.parameters["series"])
    assert sorted(map(sorted, words.values())) == [["aged", "overlapping"], ["paper", "paper aged"]]


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
        parameters = {"series": "overlapping", "entry": "Null", "clients": clients}
        return Measure("settle", "redis", parameters, metric, "s", [value])

    curve = ((2, 100.0, 1.0), (8, 60.0, 6.0))
    run = Run([], "", 1, quick=False, machine={}, versions={})
    for clients, throughput, response_s in curve:
        run.measures += [
            measure("throughput", clients, throughput),
            measure("response time", clients, response_s),
            measure("shortest phases of a client", clients, clients / 10),
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
            # It takes no part in what ages a space, as the results say: multiprocessing.Queue.
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
    } == {*product(KINDS, CLIENTS_AGED, WORKLOADS)}
    stage = Stage(SQLite(), {}, placement("free"), 1, 0, quick=False, deadline=None)
    for each in aged:
        parts = each.once.keywords["plan"].parts(stage)
        assert {(part.objects, part.aged) for part in parts} == {(1_000, True)}
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


@pytest.mark.parametrize("warm_up", [0, 1])
def test_a_space_is_aged_when_its_clients_are_warm_and_before_they_begin(warm_up):
    aged, used = Written(), Written()
    age(Bench(1, Profiler(), aged), aged, Workload((("write", ENTRIES["Null"]),)), warm_up > 0)
    client(Bench(0, Profiler(), used), used, Part("Null", 1, 1, 0.0, 0.0, warm_up, aged=True))
    warm = ["put", "take", "wait"] * warm_up
    assert used.verbs == ["wait", *warm, "wait", "put", "take"]
    assert aged.verbs == ["wait"] * (1 + warm_up) + ["put", "wait"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_aged_run_with_a_warm_up_takes_all_that_was_put_and_cleans_the_rest(kind):
    load = Load(kind, (2,), 1, objects=50, phase_s=0.001, together_s=0.001)
    workload = Workload((("write", ENTRIES["File"]),) * 3)
    plan = Plan(kind, 2, quick=True, load=load, workload=workload)
    with started(SQLite) as peer:
        peer.create(job("aged", plan).schema, ("settle",), 1 << 20)
        stage = Stage(peer, {}, placement("free"), 1, 0, quick=True, deadline=None)
        once(stage, plan)
        peer.drop()
    noted = {note.metric: note.samples for note in stage.noted}
    assert len(noted["response time"]) == 2
    assert min(*noted["aging"], *noted["cleaning"]) > 0


def test_the_amount_of_work_is_found_once_for_all_cells_of_a_peer():
    plans = [job.once.keywords["plan"] for job in Settle().jobs(SQLite, Options())]
    overlapping = [plan for plan in plans if plan.load is not None]
    assert {(plan.kind, plan.clients) for plan in overlapping} == set(product(KINDS, CLIENTS))
    assert all(plan.load.kind == plan.kind for plan in overlapping)
    assert len({id(plan.load) for plan in overlapping}) == len(KINDS)
    with started(SQLite) as peer:
        peer.create(Settle().jobs(SQLite, Options())[0].schema, ("settle",), 1 << 20)
        stage = Stage(peer, {}, placement("free"), 1, 0, quick=True, deadline=None)
        load = Load("Null", (2,), 3, (Length(0.05, 0.05),))
        load.find(stage)
        found = (load.objects, load.phase_s)
        load.lengths = (Length(10.0, 10.0),)
        load.find(stage)
        peer.drop()
    assert found == (load.objects, load.phase_s)


def test_the_phase_of_a_client_alone_is_measured_and_as_long_as_was_wanted():
    with started(SQLite) as peer:
        peer.create(Settle().jobs(SQLite, Options())[0].schema, ("settle",), 1 << 20)
        stage = Stage(peer, {}, placement("free"), 1, 0, quick=True, deadline=None)
        load = Load("Null", (2,), 3, (Length(0.1, 0.1),))
        capped = Load("Array", (2,), 3, (Length(0.1, 0.1),), quick=True)
        load.find(stage)
        capped.find(stage)
        peer.drop()
    assert load.objects > 200
    assert load.phase_s >= 0.1
    assert capped.objects == capped.objects_max == 600
    assert capped.phase_s < load.phase_s


class Cold(Pile):
    """A backend that is slow until it was asked a thousand times, as a virtual machine is."""

    def put(self, *fields):
        super().put(*fields)
        self.answer()

    def take(self, *template):
        self.answer()
        return super().take(*template)

    def answer(self):
        if self.puts + self.takes < 1_000:
            time.sleep(1e-4)


def test_what_compiles_as_it_runs_is_warm_before_its_phases_are_timed():
    bench = Bench(0, Profiler(), None)
    objects, phase_s = calibrate(bench, Cold(), Asked("Null", 0.001, 100_000, 1_000))
    assert objects > 200  # cold, the first 200 take longer than was wanted
    assert phase_s >= 0.001


@pytest.mark.parametrize(
    ("phase_s", "clients", "expected"),
    [(1.0, 2, 1), (1.0, 22, 1), (0.05, 2, 20), (0.05, 22, 2), (0.12, 14, 1), (0.9, 2, 1)],
)
def test_what_is_too_short_to_be_timed_is_done_in_several_rounds(phase_s, clients, expected):
    # On two processors 22 clients take eleven times as long as one, so they need fewer.
    assert rounds(Length(phase_s, 1.0), clients, processors=2) == expected


def test_all_starts_and_pauses_are_as_of_one_round_in_proportion():
    load = Load("Null", CLIENTS, 3, objects=500, phase_s=0.1, together_s=1.0)
    stage = Stage(SQLite(), {}, placement("free"), 1, 0, quick=False, deadline=None)
    for clients in CLIENTS:
        parts = Plan("Null", clients, quick=False, load=load).parts(stage)
        each = parts[0].rounds
        assert {(part.objects, part.rounds, part.pause_s) for part in parts} == {(500, each, 0.05)}
        assert [part.start_s for part in parts] == pytest.approx(
            [number * each * 0.05 for number in range(clients)]
        )


def test_a_run_with_less_time_has_shorter_phases():
    load = Load("Null", CLIENTS, 5)
    found = [load.affordable(left_s, 2, 0.1) for left_s in (float("inf"), 3_600, 600, 150, 20, 0)]
    assert found[0] == found[1] == Length(1.0, 1.0)
    assert found[-1] == LENGTHS[-1]
    lengths_s = [(length.together_s, length.phase_s) for length in found]
    assert lengths_s == sorted(lengths_s, reverse=True)
    # What a peer gets of ninety minutes for everything is enough for half a second in rounds.
    assert found[3].together_s == 0.5
    assert load.affordable(250.0, 2, 0.1).together_s == 1.0
    # Who has the tuples itself goes through a round more.
    assert load.affordable(250.0, 2, 1.0).together_s < 1.0


def test_clients_that_go_through_several_rounds_take_all_that_they_put():
    load = Load("Null", (2,), 1, objects=50, phase_s=0.001, together_s=0.003)
    plan = Plan("Null", 2, quick=True, load=load)
    with started(SQLite) as peer:
        peer.create(job("overlapping", plan).schema, ("settle",), 1 << 20)
        stage = Stage(peer, {}, placement("free"), 1, 0, quick=True, deadline=None)
        once(stage, plan)
        peer.drop()
    noted = {note.metric: note.samples for note in stage.noted}
    assert noted["rounds"] == [load.rounds(2, len(placement("free").client))]
    assert noted["objects"] == [50]
    together_s = min(noted["response time"]) * noted["rounds"][0] / 2
    assert noted["shortest phases of a client"] == pytest.approx([together_s])


@pytest.mark.parametrize("warm_up", [0, 25])
def test_what_warms_up_is_not_timed(warm_up):
    pile = Pile()
    bench = Bench(0, Profiler(), pile)
    _, _, taken = client(bench, pile, Part("Null", 10, 3, 0.0, 0.0, warm_up))
    assert pile.puts == pile.takes == 30 + warm_up
    assert taken == {0: 30}
    assert bench.profiler.tracks["phase"].total_operations == 2 * 30
    assert pile.waits == 1 + (warm_up > 0)  # nobody begins while others warm up


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("lacking", "is_right"), [(0, True), (1, False)])
def test_what_a_client_has_taken_is_counted(monkeypatch, sampled, lacking, is_right):
    """Also where only the last entries are kept: an answer with one less is found."""

    def take_each(_, templates):
        return 0, templates[lacking:]

    monkeypatch.setattr(phases, "take_each", take_each)
    pile = Pile()
    load = Load("Null", (1,), 1) if sampled else None
    part = Part("Null", 10, 3, 0.0, 0.0, sampled=sampled)
    _, _, taken = client(Bench(0, Profiler(), pile), pile, part)
    with nullcontext() if is_right else pytest.raises(WrongResultError, match="were taken"):
        check(Plan("Null", 1, quick=True, load=load), 30, [taken], left=0)


def test_each_client_warms_up_with_a_round_and_with_what_its_system_needs_to_compile():
    load = Load("Null", CLIENTS, 3, objects=1_000)
    assert load.warm_up(SQLite()) == 1_000
    assert load.warm_up(Redis()) == 100
    assert load.warm_up(JavaSpaces()) == JavaSpaces.warm_up // 2 > 1_000


@pytest.mark.parametrize(("peer_type", "objects"), [(SQLite, 1_000), (JavaSpaces, 2_500)])
def test_with_the_delays_of_the_paper_too_what_compiles_as_it_runs_is_warm(peer_type, objects):
    stage = Stage(peer_type(), {}, placement("free"), 1, 0, quick=False, deadline=None)
    parts = Plan("Null", 2, quick=False).parts(stage)
    assert {(part.warm_up, part.objects) for part in parts} == {(objects, 1_000)}


def test_the_knee_is_looked_for_before_anything_else():
    jobs = Settle().jobs(SQLite, Options())
    first = [job.parameters for job in jobs if job.rank == 0]
    assert [p["clients"] for p in first] == [2, 8, 22]
    assert {p["series"] for p in first} == {"overlapping"}


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
