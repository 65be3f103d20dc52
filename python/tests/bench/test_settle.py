"""`bench settle`: the knee, and the workloads that age a space."""

import json

import pytest

from tupelo.bench.experiments.settle import knee
from tupelo.bench.experiments.workload import Workload, generated, recorded


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
