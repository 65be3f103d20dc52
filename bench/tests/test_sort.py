"""`bench sort`: what comes before the clock, and what becomes of a wrong result."""

import numpy as np
import pytest
from records import run_of

from tupelo_bench.backends.calls import Caller
from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.udp import UDP
from tupelo_bench.experiments import sort
from tupelo_bench.experiments.warming import WarmUp
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.record import Measure
from tupelo_bench.harness.workers import Bench, WrongResultError
from tupelo_bench.runner import Stage

PLAN = sort.Plan(1_000, workers=4, seed=1, warm_up=WarmUp(100))


class Line:
    """A start line at which nobody waits."""

    def wait(self):
        return 0


class Sorting(Caller):
    """Servers that sort; those that lie alter the parts of the size given."""

    def __init__(self, lies_at=None):
        self.lies_at = lies_at
        self.sizes = []

    def servant(self, number):
        pytest.fail(f"the master only calls: nobody is server {number}")

    def client(self, servers):
        assert servers == PLAN.workers
        return self

    def call_many(self, requests):
        parts = [np.sort(np.frombuffer(request, sort.DTYPE)) for request in requests]
        self.sizes.append(parts[0].size)
        if parts[0].size == self.lies_at:
            parts[0][-1] += 1
        return [part.tobytes() for part in parts]

    def stop(self, servers):
        pass

    def close(self):
        pass


def bench():
    return Bench(0, Profiler(), Line())


def test_workers_are_warm_before_the_call_that_counts():
    peer, process = Sorting(), bench()
    sort.master(process, peer, PLAN)
    assert peer.sizes == [1] * 25 + [250]
    assert len(process.profiler.tracks[sort.RESPONSE].duration_ns) == 1


@pytest.mark.parametrize(
    ("peer_type", "quick", "calls"),
    [(JavaSpaces, False, 2_500), (JavaSpaces, True, 100), (UDP, False, 100)],
)
def test_a_virtual_machine_is_warm_after_so_many_operations_of_which_a_call_is_two(
    peer_type, quick, calls
):
    stage = Stage(peer_type(), {}, placement("free"), 1, 0, quick=quick, deadline=None)
    steady = peer_type.compiles and not quick
    assert sort.Plan.of(stage, 1_000, workers=4).warm_up == WarmUp(calls, until_steady=steady)


@pytest.mark.parametrize("size", [1, 250])
def test_a_part_that_is_not_what_it_was_does_not_count(size):
    with pytest.raises(WrongResultError):
        sort.master(bench(), Sorting(lies_at=size), PLAN)


def test_the_ratio_of_corba_to_a_space_stands_beside_the_printed_one():
    """[RPC]: 1.06 to 1.79 there."""
    run = run_of(*(
        Measure("sort", backend, {"size": 8 << 10, "workers": 4, "sort": "C"}, "response time",
                "s", [seconds + n / 1_000 for n in range(5)])
        for backend, seconds in (("omniorb", 3.0), ("tupelo-shm", 2.0))
    ))  # fmt: skip
    (table,) = sort.Sort().printed(run)
    rows = {row[0]: dict(zip(table.heads, row, strict=True)) for row in table.rows}
    row = rows["8K, 4 workers"]
    assert (row["JavaSpaces"], row["CORBA"]) == ("3 451 ms", "5 941 ms")
    assert row["CORBA to JavaSpaces"] == "1.72 x"
    assert row["omniorb to tupelo-shm"] == "1.50 x"
    assert row["omniorb to javaspaces"] == "-"
    assert table.heads[table.columns_printed] == "CORBA to JavaSpaces"
