"""`bench cases`: the parts that can be looked at alone, and what they do with a wrong result."""

import itertools
import random
import statistics
import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import tupelo as ts
from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.queue import Queue
from tupelo_bench.backends.space import PrivateSpace, SharedSpace
from tupelo_bench.experiments.cases import (
    Cases,
    matrix_blocks,
    matrix_rows,
    matrix_summed,
    ocean,
    password,
    skeleton,
    sorting,
    visit_jobs,
    visits,
)
from tupelo_bench.experiments.cases.figures import BY_WORKERS
from tupelo_bench.experiments.cases.skeleton import Searcher, Worker
from tupelo_bench.experiments.warming import WarmUp
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.workers import Bench
from tupelo_bench.runner import Options, Stage, started

OWNERS = itertools.count(1_000)


class Shelf:
    """A space that holds the given words, and counts the looks."""

    def __init__(self, *words):
        self.words = set(words)
        self.looks = 0

    def try_read(self, word):
        self.looks += 1
        return (word,) if word in self.words else None


def searcher(spaces, order="round robin", backend=Queue):
    bench = Bench(1, Profiler(), None)
    return Searcher(Worker(bench, backend(), 0, spaces, None), order), bench.profiler


def test_the_digest_of_the_papers_listing_is_that_of_its_password():
    assert password.digest_of("7723567") == "dd157c03313e452ae4a7a5b72407b3a9"


def test_no_password_comes_twice_and_each_has_seven_digits():
    passwords = [password.password(place) for place in range(200_000)]
    assert len(set(passwords)) == len(passwords)
    assert {len(each) for each in passwords} == {7}


def test_a_hundred_different_passwords_are_asked_for():
    assert all(
        len(set(password.Plan(1_000, 4, key_first=False, seed=seed).wanted())) == 100
        for seed in range(20)
    )


def test_the_total_is_from_the_first_that_goes_on_to_the_end_of_the_master():
    master, early, late = Profiler(), Profiler(), Profiler()
    master.moments_ns = {skeleton.BEGIN: 5_000_000, skeleton.END: 9_000_000}
    early.moments_ns = {skeleton.BEGIN: 2_000_000}
    late.moments_ns = {skeleton.BEGIN: 6_000_000}
    assert skeleton.total_s([master, early, late]) == pytest.approx(0.007)


def test_the_parts_of_the_workers_are_the_whole():
    plan = password.Plan(1_003, 4, key_first=False, seed=1)
    assert [place for worker in range(4) for place in plan.part(worker)] == list(range(1_003))


def test_a_search_visits_the_own_space_first_and_counts_every_visit():
    shelves = [Shelf("a"), Shelf("b"), Shelf("c")]
    search, profiler = searcher(shelves)
    assert search.read("a") == ("a",)
    assert search.read("c") == ("c",)
    assert [shelf.looks for shelf in shelves] == [2, 1, 1]
    assert profiler.counts == {skeleton.VISITED: 4, skeleton.SEARCHES: 2}
    assert profiler.tracks[skeleton.LOCAL_READING].total_operations == 2
    assert profiler.tracks[skeleton.REMOTE_READING].total_operations == 2


def test_by_success_factor_the_space_that_had_most_is_visited_first():
    shelves = [Shelf("a"), Shelf("b"), Shelf("c")]
    search, _ = searcher(shelves, "success factor")
    for _ in range(3):
        search.read("c")
    assert [shelf.looks for shelf in shelves] == [1, 1, 3]


@pytest.mark.parametrize("backend", [SharedSpace, PrivateSpace])
@pytest.mark.parametrize("order", ["round robin", "success factor"])
def test_where_the_system_waits_itself_visits_are_counted_the_same_way(
    backend, order, new_url, eventually
):
    spaces = [ts.connect(new_url(backend.scheme), size="16M") for _ in range(3)]
    search, profiler = searcher(spaces, order, backend)
    spaces[0].put("a", 1)
    assert search.read("a", int) == search.take("a", int) == ("a", 1)
    spaces[2].put("c", 1)
    assert search.read("c", int) == ("c", 1)
    visits = 1 + 1 + 3
    assert profiler.counts == {skeleton.VISITED: visits, skeleton.SEARCHES: 3}
    assert profiler.tracks[skeleton.LOCAL_READING].total_operations == 2
    # One call is one operation, for whoever can ask all spaces at once.
    assert profiler.tracks[skeleton.REMOTE_READING].total_operations == 1
    waits = threading.Thread(target=search.take, args=("b", int))
    waits.start()
    eventually(lambda: min(space.stat()["waiters"] for space in spaces) > 0)
    spaces[1].put("b", 1)
    waits.join()
    # A look at each, then a place in line in each: not one look per turn of a loop.
    assert profiler.counts[skeleton.VISITED] == visits + 6
    # What it waited is search time, but no look.
    looked_ns = profiler.tracks[skeleton.REMOTE_READING].duration_ns[-1]
    assert looked_ns < profiler.tracks[skeleton.SEARCH].duration_ns[-1]
    for space in spaces:
        space.close()


def test_visits_are_counted_for_twenty_seeds_which_are_the_same_for_both_orders():
    noted = {}
    with started(SharedSpace) as peer:
        for job in visit_jobs():
            peer.create(job.schema, job.spaces, job.size_bytes)
            stage = Stage(peer, {}, placement("free"), 7_000, 0, quick=True, deadline=None)
            job.once(stage)
            peer.drop()
            assert {(note.metric, len(note.samples)) for note in stage.noted} == {
                (skeleton.VISITED, 1)
            }
            means = [note.samples[0] for note in stage.noted]
            noted[job.parameters["tuples"], job.parameters["search"]] = means
    assert {len(means) for means in noted.values()} == {visits.SEEDS}
    for tuples, shares in visits.SHARES.items():
        in_turn = noted[tuples, "round robin"]
        # In turn the count follows from where the tuples are, which the seed says.
        for seed, mean in enumerate(in_turn, 7_000):
            choice = random.Random(seed)
            places = [choice.choices(range(1, 8), shares)[0] for _ in range(200)]
            assert mean == sum(places) / 200
    near = statistics.mean(noted["at two neighbours", "success factor"])
    assert near < statistics.mean(noted["at two neighbours", "round robin"]) / 2


def test_panels_stepped_with_their_borders_are_the_grid_stepped():
    plan = ocean.Plan(30, 3, iterations=1, order="round robin", seed=5)
    grid = plan.grid()
    whole = ocean.step(grid)
    for worker in range(3):
        columns = plan.columns(worker)
        left, right = int(worker > 0), int(worker < 2)
        wide = ocean.step(grid[:, columns.start - left : columns.stop + right])
        panel = wide[:, left : wide.shape[1] - right]
        assert panel.tobytes() == np.ascontiguousarray(whole[:, columns]).tobytes()


@pytest.mark.parametrize("workers", [1, 5, 15])
def test_every_process_has_a_space_of_its_own(workers):
    assert len(set(skeleton.names(workers))) == workers + 1


class Told:
    """A stage that keeps what the processes of a case are told, and runs none."""

    def __init__(self, peer):
        self.peer, self.quick = peer, False

    def run(self, *targets):
        self.warm_up = [arguments[2] for _, arguments in targets]
        return [], []


@pytest.mark.parametrize("peer", [JavaSpaces, Queue])
def test_the_processes_of_a_case_together_are_as_warm_as_the_system_needs(peer):
    stage = Told(peer())
    plan = ocean.Plan(60, 4, iterations=1, order="round robin", seed=1)
    skeleton.run_warm(stage, ocean.master, ocean.worker, plan)
    operations = [each.operations for each in stage.warm_up]
    assert len(operations) == 5
    assert sum(operations) >= peer.warm_up
    assert min(operations) >= 100
    # A virtual machine goes on until it is steady, each process for itself.
    assert {each.until_steady for each in stage.warm_up} == {peer.compiles}


def test_sizes_of_the_papers_figures_come_before_those_that_are_in_none():
    drawn = {(each.fixed["case"], each.fixed["size"]) for each in BY_WORKERS if each.number}
    drawn.add(("matrix rows", matrix_rows.EACH_SIZE))
    ranks = {True: set(), False: set()}
    for job in Cases().jobs(Queue, Options()):
        cell = job.parameters["case"], job.parameters["size"]
        if cell != ("password", 10_000):  # for which every system has the time
            ranks[cell in drawn].add(job.rank)
    assert max(ranks[True]) < min(ranks[False])


def test_for_whom_few_passwords_take_too_long_more_are_not_tried():
    weights = {}
    for job in Cases().jobs(Queue, Options()):
        if job.parameters["case"] == "password":
            weights.setdefault(job.parameters["size"], []).append(job.weight)
    assert max(weights[100_000]) < min(weights[1_000_000])


def test_the_median_of_the_searches_leaves_out_the_first_look_that_builds_an_index():
    profiler = Profiler()
    for duration_ns in (9_000_000, 2_000, 3_000, 1_000, 4_000):
        profiler.add(skeleton.SEARCH, duration_ns)
    stage = Stage(None, {}, placement("free"), 1, 0, quick=False, deadline=None)
    skeleton.note(stage, [profiler], total_s=1.0)
    noted = {note.metric: note.samples for note in stage.noted}
    assert noted[skeleton.SEARCH_MEDIAN] == [pytest.approx(3e-6)]
    assert noted[skeleton.SEARCH] == [pytest.approx(1.802e-3)]


class Pile:
    """A space without keys, which counts what is put."""

    def __init__(self):
        self.puts, self.there = 0, []

    def put(self, *fields):
        self.puts += 1
        self.there.append(fields)

    def try_take(self, *_):
        return self.there.pop(0) if self.there else None

    def read(self, *_):
        pytest.fail("to warm up is to put and to take")

    def close(self):
        pass


class Piles(Queue):
    """A system of such spaces."""

    def __init__(self):
        super().__init__()
        self.piles = {}

    def open(self, space):
        return self.piles.setdefault(space, Pile())


def test_what_warms_up_is_put_and_taken_in_each_space_and_leaves_nothing_there():
    piles = [Pile(), Pile(), Pile()]
    bench = Bench(0, Profiler(), None)
    skeleton.warm(bench, WarmUp(0), *piles)
    assert [pile.puts for pile in piles] == [1, 1, 1]
    skeleton.warm(bench, WarmUp(20), *piles)
    assert [pile.puts for pile in piles] == [5, 4, 4]
    assert not any(pile.there for pile in piles)


def test_every_case_is_warm_before_its_clock_runs():
    class OffError(Exception):
        """The clock runs."""

    class Line:
        def wait(self):
            raise OffError

    for case, plan in (
        (password, password.Plan(100, 1, key_first=False, seed=1)),
        (sorting, sorting.Plan(1_000, 1, seed=1)),
        (ocean, ocean.Plan(60, 1, iterations=1, order="round robin", seed=1)),
        (matrix_rows, matrix_rows.Plan(10, 1, all_b_at_one=False, seed=1)),
        (matrix_summed, matrix_rows.Plan(10, 1, all_b_at_one=False, seed=1)),
        (matrix_blocks, matrix_blocks.Plan(10, 1, 5, seed=1)),
    ):
        for process, spaces in ((case.master, 1), (case.worker, 2)):
            peer, bench = Piles(), Bench(1, Profiler(), Line())
            with pytest.raises(OffError):
                process(bench, peer, plan, WarmUp(40))
            assert [pile.puts for pile in peer.piles.values()] == [20 // spaces] * spaces
            assert not any(pile.there for pile in peer.piles.values())


def test_every_case_has_room_for_what_warms_it_up():
    jobs = Cases().jobs(Queue, Options())
    assert jobs
    assert all(skeleton.WARM in job.schema.shapes for job in jobs)


class Counted(PrivateSpace):
    """Spaces for the threads of this process, which count what is done with each tag."""

    def __init__(self):
        super().__init__()
        self._owner = next(OWNERS)  # spaces of its own
        self.done = Counter()

    def open(self, space):
        opened = super().open(space)

        def counting(how, call):
            def counted(*fields):
                found = call(*fields)
                if found is not None or how == "put":
                    self.done[space, how, fields[0]] += 1
                return found

            return counted

        names = ("put", "take", "read", "try_take", "try_read")
        calls = {name: counting(name.removeprefix("try_"), getattr(opened, name)) for name in names}
        return SimpleNamespace(**calls, close=opened.close)

    def search(self, *_):
        return None


def run_in_threads(case, plan, schema):
    """What was done with each tag in each space, and what each process measured."""
    with started(Counted) as peer:
        spaces = skeleton.names(plan.workers)
        peer.create(skeleton.with_warm_up(schema), spaces, 1 << 20)
        line, profilers = threading.Barrier(plan.workers + 1), []
        threads = []
        for number in range(plan.workers + 1):
            process = case.worker if number else case.master
            profilers.append(Profiler())
            bench = Bench(number, profilers[-1], line)
            threads.append(threading.Thread(target=process, args=(bench, peer, plan, WarmUp(2))))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        peer.drop()
        return peer.done, profilers


@pytest.mark.parametrize("all_b_at_one", [False, True])
def test_by_rows_as_listed_a_partial_row_is_taken_out_and_put_back_for_each_row_of_b(all_b_at_one):
    """[LINDA], listing 4: with n rows these are n² takes and as many puts."""
    size, workers = 6, 2
    plan = matrix_rows.Plan(size, workers, all_b_at_one, seed=1)
    done, _ = run_in_threads(matrix_rows, plan, matrix_rows.SCHEMA)
    local = [f"worker-{number}" for number in range(workers)]
    # The first put is the empty row, the last take the finished one.
    rows = size // workers * (size + 1)
    assert [done[space, "put", "matrixC"] for space in local] == [rows] * workers
    assert [done[space, "take", "matrixC"] for space in local] == [rows] * workers
    assert done["master", "put", "product"] == done["master", "take", "product"] == size
    # The master hands out both matrices, and each worker stores its rows in its own space.
    assert done["master", "put", "row"] == done["master", "take", "row"] == 2 * size
    of_b = [size, 0] if all_b_at_one else [size // workers] * workers
    assert [done[space, "put", "matrixB"] for space in local] == of_b
    assert [done[space, "put", "matrixA"] for space in local] == [size // workers] * workers


def test_in_the_ocean_model_the_master_hands_out_the_panels():
    """[LINDA], listing 3."""
    plan = ocean.Plan(12, 2, iterations=2, order="round robin", seed=1)
    done, profilers = run_in_threads(ocean, plan, ocean.SCHEMA)
    assert done["master", "put", "hand out"] == done["master", "take", "hand out"] == 2
    assert profilers[0].tracks[skeleton.HANDING_OUT].total_operations == 2


def test_what_is_read_and_withdrawn_by_a_key_is_the_same_in_the_same_state():
    """[LINDA], figure 9: the reads that build the index, and the master's takes, are in neither."""
    plan = password.Plan(400, 2, key_first=False, seed=1)
    done, profilers = run_in_threads(password, plan, password.schema(key_first=False))
    for number in (1, 2):
        tracks = profilers[number].tracks
        for label in (skeleton.KEYED_READING, skeleton.KEYED_WITHDRAWING):
            assert list(tracks[label].operations) == [100, 100]
        assert done[f"worker-{number - 1}", "take", "hash_set"] == 200
    assert skeleton.LOCAL_READING not in profilers[0].tracks
    assert 0 < profilers[0].tracks[skeleton.COLLECTING].total_operations <= password.SEARCHES


def test_the_imbalance_is_the_slowest_workers_time_against_the_mean():
    profilers = [Profiler() for _ in range(3)]  # the master's has no search in it
    for profiler, duration_ns in zip(profilers[1:], (1_000, 3_000), strict=True):
        profiler.add(skeleton.SEARCH, duration_ns)
    stage = Stage(None, {}, placement("free"), 1, 0, quick=False, deadline=None)
    skeleton.note(stage, profilers, total_s=1.0)
    noted = {note.metric: note.samples for note in stage.noted}
    assert noted[skeleton.IMBALANCE] == [pytest.approx(1.5)]
