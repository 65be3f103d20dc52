"""Sorting: the master puts an array in 200 parts, workers sort them, the master merges.

    ("sort_array", part, "unsorted")  ->  ("sorted_part", part)
    ("sort_array", null, "finished")      one per worker, at the end

The paper's listing writes one tag and takes another, which waits for ever; `tupelo check` finds it
(python/tests/test_check.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.experiments.cases.skeleton import (
    COLLECTING,
    LOCAL_WRITING,
    MASTER,
    TOTAL,
    Worker,
    note,
    run_warm,
    take_timed,
    warm,
)
from tupelo_bench.experiments.checked import check_sorted

if TYPE_CHECKING:
    from tupelo_bench.experiments.warming import WarmUp
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

PARTS = 200
DTYPE = "i8"
SCHEMA = Schema((Shape("sort_array", 3), Shape("sorted_part", 2)))


@dataclass(frozen=True)
class Plan:
    """One cell of the case."""

    size: int
    workers: int
    seed: int


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: a master and the workers."""
    _, profilers = run_warm(stage, master, worker, plan)
    note(stage, profilers, profilers[0].tracks[TOTAL].total_s)


def master(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Hand out the parts, merge what comes back, check it."""
    import numpy as np

    space = backend.open(MASTER)
    numbers = np.random.default_rng(plan.seed).integers(0, 1 << 31, plan.size, DTYPE)
    parts = np.array_split(numbers, PARTS)
    warm(bench, warm_up, space)
    bench.start.wait()
    bench.profiler.begin(TOTAL)
    for part in parts:
        # What a peer needs to make bytes of it is no part of the put, as in all other cases.
        fields = ("sort_array", backend.array(part), "unsorted")
        begin = perf_counter_ns()
        space.put(*fields)
        bench.profiler.add(LOCAL_WRITING, perf_counter_ns() - begin)
    template = ("sorted_part", backend.array_kind())
    back = [take_timed(bench.profiler, COLLECTING, space, template)[1] for _ in range(PARTS)]
    sorted_parts = [backend.numbers(part, DTYPE) for part in back]
    together = np.concatenate(sorted_parts)
    together.sort(kind="stable")  # which finds the sorted runs, and merges them
    bench.profiler.end(TOTAL)
    for _ in range(plan.workers):
        space.put("sort_array", None, "finished")
    check_sorted(sorted_parts, together, numbers)
    space.close()


def worker(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Sort parts until told to finish."""
    import numpy as np

    me = Worker.open(bench, backend, plan.workers)
    me.warm(warm_up)
    bench.start.wait()
    while True:
        _, part, status = me.take_remote("sort_array", ..., ...)
        if status == "finished":
            break
        me.put_remote("sorted_part", backend.array(np.sort(backend.numbers(part, DTYPE))))
    me.close()
