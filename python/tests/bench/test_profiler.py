"""The profiler: labels that overlap, batches, raw files and their merge."""

import pytest

from tupelo.bench.harness.profiler import Profiler, merged, read


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
