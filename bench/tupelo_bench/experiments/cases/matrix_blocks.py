"""Matrix multiplication by blocks: everything is at the master, workers take tasks.

    ("matrixA", i, j, block)   ("matrixB", i, j, block)
    ("matrixC", i, j, count, block)
    ("task", i, j, k)
    ("done", i, j)           when a block of C has all its terms
    ("task", -1, -1, -1)     one per worker, at the end

A task adds A[i, k] · B[k, j] to C[i, j]. Tasks of the same block of C wait for each other, by
taking it. Not all peers give out the oldest first, so the poison comes when everything is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.experiments.cases.matrix_rows import DTYPE
from tupelo_bench.experiments.cases.matrix_rows import Plan as Matrices
from tupelo_bench.experiments.cases.skeleton import (
    LOCAL_WRITING,
    MASTER,
    REMOTE_READING,
    TOTAL,
    Worker,
    note,
    run_warm,
    take_timed,
    warm,
)
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    import numpy as np

    from tupelo_bench.experiments.warming import WarmUp
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

POISON = -1
SCHEMA = Schema(
    (
        Shape("matrixA", 4, (1, 2), awaited=False),
        Shape("matrixB", 4, (1, 2), awaited=False),
        Shape("matrixC", 5, (1, 2)),
        Shape("task", 4),
        Shape("done", 3),
    )
)


@dataclass(frozen=True)
class Plan:
    """One cell of the case."""

    size: int
    workers: int
    block: int
    """Rows and columns of a block."""
    seed: int

    @property
    def blocks(self) -> int:
        """Blocks in a row."""
        return self.size // self.block

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """A and B."""
        return Matrices(self.size, self.workers, all_b_at_one=False, seed=self.seed).matrices()


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: a master and the workers."""
    _, profilers = run_warm(stage, master, worker, plan)
    note(stage, profilers, profilers[0].tracks[TOTAL].total_s)


def master(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Put blocks and tasks, wait for the workers, collect the product and check it."""
    import numpy as np

    space = backend.open(MASTER)
    a, b = plan.matrices()
    tuples = prepared(backend, plan, a, b)
    warm(bench, warm_up, space)
    bench.start.wait()
    bench.profiler.begin(TOTAL)
    with bench.profiler.time(LOCAL_WRITING, len(tuples)):
        for fields in tuples:
            space.put(*fields)
    for _ in range(plan.blocks**2):
        space.take("done", int, int)
    product = np.zeros_like(a)
    counts = set()
    for i in range(plan.blocks):
        for j in range(plan.blocks):
            _, _, _, count, data = space.take("matrixC", i, j, int, backend.array_kind())
            counts.add(count)
            product[at(plan, i), at(plan, j)] = values(backend, plan, data)
    bench.profiler.end(TOTAL)
    for _ in range(plan.workers):
        space.put("task", POISON, POISON, POISON)
    if counts != {plan.blocks} or not np.array_equal(product, a @ b):
        message = f"the product is wrong; the blocks have {sorted(counts)} terms"
        raise WrongResultError(message)
    space.close()


def prepared(backend: Backend, plan: Plan, a: Any, b: Any) -> list[tuple[Any, ...]]:
    """All blocks and tasks as tuples."""
    import numpy as np

    each = range(plan.blocks)

    def cut(matrix: Any, i: int, j: int) -> Any:
        return backend.array(np.ascontiguousarray(matrix[at(plan, i), at(plan, j)]))

    nothing = backend.array(np.zeros((plan.block, plan.block)))
    return [
        *(("matrixA", i, j, cut(a, i, j)) for i in each for j in each),
        *(("matrixB", i, j, cut(b, i, j)) for i in each for j in each),
        *(("matrixC", i, j, 0, nothing) for i in each for j in each),
        *(("task", i, j, k) for k in each for i in each for j in each),
    ]


def at(plan: Plan, block: int) -> slice:
    """The rows, or columns, of a block."""
    return slice(block * plan.block, (block + 1) * plan.block)


def values(backend: Backend, plan: Plan, data: Any) -> np.ndarray:
    """The numbers of a block."""
    return backend.numbers(data, DTYPE).reshape(plan.block, plan.block)


def worker(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Work on tasks until there is the poison."""
    me = Worker.open(bench, backend, plan.workers)
    profiler, read, kind = bench.profiler, me.master.read, backend.array_kind()
    me.warm(warm_up)
    bench.start.wait()
    while True:
        _, i, j, k = me.take_remote("task", int, int, int)
        if i == POISON:
            break
        begin = perf_counter_ns()
        a = read("matrixA", i, k, kind)[3]
        b = read("matrixB", k, j, kind)[3]
        profiler.add(REMOTE_READING, perf_counter_ns() - begin, 2)
        term = values(backend, plan, a) @ values(backend, plan, b)
        template = ("matrixC", i, j, int, kind)
        _, _, _, count, c = take_timed(profiler, REMOTE_READING, me.master, template)
        term += values(backend, plan, c)
        me.put_remote("matrixC", i, j, count + 1, backend.array(term))
        if count + 1 == plan.blocks:
            me.put_remote("done", i, j)
    me.close()
