"""`bench rpc`: what is timed, where it runs, and what stands beside the printed numbers."""

import os
import threading
from collections import Counter
from itertools import count
from types import SimpleNamespace

import pytest

import tupelo as ts
from tupelo_bench.backends.grpc_calls import GRPC
from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.omniorb import OmniORB
from tupelo_bench.backends.redis import Redis
from tupelo_bench.backends.space_calls import DirectedCalls
from tupelo_bench.backends.sqlite import SQLite
from tupelo_bench.backends.udp import UDP
from tupelo_bench.experiments import native
from tupelo_bench.experiments.rpc import RPC, SIZES, calls, load, many
from tupelo_bench.experiments.rpc.calls import Plan
from tupelo_bench.experiments.rpc.load import OWN_LOAD, SAME_LOAD, UNDER_LOAD, ask_at_a_rate
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.record import Measure, Run
from tupelo_bench.harness.workers import Bench, WrongResultError
from tupelo_bench.runner import Options

STALL_S = 0.05


def test_on_one_processor_nothing_is_said_to_be_apart(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    jobs = RPC().jobs(Redis, Options())
    lacking = {job.parameters.get("placement"): job.lack for job in jobs}
    assert lacking == {"apart": "there is one processor", "together": None, None: None}


class Line:
    """A start line at which nobody waits."""

    def wait(self):
        return 0


class Clock:
    """Time that passes when somebody looks, sleeps or stalls: what was late is late exactly."""

    LOOK_NS = 1_000

    def __init__(self):
        self.now_ns = 0

    def look(self):
        self.now_ns += self.LOOK_NS
        return self.now_ns

    def sleep(self, duration_s):
        self.now_ns += round(duration_s * 1e9)


@pytest.fixture
def clock(monkeypatch):
    """The clock of the open loop and of the peer."""
    clock = Clock()
    monkeypatch.setattr(load, "perf_counter_ns", clock.look)
    monkeypatch.setattr(load, "time", clock)
    return clock


class Stalling:
    """A peer that stalls once, and else answers at once."""

    def __init__(self, clock, stall_at, answer=b""):
        self.clock = clock
        self.calls = 0
        self.stall_at, self.answer = stall_at, answer

    def client(self, servers):
        assert servers == 1
        return self

    def call(self, request):
        assert len(request) == 256
        self.calls += 1
        if self.calls == self.stall_at:
            self.clock.sleep(STALL_S)
        return self.answer

    def stop(self, servers):
        pass

    def close(self):
        pass


def test_a_stall_is_in_the_latency_of_all_requests_that_were_due_meanwhile(clock):
    bench = Bench(0, Profiler(), Line())
    plan = Plan(256, 0, exchanges=0, warm_up=0, load=SAME_LOAD, load_s=0.2)
    due_per_s, _ = ask_at_a_rate(bench, Stalling(clock, stall_at=20), plan)
    assert due_per_s == 1_000
    late_ns = bench.profiler.tracks[UNDER_LOAD].duration_ns
    assert len(late_ns) == 200
    # Fifty were due while one stalled, each a thousandth of a second after the other, and so waited
    # that much less; a closed loop would show one.
    few_looks_ns = 500 * Clock.LOOK_NS
    assert max(late_ns[:19]) < few_looks_ns
    waited_ns = [STALL_S * 1e9 - number * 1e6 for number in range(50)]
    assert late_ns[19:69] == pytest.approx(waited_ns, abs=few_looks_ns)
    assert max(late_ns[70:]) < few_looks_ns


def test_the_own_load_is_half_of_what_the_closed_loop_reached(clock):
    bench = Bench(0, Profiler(), Line())
    peer = Stalling(clock, stall_at=5)
    plan = Plan(256, 0, exchanges=10, warm_up=0, load=OWN_LOAD, load_s=0.1)
    due_per_s, _ = ask_at_a_rate(bench, peer, plan)
    under_load = len(bench.profiler.tracks[UNDER_LOAD].duration_ns)
    closed_loop = peer.calls - under_load
    # The stall alone is twice as long as the closed loop has to last: it ends with its tenth call.
    assert closed_loop == 10
    assert due_per_s == pytest.approx(0.5 * 10 / STALL_S, rel=0.01)


def test_an_answer_that_is_wrong_under_load_does_not_count(clock):
    plan = Plan(256, 0, exchanges=0, warm_up=0, load=SAME_LOAD, load_s=0.01)
    with pytest.raises(WrongResultError):
        ask_at_a_rate(Bench(0, Profiler(), Line()), Stalling(clock, 0, answer=b"what?"), plan)


def test_the_server_of_a_cell_runs_where_the_cell_says():
    blocks = RPC().blocks([Redis], Options())
    for block in blocks:
        said = {job.parameters.get("placement", "free") for job in block.jobs}
        assert {placement(name) for name in said} == {block.where}
    names = [block.where.name for block in blocks]
    assert names == [placement(name).name for name in ("apart", "together", "free")]
    together = blocks[1].where
    assert together.server == together.client


def test_a_peer_that_a_target_names_has_more_of_the_time(monkeypatch):
    monkeypatch.setattr(GRPC, "missing", classmethod(lambda _: None))
    weights = dict.fromkeys(["udp", "grpc"], 0.0)
    for block in RPC().blocks([UDP, GRPC], Options()):
        weights[block.peer.name] += block.weight
    assert weights["grpc"] > 2 * weights["udp"]


def test_every_payload_is_exchanged_at_both_placements():
    for peer in (UDP, OmniORB):
        jobs = [
            job.parameters for job in RPC().jobs(peer, Options()) if "load" not in job.parameters
        ]
        for where in ("apart", "together"):
            found = [p["bytes"] for p in jobs if p.get("placement") == where]
            assert found == [*SIZES, "100 each way", "1000 each way"]


@pytest.mark.parametrize(
    ("peer", "ranks"), [(UDP, {0}), (GRPC, {0}), (Redis, {0}), (SQLite, {0, 2})]
)
def test_all_payloads_that_stand_beside_printed_ones_come_before_any_open_loop(peer, ranks):
    jobs = [job for job in RPC().jobs(peer, Options()) if "bytes" in job.parameters]
    assert {job.rank for job in jobs if "load" not in job.parameters} == ranks
    assert {job.rank for job in jobs if "load" in job.parameters} == {1}


def test_the_rate_for_all_comes_before_the_own_one():
    open_loops = [job for job in RPC().jobs(Redis, Options()) if "load" in job.parameters]
    in_order = [job.parameters["load"] for job in sorted(open_loops, key=lambda job: job.rank)]
    assert in_order == [SAME_LOAD] * 2 + [OWN_LOAD] * 2


def test_a_virtual_machine_is_warm_before_its_calls_count():
    plans = {
        peer.name: {job.once.keywords["plan"].warm_up for job in RPC().jobs(peer, Options()) if
                    "bytes" in job.parameters}
        for peer in (JavaSpaces, UDP)
    }  # fmt: skip
    assert plans == {"javaspaces": {2_500}, "udp": {100}}  # of two operations each


def test_our_round_trips_stand_beside_those_of_the_paper_and_of_its_orb():
    run = Run([], "", 1, quick=False, machine={}, versions={})
    for where, micros in (("apart", 40), ("together", 15)):
        for size in (256, "100 each way"):
            parameters = {"bytes": size, "placement": where}
            run.measures.append(
                Measure("rpc", "tupelo-shm", parameters, "round trip", "s", [micros * 1e-6])
            )
    apart, together = RPC().printed(run)
    assert apart.heads[:6] == ("", "sockets", "ANSAware", "COOL ORB", "L²imbo linked", "separate")
    assert apart.heads[6:] == (
        "udp",
        "grpc",
        "omniorb (C++ on both sides)",
        "tupelo-shm",
        "tupelo-unix (the separate one)",
        "redis (a daemon, too)",
    )
    ours = apart.heads.index("tupelo-shm")
    rows = {row[0]: row for row in apart.rows}
    assert rows["256 bytes"][1:6] == ("2.98 ms", "7.1 ms", "", "6.53 ms", "12.58 ms")
    assert rows["256 bytes"][ours] == "40.0 µs"
    assert rows["100 bytes each way"][3:5] == ("2.6 ms", "1.9 ms")
    assert {row[0]: row for row in together.rows}["100 bytes each way"][ours] == "15.0 µs"


def test_programs_in_another_language_are_in_the_figure_of_the_round_trips():
    run = Run([], "", 1, quick=False, machine={}, versions={})
    for backend, metric in (("tupelo-shm", "round trip"), ("omniorb", native.ROUND_TRIP)):
        for size in (256, 512, "100 each way"):
            cell = {"bytes": size, "placement": "apart"}
            run.measures.append(Measure("rpc", backend, cell, metric, "s", [1e-6]))
    (figure,) = [f for f in RPC().figures(run) if f.title == "Round trip, client and server apart"]
    assert {series.label: len(series.points) for series in figure.series} == {
        "tupelo-shm": 2, "omniorb": 2,
    }  # fmt: skip
    assert "omniORB are in C++" in figure.note


class Board:
    """A space whose readers answer at once, and from which nothing is taken away quickly."""

    def __init__(self, clock):
        self.clock, self.number = clock, None

    def open(self, _):
        return self

    def put(self, _, number, message):
        assert len(message) == 256
        self.number = number

    def take(self, tag, *_):
        if tag == "news":
            self.clock.sleep(STALL_S)
        return tag, self.number

    def close(self):
        pass


def test_to_take_a_message_away_is_a_part_of_telling_it(clock, monkeypatch):
    monkeypatch.setattr("tupelo_bench.harness.profiler.perf_counter_ns", clock.look)
    bench = Bench(0, Profiler(), Line())
    many.tell(bench, Board(clock), Plan(256, 0, exchanges=1, warm_up=0))
    (told_ns,) = bench.profiler.tracks[many.ONE_TO_MANY].duration_ns
    assert told_ns >= STALL_S * 1e9


class Answering:
    """A client whose servers answer at once; it keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def client(self, _):
        return self

    def call_many(self, requests):
        self.asked.append(requests)
        return requests

    def stop(self, _):
        pass

    def close(self):
        pass


def test_where_the_long_requests_stand_is_up_to_the_seed_and_the_same_for_all():
    orders = []
    for seed in (1, 1, 2):
        client = Answering()
        bench = SimpleNamespace(start=Line(), profiler=Profiler())
        many.hand_out(bench, client, Plan(0, 0, 64, 8), seed, many.UNDIRECTED)
        *warm_up, requests = client.asked
        assert warm_up == [[b"0"] * many.READERS] * 2
        assert Counter(requests) == {b"0.02": 8, b"0.001": 56}
        orders.append(requests)
    assert orders[0] == orders[1] != orders[2]
    # Calls go to the servers in turn: they would all go to one if the long ones stood evenly.
    at = [number % many.READERS for number, each in enumerate(orders[0]) if each == b"0.02"]
    assert len(set(at)) > 1


def test_a_directed_request_goes_to_the_server_that_it_names():
    number, servers = count(), 3
    asked = [str(next(number)).encode() for _ in range(4 * servers)]

    def serve(servant, heard):
        def answer(request):
            heard.append(request)
            return request

        servant.serve(answer)

    name = f"directed-{os.getpid()}"
    with ts.connect(f"mem://{name}") as space:
        way = DirectedCalls(SimpleNamespace(open=lambda _: ts.connect(f"mem://{name}")))
        heard = [[] for _ in range(servers)]
        threads = [
            threading.Thread(target=serve, args=(way.servant(each), heard[each]))
            for each in range(servers)
        ]
        for thread in threads:
            thread.start()
        client = way.client(servers)
        answers = client.call_many(asked)
        client.stop(servers)
        for thread in threads:
            thread.join(60)
        client.close()
        assert space.stat()["tuples"] == 0
    assert sorted(answers) == sorted(asked)
    assert heard == [asked[each::servers] for each in range(servers)]


def test_the_processor_time_of_a_server_is_that_of_the_requests_that_count(monkeypatch):
    spent_s = 0.0

    class Busy:
        """A way to call whose server works ten times as long as it warms up."""

        def servant(self, _):
            return self

        def serve(self, answer):
            nonlocal spent_s
            for number in range(250):
                spent_s += 1.0 if number < 150 else 0.1
                assert answer(b"") == b""

    monkeypatch.setattr(calls, "process_time", lambda: spent_s)
    monkeypatch.setattr(calls, "calls", lambda _: Busy())
    bench = SimpleNamespace(number=0, start=Line())
    assert calls.serve(bench, None, Plan(0, 0, 100)) == pytest.approx(0.1)
    assert calls.serve(bench, None, Plan(0, 0, 10)) is None  # too few to tell


def test_only_spaces_direct_the_requests_of_unequal_length():
    for peer, directs in ((Redis, True), (JavaSpaces, True), (UDP, False), (GRPC, False)):
        jobs = RPC().jobs(peer, Options())
        of_requests = [job.parameters for job in jobs if "requests" in job.parameters]
        cell = {"requests": 64, "servers": many.READERS}
        assert of_requests == [cell, *([{**cell, "order": "in turn"}] if directs else [])]
