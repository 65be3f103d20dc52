"""Matrix multiplication by rows, as the paper lists it.

The master hands out the rows of A and B, and each worker stores its rows in its local space. The
rows of B are spread evenly, or lie all at one worker ("B-1"). A worker multiplies each of its rows
of A with all rows of B, which it has to search for. The numbers are small integers, so that the
product is exact in any order.

    ("row", worker, matrix, row, values)              at the master, until its worker takes it
    ("matrixA", row, values)   ("matrixB", row, values)
    ("matrixC", row, values, counter)                 counter: how many rows of B are in it
    ("product", row, values, counter)                 at the master, when all are in it

For each row of B the partial row of the product is taken out of the local space, added to and put
back: 20 000 operations at order 100. The paper says that this redundancy is intended. The variant
without it is `matrix_summed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.experiments.cases.skeleton import (
    END,
    HANDING_OUT,
    LOCAL_READING,
    LOCAL_WITHDRAWING,
    MASTER,
    SEARCH,
    Searcher,
    Worker,
    begin_together,
    note,
    run_warm,
    take_timed,
    total_s,
    warm,
)
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tupelo_bench.backends.base import VisitOrder
    from tupelo_bench.experiments.warming import WarmUp
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

DTYPE = "f8"
FINISHED = "product"  # the tag of a finished row, which the master awaits without its number
EACH_SIZE, EACH_WORKERS = 50, 5  # whose searches are recorded one by one, as in figures 23 and 24
SCHEMA = Schema(
    (
        Shape("row", 5, (1,)),
        Shape("matrixA", 3, (1,), awaited=False),
        Shape("matrixB", 3, (1,)),
        Shape("matrixC", 4, (1,), awaited=False),
        Shape(FINISHED, 4),
    )
)


@dataclass(frozen=True)
class Plan:
    """One cell of the case."""

    size: int
    workers: int
    all_b_at_one: bool
    seed: int
    order: VisitOrder = "round robin"

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """A and B."""
        import numpy as np

        choice = np.random.default_rng(self.seed)
        shape = (2, self.size, self.size)
        a, b = choice.integers(0, 100, shape).astype(DTYPE)
        return a, b

    def rows_of_a(self, worker: int) -> range:
        """The rows of A, and of the product, that are a worker's."""
        return range(worker, self.size, self.workers)

    def rows_of_b(self, worker: int) -> range:
        """The rows of B that a worker has."""
        if not self.all_b_at_one:
            return self.rows_of_a(worker)
        return range(self.size if worker == 0 else 0)


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: a master and the workers."""
    results, profilers = run_warm(stage, master, worker, plan)
    note(stage, profilers, total_s(profilers))
    is_drawn = stage.quick or (plan.size, plan.workers) == (EACH_SIZE, EACH_WORKERS)
    if stage.repeat == 0 and is_drawn:
        for number, each_ns in enumerate(results[1:]):
            stage.note(f"{SEARCH}, worker {number}", "s", [each / 1e9 for each in each_ns])


def master(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Hand out the rows, collect those of the product, and check them."""
    space = backend.open(MASTER)
    a, b = plan.matrices()
    rows = [
        ("row", worker, matrix, row, backend.array(values[row]))
        for worker in range(plan.workers)
        for matrix, values, mine in (
            ("matrixA", a, plan.rows_of_a(worker)),
            ("matrixB", b, plan.rows_of_b(worker)),
        )
        for row in mine
    ]
    warm(bench, warm_up, space)
    begin_together(bench)
    with bench.profiler.time(HANDING_OUT, len(rows)):
        for row in rows:
            space.put(*row)
    product = take_product(bench, backend, plan, space, FINISHED)
    check_product(backend, plan, product)
    space.close()


def take_product(bench: Bench, backend: Backend, plan: Plan, space: Any, tag: str) -> list[Any]:
    """The rows of the product, in any order; the time ends with the last."""
    template = (tag, int, backend.array_kind(), int)
    rows = [space.take(*template) for _ in range(plan.size)]
    bench.profiler.moment(END)
    return rows


def check_product(backend: Backend, plan: Plan, rows: Sequence[Any]) -> None:
    """Compare the product with that of a sequential program.

    Raises:
        WrongResultError: it is another.
    """
    import numpy as np

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


def worker(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> list[int]:
    """Store the own rows, then make rows of the product; how long each search took."""
    me = Worker.open(bench, backend, plan.workers)
    searcher = Searcher(me, plan.order)
    kind = backend.array_kind()
    me.warm(warm_up)
    begin_together(bench)
    handed_out = len(plan.rows_of_a(me.number)) + len(plan.rows_of_b(me.number))
    template = ("row", me.number, str, int, kind)
    for _ in range(handed_out):
        _, _, matrix, row, values = take_timed(bench.profiler, HANDING_OUT, me.master, template)
        me.put_local([(matrix, row, values)])
    for row in plan.rows_of_a(me.number):
        make_row(me, searcher, plan, row)
    me.close()
    return searcher.each_ns


def make_row(me: Worker, searcher: Searcher, plan: Plan, row: int) -> None:
    """Add up a row of the product in the local space, and put it at the master's."""
    import numpy as np

    backend, profiler, kind = me.backend, me.bench.profiler, me.backend.array_kind()
    begin = perf_counter_ns()
    found = me.own.try_read("matrixA", row, kind)
    profiler.add(LOCAL_READING, perf_counter_ns() - begin)
    factors = backend.numbers(found[2], DTYPE)
    partial = ("matrixC", row, kind, int)
    me.put_local([("matrixC", row, backend.array(np.zeros(plan.size)), 0)])
    for k in range(plan.size):
        of_b = searcher.read("matrixB", k, kind)
        begin = perf_counter_ns()
        _, _, values, counter = me.own.take(*partial)
        profiler.add(LOCAL_WITHDRAWING, perf_counter_ns() - begin)
        term = factors[k] * backend.numbers(of_b[2], DTYPE)
        total = backend.array(backend.numbers(values, DTYPE) + term)
        me.put_local([("matrixC", row, total, counter + 1)])
    begin = perf_counter_ns()
    _, *finished = me.own.take(*partial)
    profiler.add(LOCAL_WITHDRAWING, perf_counter_ns() - begin)
    me.put_remote(FINISHED, *finished)
