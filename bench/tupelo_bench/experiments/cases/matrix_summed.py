"""Matrix multiplication by rows, summed locally: a variant that is not the paper's.

A worker makes its own rows of A and B. It adds up a row of the product in a variable, and puts it
when all rows of B are in it. Nothing is put and taken but what the program needs, so its times do
not compare with those of the listing (`matrix_rows`).

    ("matrixA", row, values)   ("matrixB", row, values)   ("matrixC", row, values, counter)
"""

from __future__ import annotations

import time
from time import perf_counter_ns
from typing import TYPE_CHECKING

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.experiments.cases.matrix_rows import DTYPE, Plan, check_product, take_product
from tupelo_bench.experiments.cases.skeleton import (
    LOCAL_HIT,
    LOCAL_READING,
    MASTER,
    REMOTE_HIT,
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

    from tupelo_bench.experiments.warming import WarmUp
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

CASE = "matrix rows, summed locally"
PASSES = 5  # over the rows that are read again
REST_S = 0.05  # until all others sleep
SCHEMA = Schema(
    (
        Shape("matrixA", 3, (1,), awaited=False),
        Shape("matrixB", 3, (1,)),
        Shape("matrixC", 4),
    )
)


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: a master and the workers."""
    _, profilers = run_warm(stage, master, worker, plan)
    note(stage, profilers, total_s(profilers))


def master(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Collect the rows of the product, and check them."""
    # The workers have imported it before they begin. A system that takes arrays would import it
    # here with the first row, which takes longer than all the rows.
    import numpy as np  # noqa: F401

    space = backend.open(MASTER)
    warm(bench, warm_up, space)
    begin_together(bench)
    rows = take_product(bench, backend, plan, space, "matrixC")
    bench.start.wait()
    bench.start.wait()
    check_product(backend, plan, rows)
    space.close()


def worker(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Store the own rows, then make rows of the product."""
    import numpy as np

    me = Worker.open(bench, backend, plan.workers)
    a, b = plan.matrices()
    mine, of_b = plan.rows_of_a(me.number), plan.rows_of_b(me.number)
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
