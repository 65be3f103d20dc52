"""The profiler: labels that overlap, batches, raw files and their merge."""

import pytest

from tupelo_bench.experiments.round_trips import closed_loop
from tupelo_bench.experiments.rpc import load, many
from tupelo_bench.harness.placement import placement
from tupelo_bench.harness.profiler import Profiler, merged, read
from tupelo_bench.runner import Stage


def test_labels_overlap():
    profiler = Profiler()
    profiler.begin("outer")
    profiler.begin("inner")
    profiler.end("outer")
    profiler.end("inner", operations=10)
    assert set(profiler.tracks) == {"outer", "inner"}
    assert profiler.tracks["inner"].total_operations == 10


def test_a_batch_is_told_per_operation():
    profiler = Profiler()
    profiler.add("put", 5_000, operations=100)
    assert profiler.tracks["put"].samples_s() == [pytest.approx(50e-9)]
    assert profiler.tracks["put"].mean_s == pytest.approx(50e-9)


@pytest.mark.parametrize(
    "noting",
    [
        lambda stage: closed_loop(stage, "loop", server=(None, ()), client=(None, ())),
        lambda stage: load.open_loop(stage, None),
        lambda stage: many.one_to_many_space(stage, None),
        lambda stage: many.one_to_many_calls(stage, None),
    ],
)
def test_what_was_never_timed_is_no_time_of_zero(noting):
    """It would be the best of all."""
    empty = Profiler()
    for label in ("loop", load.UNDER_LOAD, many.ONE_TO_MANY):
        empty.add(label, 0, operations=0)
    stage = Stage(None, {}, placement("apart"), 1, 0, quick=True, deadline=None)
    stage.run = stage.run_at = lambda *_: ((None, (1.0, 1.0)), [empty, empty])
    with pytest.raises(ValueError, match="nothing was timed"):
        noting(stage)


def test_beginning_twice_and_ending_what_has_not_begun_are_refused():
    profiler = Profiler()
    profiler.begin("put")
    with pytest.raises(ValueError, match="has begun already"):
        profiler.begin("put")
    with pytest.raises(ValueError, match="has not begun"):
        profiler.end("take")


def test_raw_files_of_several_processes_become_one(tmp_path):
    for number in range(3):
        profiler = Profiler()
        profiler.add("put", 1_000 * (number + 1))
        profiler.count("visited nodes", number)
        profiler.moment("begin")
        profiler.write(tmp_path / f"{number}")
    together = merged(read(tmp_path / f"{number}") for number in range(3))
    begun_ns = [read(tmp_path / f"{number}").moments_ns["begin"] for number in range(3)]
    assert 0 < begun_ns[0] < begun_ns[1] < begun_ns[2]
    assert list(together.tracks["put"].duration_ns) == [1_000, 2_000, 3_000]
    assert together.counts == {"visited nodes": 3}
