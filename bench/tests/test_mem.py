"""`bench mem`: its entries and fills, and what is put where."""

import pickle
from dataclasses import replace
from io import StringIO

import pytest
from records import mem, run_of

from tupelo.terminal import Terminal
from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.manager import Manager
from tupelo_bench.backends.queue import Queue
from tupelo_bench.backends.redis import Redis
from tupelo_bench.backends.space import SharedSpace
from tupelo_bench.backends.sqlite import SQLite
from tupelo_bench.experiments.mem import CYCLES, Mem, kinds, memory
from tupelo_bench.experiments.mem.client import BATCH, kept, key_client, same
from tupelo_bench.experiments.mem.entries import ENTRIES, LARGE, SMALL, KeyPlan
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.progress import Progress
from tupelo_bench.harness.record import Run
from tupelo_bench.harness.workers import Bench, WrongResultError
from tupelo_bench.presentation.tables import tables
from tupelo_bench.runner import Options, Runner, Stage, started

SIZES = {
    "Null": 0, "Integer": 4, "Char 32": 32, "Double 32": 256, "Double 256": 2_048,
    "Double 2048": 16_384,
}  # fmt: skip


class Shelf:
    """A space that keeps the batches that it was given."""

    def __init__(self):
        self.batches = []

    def put_all(self, tuples):
        self.batches.append(list(tuples))


def test_the_entries_are_those_of_the_paper():
    assert {entry.name: entry.payload_bytes for entry in ENTRIES} == SIZES


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@pytest.mark.parametrize("backend", [SharedSpace, Manager])
def test_a_fill_is_equal_entries_of_which_a_server_needs_a_copy_each(entry, backend):
    backend = backend()
    fields = entry.fields(backend, 5)
    many = list(entry.many(backend, 5, 20))
    assert len(many) == 20
    assert all(same(fields, each) for each in many)
    # Twenty times the same object would be one payload and nineteen references to it.
    assert len(pickle.dumps(many)) >= 20 * (entry.payload_bytes if entry.dtype else 0)


def test_a_fill_comes_in_batches_since_what_is_atomic_has_a_limit():
    shelf = Shelf()
    memory.put_batches(shelf, (("Null",) for _ in range(2_500)))
    assert [len(batch) for batch in shelf.batches] == [memory.BATCH, memory.BATCH, 500]


def timed(peer, options):
    """The jobs of the experiment that time puts and takes."""
    return [job for job in Mem().jobs(peer, options) if "plan" in job.once.keywords]


@pytest.mark.parametrize(
    ("repeats", "minutes", "least"),
    [(3, 90, 3), (10, 90, 5), (10, 20, 4), (10, 5, 3), (30, None, 5)],
)
def test_the_repeats_that_every_cell_gets_have_the_cycles_of_the_paper(repeats, minutes, least):
    options = Options(repeats=repeats, budget_s=None if minutes is None else 60.0 * minutes)
    assert options.repeats_least == least
    for job in timed(SharedSpace, options):
        plan = job.once.keywords["plan"]
        assert CYCLES <= plan.cycles * least < CYCLES + least
        assert job.repeats is None or job.repeats >= least
        assert plan.warm_up == 1
    assert BATCH == 100


def test_of_large_results_few_are_kept_at_a_time_and_of_small_ones_all_of_a_cycle():
    assert {entry.name: min(BATCH, kept(entry)) for entry in ENTRIES} == {
        "Null": 100, "Integer": 100, "Char 32": 100, "Double 32": 100, "Double 256": 32,
        "Double 2048": 4,
    }  # fmt: skip


class Keys:
    """A space of keys, and its own backend."""

    def __init__(self):
        self.keys, self.taken = set(), []

    def open(self, _):
        return self

    def put(self, key, *_):
        self.keys.add(key)

    def put_all(self, tuples):
        self.keys |= {key for key, *_ in tuples}

    def take(self, key, tag, _):
        self.keys.remove(key)
        self.taken.append(key)
        return (key, tag, 7)

    def count(self, *_):
        return len(self.keys)

    def close(self):
        pass


@pytest.mark.parametrize("fill", [0, 5_000])
def test_keys_are_taken_of_all_that_are_there(fill):
    space, bench = Keys(), Bench(0, Profiler(), None)
    key_client(bench, space, KeyPlan(fill=fill, cycles=4, warm_up=1, field="first"), seed=3)
    assert len(space.keys) == fill
    assert len(space.taken) == 5 * BATCH
    assert bench.profiler.tracks["take"].total_operations == 4 * BATCH
    old = sum(key < fill for key in space.taken)
    assert old == 0 if fill == 0 else old > 0.8 * len(space.taken)


def test_a_keyed_plan_names_its_field_and_no_entry():
    plans = {
        job.parameters["entry"]: job.once.keywords["plan"] for job in timed(SharedSpace, Options())
    }
    assert {plan.field for plan in plans.values() if isinstance(plan, KeyPlan)} == {"first", "last"}
    for name, plan in plans.items():
        assert hasattr(plan, "entry") is (name in SIZES)
        # A key and an integer, of four bytes each.
        assert plan.payload_bytes == SIZES.get(name, 8)


def test_a_server_is_measured_at_both_placements_and_all_entries_come_before_any_fill():
    jobs = timed(Redis, Options())
    together = [job for job in jobs if job.where == "together"]
    assert {job.parameters["entry"] for job in together} == {*SIZES, "key first", "key last"}
    assert all(job.parameters["fill"] == 0 and job.rank <= 1 for job in together)
    apart = [job for job in jobs if job.where is None]
    assert {job.parameters["fill"] for job in apart if job.rank <= 1} == {0}
    assert all(job.parameters["fill"] > 0 for job in apart if job.rank > 1)
    assert not [job for job in Mem().jobs(SharedSpace, Options()) if job.where == "together"]


def test_on_one_processor_no_server_is_said_to_be_apart(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    lacking = {job.parameters["placement"]: job.lack for job in timed(Redis, Options())}
    assert lacking == {"apart": "there is one processor", "together": None}
    assert {job.lack for job in timed(SharedSpace, Options())} == {None}  # it has no server


def test_the_entries_that_the_targets_name_come_first():
    jobs = timed(Redis, Options())
    first = {job.parameters["entry"] for job in jobs if job.rank == 0}
    assert first == {*SMALL, *LARGE} == SIZES.keys() - {"Double 256"}


class Counted(Manager):
    """It counts its servers."""

    starts = 0

    def start(self, folder, cpus):
        Counted.starts += 1
        super().start(folder, cpus)


def test_memory_is_that_of_a_server_which_was_started_for_nothing_else():
    before = Counted.starts
    kind = next(kind for kind in kinds() if kind.name == "Integer")
    samples = []
    with started(Counted) as used:
        for seed in (1, 2):
            stage = Stage(used, {}, placement("apart"), seed, 0, quick=True, deadline=None)
            memory.once(stage, kind)
            samples += stage.noted[0].samples
    assert Counted.starts - before == 3
    # A tuple of Python alone is 48 bytes and a place in a queue; equal work takes equal room.
    assert all(48 < sample < 200 for sample in samples)
    assert samples[0] == pytest.approx(samples[1], rel=0.2)


def test_memory_of_a_database_in_files_is_without_what_its_log_keeps_for_later():
    keyed = next(kind for kind in kinds() if kind.name == "key first")
    (sample,) = memory_of(SQLite, keyed)
    # With its index a tuple of two integers takes some 70 bytes; the log alone is 200 more.
    assert 40 < sample < 120


def test_a_manager_has_no_queue_for_a_key_with_one_tuple():
    (keyed,) = memory_of(Manager, next(kind for kind in kinds() if kind.name == "key first"))
    assert keyed < 600  # a queue alone is more


@pytest.mark.parametrize("name", ["key first", "key last"])
def test_memory_of_tuples_with_a_key_has_their_index_in_it(name):
    (kind,) = (kind for kind in kinds() if kind.name == name)
    (with_index,) = memory_of(SharedSpace, kind)
    (without,) = memory_of(SharedSpace, replace(kind, asked=None))
    assert with_index > without + 8  # a hash and where the tuple is


@pytest.mark.parametrize(
    ("name", "metrics"),
    [("Integer", [memory.METRIC]), ("key last", [memory.METRIC, memory.ASKED_FIRST])],
)
def test_the_record_says_where_tuples_were_asked_for_by_a_key(name, metrics, monkeypatch):
    monkeypatch.setattr(Stage, "run", lambda *_: ([2_000_000], []))
    (kind,) = (kind for kind in kinds() if kind.name == name)
    stage = Stage(SharedSpace(), {}, placement("apart"), 1, 0, quick=True, deadline=None)
    memory.once(stage, kind)
    assert [note.metric for note in stage.noted] == metrics


def memory_of(peer, kind):
    with started(peer) as used:
        stage = Stage(used, {}, placement("apart"), 1, 0, quick=True, deadline=None)
        memory.once(stage, kind)
    return stage.noted[0].samples


class Forgetful(Manager):
    """It loses a tuple."""

    def memory_bytes(self):
        self.open(memory.SPACE).try_take("Integer", int)
        return super().memory_bytes()


def test_memory_of_tuples_of_which_some_are_lost_is_no_figure():
    kind = next(kind for kind in kinds() if kind.name == "Integer")
    with pytest.raises(WrongResultError, match="21000 tuples should be left, there are 20998"):
        memory_of(Forgetful, kind)


def test_memory_that_did_not_grow_is_no_figure(monkeypatch):
    monkeypatch.setattr(Stage, "run", lambda *_: ([-109], []))
    stage = Stage(SharedSpace(), {}, placement("apart"), 1, 0, quick=True, deadline=None)
    with pytest.raises(WrongResultError, match="took -109 bytes of memory"):
        memory.once(stage, kinds()[0])
    assert not stage.noted


def test_where_the_memory_can_not_be_told_the_table_says_so():
    run = Run([], "", 1, quick=True, machine={}, versions={})
    options = Options(quick=True)
    runner = Runner(run, options, Progress(Terminal(StringIO())), "tupelo-shm")
    ours, queue = (
        replace(block, jobs=memory.jobs(block.peer, kinds(), options))
        for block in Mem().blocks([SharedSpace, Queue], options)
    )
    runner.all_of([ours, queue])
    (table,) = tables(run, "mem")
    assert table.heads == ("", "tupelo-shm", "mp-queue")
    assert [row[2] for row in table.rows] == ["can not"]
    (remark,) = run.remarks
    assert "a queue has no store" in remark.text


def test_who_has_no_server_stands_beside_servers_wherever_those_run():
    run = run_of(
        mem("tupelo-shm", "Integer", 0.1, metric="put"),
        mem("redis", "Integer", 60.0, metric="put"),
        mem("redis", "Integer", 30.0, "together", metric="put"),
        mem("postgres", "Integer", 90.0, metric="put"),
    )
    title = "Time of a put, empty space, the server on the client's processor"
    (figure,) = (figure for figure in Mem().figures(run) if figure.title == title)
    found = {series.label: [point.mean for point in series.points] for series in figure.series}
    assert set(found) == {"tupelo-shm", "redis"}
    assert found["redis"][0] == pytest.approx(30e-6, rel=0.01)


def test_the_empty_and_the_filled_space_stand_in_one_figure():
    """[MEM], figures 1 and 2: whether filling slows it down is seen at a glance."""
    run = run_of(
        *(
            mem(backend, entry, microseconds, fill=fill, metric="put")
            for backend in ("tupelo-shm", "redis")
            for entry in ("Null", "Integer")
            for fill, microseconds in ((0, 1.0), (10_000, 2.0))
        )
    )
    (figure,) = [each for each in Mem().figures(run) if each.title == "Time of a put"]
    assert [(series.label, series.beside) for series in figure.series] == [
        ("tupelo-shm", ""),
        ("tupelo-shm, 10 000 tuples there", "tupelo-shm"),
        ("redis", ""),
        ("redis, 10 000 tuples there", "redis"),
    ]
    assert figure.note == "full colour: empty space; pale: 10 000 tuples there"


def test_only_a_system_that_compiles_goes_on_until_it_is_steady():
    for peer, expected in ((JavaSpaces, True), (Redis, False)):
        jobs = [job for job in Mem().jobs(peer, Options()) if "plan" in job.once.keywords]
        plans = [job.once.keywords["plan"] for job in jobs]
        assert {plan.until_steady for plan in plans if hasattr(plan, "until_steady")} == {expected}
    quick = Mem().jobs(JavaSpaces, Options(quick=True))
    assert not any(getattr(j.once.keywords.get("plan"), "until_steady", False) for j in quick)
