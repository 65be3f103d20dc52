"""`bench cases`: five programs of master and workers, and what their operations cost.

Beside them, for Tupelo, how many spaces a search visits by each of its orders (`visits`).

Buravlev, De Nicola, Mezzina: Evaluating the efficiency of Linda implementations, Concurrency and
Computation: Practice and Experience 30(8), 2018.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from tupelo_bench.experiments.base import OURS, Experiment
from tupelo_bench.experiments.cases import (
    matrix_blocks,
    matrix_rows,
    matrix_summed,
    ocean,
    password,
    skeleton,
    sorting,
    visits,
)
from tupelo_bench.harness.parameters import told
from tupelo_bench.runner import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tupelo_bench.backends.base import Peer, Schema, VisitOrder
    from tupelo_bench.harness.record import Measure, Run
    from tupelo_bench.presentation.figure import Figure
    from tupelo_bench.presentation.printed import Printed
    from tupelo_bench.runner import Options, Stage

TUPLE_BYTES = 150
# Where time is short: the sizes of the paper's figures in this order; of the password search before
# them one for which every system has the time.
FIRST: dict[str, tuple[int, ...]] = {
    "password": (10_000, 100_000, 1_000_000),
    "sorting": (1_000_000, 10_000_000),
    "ocean": (600, 1_200),
    "matrix rows": (100, 50),
    matrix_summed.CASE: (),  # in no figure of the paper
    "matrix blocks": (100,),
}
EDGES = (1, 5, 15)  # workers: in the ocean model it is five at least
# With so many, and with a number between: of the first of these sizes, the second, the third.
RANKS = ((0, 1), (2, 4), (3, 5))
RANKS_LAST = (6, 7)  # of the sizes that are in no figure
# Of the size, what weighs as five more workers. A pair of the password search is a put: so for whom
# a hundred thousand of them take too long, by however many workers, a million are not tried.
WEIGHING: dict[str, int] = {"password": 100_000}
WEIGHING_ELSE = 500_000
# The programs by which the paper compares transports, and what they reach their spaces by here.
COMPARED_BY = ({"case": "sorting", "size": 10_000_000},
               {"case": "matrix rows", "size": 100, "rows": "uniform"})  # fmt: skip
TRANSPORTS = ("tupelo-unix", "tupelo-tcp")  # beside `shm://`
GROWING = ("size", "workers")  # the others tell programs apart, they are not more of the same


class Cases(Experiment):
    """Master and workers."""

    name = "cases"
    title = "Five programs of master and workers"
    source = (
        "Buravlev, De Nicola, Mezzina: Evaluating the efficiency of Linda implementations,"
        " CCPE 30(8), 2018"
    )
    question = "What does coordination cost in whole programs, and how does it grow with workers?"
    main = (skeleton.TOTAL,)
    share = 0.25
    weights: ClassVar = dict.fromkeys(TRANSPORTS, 0.3)  # of two programs alone

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        found = [peer for peer in super().peers(all_peers) if not peer.one_process]
        return [peer for peer in found if peer.name != "sqlite-durable"]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        ours = peer.name == OURS
        quick = options.quick
        if peer.name in TRANSPORTS:
            return transport_jobs(quick=quick)
        return [
            *password_jobs(quick=quick),
            *sorting_jobs(quick=quick),
            *ocean_jobs(quick=quick, ours=ours),
            *matrix_row_jobs(quick=quick, ours=ours),
            *matrix_summed_jobs(quick=quick),
            *matrix_block_jobs(quick=quick),
            *(visit_jobs() if ours else ()),
        ]

    def derive(self, run: Run) -> list[Measure]:
        """Whether the two orders of a search visit different numbers of spaces."""
        return visits.derived(run)

    def figures(self, run: Run) -> list[Figure]:
        from tupelo_bench.experiments.cases.figures import figures

        return figures(run)

    def printed(self, run: Run) -> list[Printed]:
        from tupelo_bench.experiments.cases.figures import printed

        return printed(run)


def worker_counts(*, quick: bool, least: int = 1) -> tuple[int, ...]:
    """How many workers."""
    return (max(2, least),) if quick else tuple(n for n in (1, 5, 10, 15) if n >= least)


def job(
    case: str,
    once: Callable[[Stage], None],
    schema: Schema,
    parameters: dict[str, Any],
    payload_bytes: int,
) -> Job:
    """A cell of a case; its size and its workers are among the parameters."""
    workers, size = parameters["workers"], parameters["size"]
    first = FIRST[case]
    ranks = RANKS[first.index(size)] if size in first else RANKS_LAST
    return Job(
        {"case": case, **parameters},
        once,
        family=f"{case} {told({k: v for k, v in parameters.items() if k not in GROWING})}",
        schema=skeleton.with_warm_up(schema),
        spaces=skeleton.names(workers),
        size_bytes=payload_bytes + 1_000 * TUPLE_BYTES,
        weight=1 + workers / 5 + size / WEIGHING.get(case, WEIGHING_ELSE),
        rank=ranks[workers not in EDGES],
    )


def transport_jobs(*, quick: bool) -> list[Job]:
    """The programs that compare transports; of a quick run the sizes that it has."""
    jobs = (*sorting_jobs(quick=quick), *matrix_row_jobs(quick=quick, ours=False))
    names = ("case", "rows") if quick else ("case", "rows", "size")
    wanted = [{name: of[name] for name in names if name in of} for of in COMPARED_BY]
    return [job for job in jobs if any(each.items() <= job.parameters.items() for each in wanted)]


def password_jobs(*, quick: bool) -> Iterator[Job]:
    """Password search; the key as the first field at one size only."""
    for size in (500,) if quick else (10_000, 100_000, 1_000_000):
        for key in ("second", "first"):
            if key == "first" and size not in (500, 100_000):
                continue
            for workers in worker_counts(quick=quick):

                def once(
                    stage: Stage, size: int = size, workers: int = workers, key: str = key
                ) -> None:
                    plan = password.Plan(size, workers, key == "first", stage.seed)
                    password.once(stage, plan)

                yield job(
                    "password",
                    once,
                    password.schema(key_first=key == "first"),
                    {"size": size, "key": key, "workers": workers},
                    size * (password.PAIR_BYTES + TUPLE_BYTES),
                )


def sorting_jobs(*, quick: bool) -> Iterator[Job]:
    """Sorting."""
    for size in (20_000,) if quick else (100_000, 1_000_000, 10_000_000):
        for workers in worker_counts(quick=quick):

            def once(stage: Stage, size: int = size, workers: int = workers) -> None:
                sorting.once(stage, sorting.Plan(size, workers, stage.seed))

            parameters = {"size": size, "workers": workers}
            yield job(
                "sorting",
                once,
                sorting.SCHEMA,
                parameters,
                8 * size,
            )


def ocean_jobs(*, quick: bool, ours: bool) -> Iterator[Job]:
    """Ocean model; the orders of search beside round robin are ours to show."""
    iterations = 5 if quick else 100
    for size in (60,) if quick else (300, 600, 1_200):
        for workers in worker_counts(quick=quick, least=2):
            for order in visits.ORDERS if ours else visits.ORDERS[:1]:

                def once(
                    stage: Stage,
                    size: int = size,
                    workers: int = workers,
                    order: VisitOrder = order,
                ) -> None:
                    ocean.once(stage, ocean.Plan(size, workers, iterations, order, stage.seed))

                parameters = {"size": size, "search": order, "workers": workers}
                yield job(
                    "ocean",
                    once,
                    ocean.SCHEMA,
                    parameters,
                    16 * size * size,  # what is handed out, and what comes back
                )


def matrix_row_jobs(*, quick: bool, ours: bool) -> Iterator[Job]:
    """Matrix multiplication by rows; the orders of search beside round robin are ours to show."""
    each = product(
        (12,) if quick else (50, 100),
        ("uniform", "B-1"),
        worker_counts(quick=quick),
        visits.ORDERS if ours else visits.ORDERS[:1],
    )
    for size, rows, workers, order in each:

        def once(
            stage: Stage,
            size: int = size,
            rows: str = rows,
            workers: int = workers,
            order: VisitOrder = order,
        ) -> None:
            plan = matrix_rows.Plan(size, workers, rows == "B-1", stage.seed, order)
            matrix_rows.once(stage, plan)

        parameters = {"size": size, "rows": rows, "search": order, "workers": workers}
        payload = 40 * size * size + 2 * size * TUPLE_BYTES
        yield job("matrix rows", once, matrix_rows.SCHEMA, parameters, payload)


def matrix_summed_jobs(*, quick: bool) -> Iterator[Job]:
    """The variant of it in which a worker adds up its rows by itself."""
    sizes, spreads = ((12,), ("uniform",)) if quick else ((50, 100), ("uniform", "B-1"))
    for size, rows, workers in product(sizes, spreads, worker_counts(quick=quick)):

        def once(stage: Stage, size: int = size, rows: str = rows, workers: int = workers) -> None:
            plan = matrix_rows.Plan(size, workers, rows == "B-1", stage.seed)
            matrix_summed.once(stage, plan)

        parameters = {"size": size, "rows": rows, "workers": workers}
        yield job(matrix_summed.CASE, once, matrix_summed.SCHEMA, parameters, 24 * size * size)


def matrix_block_jobs(*, quick: bool) -> Iterator[Job]:
    """Matrix multiplication by blocks."""
    for size in (20,) if quick else (50, 100):
        for block in (10, 5):
            for workers in worker_counts(quick=quick):

                def once(
                    stage: Stage, size: int = size, workers: int = workers, block: int = block
                ) -> None:
                    plan = matrix_blocks.Plan(size, workers, block, stage.seed)
                    matrix_blocks.once(stage, plan)

                parameters = {"size": size, "block": block, "workers": workers}
                payload = 24 * size * size + TUPLE_BYTES * (size // block) ** 3
                yield job(
                    "matrix blocks", once, matrix_blocks.SCHEMA, parameters, payload,
                )  # fmt: skip


def visit_jobs() -> Iterator[Job]:
    """Visit order; the seeds are its repeats, and take no time."""
    for tuples in visits.SHARES:
        for order in visits.ORDERS:

            def once(stage: Stage, tuples: str = tuples, order: VisitOrder = order) -> None:
                visits.once(stage, visits.Plan(tuples, order, stage.seed))

            yield Job(
                {"case": visits.CASE, "tuples": tuples, "search": order, "workers": visits.SPACES},
                once,
                family=visits.CASE,
                schema=visits.SCHEMA,
                spaces=skeleton.names(visits.SPACES),
                size_bytes=1_000 * TUPLE_BYTES,
                repeats=1,
            )
