"""Until a system that compiles is warm: which cycles come first, and what the record says."""

import queue
import threading

import pytest
from records import run_of

from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.redis import Redis
from tupelo_bench.experiments import sort, warming
from tupelo_bench.experiments.cases import skeleton
from tupelo_bench.experiments.everything import EXPERIMENTS
from tupelo_bench.experiments.rpc import RPC, calls, load, many
from tupelo_bench.experiments.settle import clients, phases, plan, windows
from tupelo_bench.experiments.warming import (
    CYCLES,
    STEADY,
    Warming,
    WarmUp,
    note_warming,
    warm_until_steady,
)
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.record import Measure
from tupelo_bench.harness.workers import Bench
from tupelo_bench.report.results import markdown
from tupelo_bench.report.warm import warmed
from tupelo_bench.runner import Options, Stage


@pytest.mark.parametrize(
    ("fixed", "until_steady", "times_ns", "expected"),
    [
        (0, False, [], 0),
        (3, False, [9] * 9, 3),
        (2, True, [1_000] * 50, 2 + 5),  # the fixed ones do not tell
        (2, True, [900, 900, *range(2_000, 1_000, -100), *[1_000] * 50], 2 + 10 + 5),
        (2, True, [1_000, 1_030] * 50, 2 + 30),  # never steady
        (0, True, [1_000, 1_019, 1_000, 1_010, 1_020], 5),
    ],
)
def test_who_compiles_is_warm_when_five_cycles_differ_by_less_than_two_percent(
    fixed, until_steady, times_ns, expected
):
    warming = Warming(fixed, until_steady=until_steady)
    for time_ns in times_ns:
        if warming.is_over():
            break
        warming.add(time_ns)
    assert warming.is_over()
    assert warming.cycles == expected


class Clock:
    """Time that passes by a microsecond at each look: every cycle takes equally long."""

    def __init__(self):
        self.now_ns = 0

    def __call__(self):
        self.now_ns += 1_000
        return self.now_ns


@pytest.fixture
def even(monkeypatch):
    """Cycles are steady at once, whatever the machine does."""
    monkeypatch.setattr(warming, "perf_counter_ns", Clock())


class Line:
    """A start line at which nobody waits."""

    def wait(self):
        return 0


class Bag:
    """A backend of one space, and a client whose calls are answered at once; it counts both."""

    def __init__(self):
        self.puts, self.takes, self.there, self.calls = 0, 0, [], 0

    def open(self, _):
        return self

    def array_kind(self):
        return bytes

    def put(self, *fields):
        self.puts += 1
        self.there.append(fields)

    def take(self, *_):
        self.takes += 1
        return self.there.pop(0)

    def try_take(self, *template):
        return self.take(*template) if self.there else None

    def close(self):
        pass

    # --- as a way to call ---

    def client(self, _):
        return self

    def call(self, _):
        self.calls += 1
        return b""

    def call_many(self, requests):
        self.calls += len(requests)
        return requests

    def stop(self, _):
        pass


def steady():
    """A bench, and what it has counted when all cycles take equally long."""
    return Bench(0, Profiler(), Line()), {CYCLES: 5, STEADY: 1}


@pytest.mark.parametrize(
    ("times_ns", "counts"),
    [([1_000] * 9, {CYCLES: 5, STEADY: 1}), ([1_000, 2_000] * 50, {CYCLES: 30, STEADY: 0})],
)
def test_cycles_are_done_until_they_differ_no_more_and_the_profiler_has_their_number(
    monkeypatch, times_ns, counts
):
    times = iter(times_ns)
    done = []
    clock = Clock()
    monkeypatch.setattr(warming, "perf_counter_ns", clock)

    def cycle():
        done.append(1)
        clock.now_ns += next(times)

    profiler = Profiler()
    warm_until_steady(profiler, cycle)
    assert len(done) == counts[CYCLES]
    assert profiler.counts == counts


def test_a_repeat_has_the_cycles_of_the_slowest_process_and_how_many_became_steady():
    profilers = [Profiler() for _ in range(5)]
    for profiler, cycles, is_steady in zip(profilers, (5, 30, 7, 9), (1, 0, 1, 1), strict=False):
        profiler.count(CYCLES, cycles)
        profiler.count(STEADY, is_steady)
    stage = Stage(None, {}, placement("free"), 1, 0, quick=False, deadline=None)
    note_warming(stage, profilers)  # the fifth does not compile, as who ages a space
    assert {note.metric: note.samples for note in stage.noted} == {CYCLES: [30.0], STEADY: [0.75]}
    stage.noted.clear()
    note_warming(stage, profilers[4:])
    assert not stage.noted


@pytest.mark.usefixtures("even")
def test_a_process_of_a_case_goes_on_until_it_is_warm_and_leaves_nothing_there():
    bag, (bench, counts) = Bag(), steady()
    skeleton.warm(bench, WarmUp(40, until_steady=True), bag)
    assert bag.puts == bag.takes == (40 + 5 * skeleton.CYCLE) // 2
    assert not bag.there
    assert bench.profiler.counts == counts


@pytest.mark.usefixtures("even")
def test_clients_of_both_series_go_on_until_they_are_warm_before_their_phases():
    bag, (bench, counts) = Bag(), steady()
    part = plan.Part("Null", 30, 0.0, 0.0, 25, aged=False, until_steady=True)
    clients.client(bench, bag, part)
    assert bag.puts == bag.takes == 25 + 5 * phases.BATCH + 30
    assert bench.profiler.counts == counts
    assert bench.profiler.tracks["phase"].total_operations == 2 * 30
    bag, (bench, counts) = Bag(), steady()
    window = windows.WindowPart("Null", 60.0, 10, 0.0, 25, aged=False, until_steady=True)
    done = windows.client(bench, bag, window)
    assert bag.puts == bag.takes == 25 + 5 * phases.BATCH + 2 * done.write.done
    assert bench.profiler.counts == counts


@pytest.mark.usefixtures("even")
def test_the_master_of_a_sort_calls_until_it_is_warm(monkeypatch):
    bag, (bench, counts) = Bag(), steady()
    monkeypatch.setattr(sort, "calls", lambda _: bag)
    sort.warm(bench, sort.Plan(8, 2, 1, WarmUp(100, until_steady=True)), bag.call_many)
    assert bag.calls == 100 + 5 * sort.CYCLE
    assert bench.profiler.counts == counts


@pytest.mark.usefixtures("even")
def test_a_caller_goes_on_until_it_is_warm_in_all_that_calls(monkeypatch):
    for module, process, exchanges in (
        (calls, calls.ask, 3), (load, load.ask_at_a_rate, 0), (many, many.hand_out, 8),
    ):  # fmt: skip
        bag, (bench, counts) = Bag(), steady()
        monkeypatch.setattr(module, "calls", lambda _, bag=bag: bag)
        how = calls.Plan(0, 0, exchanges, 8, load.SAME_LOAD, 0.004, until_steady=True)
        if process is many.hand_out:
            process(bench, bag, how, 1, many.UNDIRECTED)
        else:
            process(bench, Redis(), how)
        cycle = calls.CYCLE - calls.CYCLE % (many.READERS if process is many.hand_out else 1)
        counted = 4 if process is load.ask_at_a_rate else exchanges
        assert bag.calls == 8 + 5 * cycle + counted
        assert bench.profiler.counts == counts


class Teller:
    """The space as the teller sees it: a message goes to all readers."""

    def __init__(self):
        self.heard = queue.Queue()
        self.readers = [Reader(self.heard) for _ in range(many.READERS)]

    def open(self, _):
        return self

    def put(self, *news):
        for reader in self.readers:
            reader.news.put(news)

    def take(self, tag, *fields):
        return (tag, self.heard.get(timeout=60)) if tag == "heard" else (tag, *fields)

    def close(self):
        pass


class Reader:
    """The space as one of the readers sees it: it waits for the next message."""

    def __init__(self, heard):
        self.heard, self.news = heard, queue.Queue()

    def open(self, _):
        return self

    def read(self, *_):
        return self.news.get(timeout=60)

    def put(self, _, number):
        self.heard.put(number)

    def close(self):
        pass


@pytest.mark.usefixtures("even")
def test_readers_hear_as_many_messages_as_it_takes_to_be_warm():
    """Nobody knows beforehand how many those are: a message says whether it counts."""
    teller, (bench, counts) = Teller(), steady()
    how = calls.Plan(8, 0, 3, 20, until_steady=True)
    threads = [
        threading.Thread(target=many.hear, args=(Bench(1, Profiler(), Line()), reader, how))
        for reader in teller.readers
    ]
    for thread in threads:
        thread.start()
    many.tell(bench, teller, how)
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert all(reader.news.empty() for reader in teller.readers)
    tracks = bench.profiler.tracks
    assert len(tracks[many.ONE_TO_MANY].duration_ns) == 3
    assert len(tracks["warm-up"].duration_ns) == 2 + 5 * 10
    assert bench.profiler.counts == counts


def test_who_compiles_goes_on_until_it_is_warm_in_all_calls_but_in_the_smallest_sizes():
    for peer, quick, expected in ((JavaSpaces, False, True), (JavaSpaces, True, False),
                                  (Redis, False, False)):  # fmt: skip
        plans = [job.once.keywords["plan"] for job in RPC().jobs(peer, Options(quick=quick))]
        assert {each.until_steady for each in plans} == {expected}


def test_the_page_says_in_how_many_cycles_each_became_warm():
    cell = {"case": "sorting", "size": 7, "workers": 15}
    run = run_of(
        Measure("cases", "javaspaces", cell, CYCLES, "", [12.0, 30.0]),
        Measure("cases", "javaspaces", cell, STEADY, "", [1.0, 0.5]),
        Measure("cases", "javaspaces", {**cell, "workers": 1}, CYCLES, "", [6.0]),
        Measure("cases", "javaspaces", {**cell, "workers": 1}, STEADY, "", [1.0]),
        Measure("cases", "redis", cell, "total", "s", [1.0]),
    )
    assert warmed(run).rows == (("cases", "javaspaces", "2", "6 to 30", "83 %"),)
    assert "### Until it is warm" in markdown(run, EXPERIMENTS, [])
    assert not warmed(run_of()).rows
