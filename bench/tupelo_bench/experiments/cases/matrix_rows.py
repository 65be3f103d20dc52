"""Matrix multiplication by rows: the rows of A and B lie in the workers' local spaces.

A worker multiplies each of its rows of A with all rows of B, which it has to search for. The rows
of B are spread evenly, or lie all at one worker ("B-1"). The numbers are small integers, so that
the product is exact in any order.

    ("matrixA", row, values)   ("matrixB", row, values)
    ("matrixC", row, values, counter)     counter: how many rows of B are in it

A row of the product is added up by its worker alone. The worker puts it when all rows of B are in
it, so the counter is the order of the matrix. To put each partial row, and take it again to add the
next, would count operations that the program needs for nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.experiments.cases.skeleton import (
    END,
    LOCAL_HIT,
    LOCAL_READING,
    MASTER,
    REMOTE_HIT,
    SEARCH,
    Searcher,
    Worker,
    begin_together,
    note,
    run_warm,
    total_s,
    warm,
)
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    import numpy as np

    from tupelo_bench.harness.runner import Stage
    from tupelo_bench.harness.workers import Bench

DTYPE = "f8"
PASSES = 5  # over the rows that are read again
REST_S = 0.05  # until all others sleep
EACH_WORKERS_MAX = 5  # whose searches are recorded one by one: as many as the figure shows
SCHEMA = Schema(
    (
        Shape("matrixA", 3, (1,), awaited=False),
        Shape("matrixB", 3, (1,)),
        Shape("matrixC", 4),
    )
)


@dataclass(frozen=True)
class Plan:
    """One cell of the case."""

    size: int
    workers: int
    all_b_at_one: bool
    seed: int

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """A and B."""
        import numpy as np

        choice = np.random.default_rng(self.seed)
        shape = (2, self.size, self.size)
        a, b = choice.integers(0, 100, shape).astype(DTYPE)
        return a, b


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: a master and the workers."""
    results, profilers = run_warm(stage, master, worker, plan)
    note(stage, profilers, total_s(profilers))
    if stage.repeat == 0 and plan.workers <= EACH_WORKERS_MAX:
        for number, each_ns in enumerate(results[1:]):
            stage.note(f"{SEARCH}, worker {number}", "s", [each / 1e9 for each in each_ns])


def master(bench: Bench, backend: Backend, plan: Plan, warm_up: int) -> None:
    """Collect the rows of the product, and check them."""
    import numpy as np

    space = backend.open(MASTER)
    warm(warm_up, space)
    begin_together(bench)
    template = ("matrixC", int, backend.array_kind(), int)
    rows = [space.take(*template) for _ in range(plan.size)]
    bench.profiler.moment(END)
    bench.start.wait()
    bench.start.wait()
    a, b = plan.matrices()
    product = np.zeros_like(a)
    for _, row, values, counter in rows:
        if counter != plan.size:
            message = f"row {row} has {counter} of {plan.size} rows in it"
            raise WrongResultError(message)
        product[row] = backend.numbers(values, DTYPE)
    if not np.array_equal(product, a @ b):
        message = "the product is wrong"
        raise WrongResultError(message)
    space.close()


def worker(bench: Bench, backend: Backend, plan: Plan, warm_up: int) -> list[int]:
    """Store the own rows, then make rows of the product; how long each of some searches took."""
    import numpy as np

    me = Worker.open(bench, backend, plan.workers)
    a, b = plan.matrices()
    mine = range(me.number, plan.size, plan.workers)
    of_b: Any = mine
    if plan.all_b_at_one:
        of_b = range(plan.size) if me.number == 0 else ()
    tuples = [("matrixA", row, backend.array(a[row])) for row in mine]
    tuples += [("matrixB", row, backend.array(b[row])) for row in of_b]
    searcher = Searcher(me)
    kind = backend.array_kind()
    me.warm(warm_up)
    begin_together(bench)
    me.put_local(tuples)
    for row in mine:
        begin = perf_counter_ns()
        found = me.own.try_read("matrixA", row, kind)
        bench.profiler.add(LOCAL_READING, perf_counter_ns() - begin)
        factors = backend.numbers(found[2], DTYPE)
        values, counter = np.zeros(plan.size), 0
        for k in range(plan.size):
            values += factors[k] * backend.numbers(searcher.read("matrixB", k, kind)[2], DTYPE)
            counter += 1
        me.put_remote("matrixC", row, backend.array(values), counter)
    bench.start.wait()
    if me.number == 0 and plan.workers > 1 and not plan.all_b_at_one:
        read_again(me, plan, b)
    bench.start.wait()
    me.close()
    return searcher.each_ns


def read_again(me: Worker, plan: Plan, b: np.ndarray) -> None:
    """Read rows of B that are there while all others rest, of the own space and of the next one."""
    kind, expected = me.backend.array_kind(), b.tolist()
    looked_at = ((LOCAL_HIT, me.spaces[0], 0), (REMOTE_HIT, me.spaces[1], 1))
    time.sleep(REST_S)
    for turn in range(-1, PASSES):  # both in turns, and the first does not count
        for label, space, number in looked_at:
            rows = range(number, plan.size, plan.workers)
            begin = perf_counter_ns()
            found = [space.try_read("matrixB", row, kind) for row in rows]
            took_ns = perf_counter_ns() - begin
            if turn >= 0:
                me.bench.profiler.add(label, took_ns, len(rows))
            # A miss is cheaper than a hit.
            for row, fields in zip(rows, found, strict=True):
                if fields is None or me.backend.numbers(fields[2], DTYPE).tolist() != expected[row]:
                    message = f"row {row} of B is another, {label}: {fields!r:.100}"
                    raise WrongResultError(message)
