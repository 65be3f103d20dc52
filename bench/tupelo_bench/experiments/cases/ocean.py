"""Ocean model: a grid in vertical panels, one per worker, which exchange borders at each step.

    ("hand out", worker, data)                        the panels at the beginning
    ("oceanModel", "border", name, iteration, data)
    ("panel", worker, data)                           the panels at the end

The master hands out the panels. A worker puts its borders into its own space and looks for those of
its neighbours in all spaces, its own first. Without the iteration in the tuple, a fast worker's
border of the next step could be taken for this one's; the name says from whom it is, and to whom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.experiments.cases.skeleton import (
    END,
    HANDING_OUT,
    MASTER,
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
    import numpy as np

    from tupelo_bench.backends.base import VisitOrder
    from tupelo_bench.experiments.warming import WarmUp
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

DTYPE = "f8"
SCHEMA = Schema((Shape("hand out", 3, (1,)), Shape("oceanModel", 5, (2, 3)), Shape("panel", 3)))


@dataclass(frozen=True)
class Plan:
    """One cell of the case."""

    size: int
    workers: int
    iterations: int
    order: VisitOrder
    seed: int

    def grid(self) -> np.ndarray:
        """The grid at the beginning."""
        import numpy as np

        return np.random.default_rng(self.seed).random((self.size, self.size))

    def columns(self, worker: int) -> slice:
        """The columns of a worker's panel."""
        size, workers = self.size, self.workers
        return slice(size * worker // workers, size * (worker + 1) // workers)


def step(grid: np.ndarray) -> np.ndarray:
    """One step of all points that have four neighbours."""
    inner = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
    new = grid.copy()
    new[1:-1, 1:-1] = 0.5 * grid[1:-1, 1:-1] + 0.125 * inner
    return new


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: a master and the workers."""
    _, profilers = run_warm(stage, master, worker, plan)
    note(stage, profilers, total_s(profilers))


def master(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Hand out the panels, collect them, and compare them bit by bit with a sequential run."""
    import numpy as np

    space = backend.open(MASTER)
    expected = plan.grid()
    handed_out = [
        ("hand out", number, backend.array(np.ascontiguousarray(expected[:, plan.columns(number)])))
        for number in range(plan.workers)
    ]
    warm(bench, warm_up, space)
    begin_together(bench)
    with bench.profiler.time(HANDING_OUT, len(handed_out)):
        for panel in handed_out:
            space.put(*panel)
    panels = {}
    for _ in range(plan.workers):
        _, number, data = space.take("panel", int, backend.array_kind())
        panels[number] = backend.numbers(data, DTYPE).reshape(plan.size, -1)
    grid = np.concatenate([panels[number] for number in sorted(panels)], axis=1)
    bench.profiler.moment(END)
    for _ in range(plan.iterations):
        expected = step(expected)
    if expected.tobytes() != grid.tobytes():
        message = f"{int((expected != grid).sum())} of {grid.size} points differ"
        raise WrongResultError(message)
    space.close()


def worker(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Step the own panel, with a column of each neighbour beside it."""
    import numpy as np

    me = Worker.open(bench, backend, plan.workers)
    searcher = Searcher(me, plan.order)
    neighbours = [each for each in (me.number - 1, me.number + 1) if 0 <= each < plan.workers]
    template = backend.array_kind()
    me.warm(warm_up)
    begin_together(bench)
    handed_out = ("hand out", me.number, template)
    data = take_timed(bench.profiler, HANDING_OUT, me.master, handed_out)[2]
    panel = backend.numbers(data, DTYPE).reshape(plan.size, -1)
    for iteration in range(plan.iterations):
        me.put_local(
            [
                border(
                    me.number, to, iteration, backend.array(panel[:, -1 if to > me.number else 0])
                )
                for to in neighbours
            ]
        )
        beside = {}
        for source in neighbours:
            data = searcher.take(*border(source, me.number, iteration, template))[4]
            beside[source] = backend.numbers(data, DTYPE)[:, np.newaxis]
        left = [beside[each] for each in neighbours if each < me.number]
        right = [beside[each] for each in neighbours if each > me.number]
        wide = step(np.concatenate([*left, panel, *right], axis=1))
        panel = wide[:, len(left) : wide.shape[1] - len(right)]
    me.put_remote("panel", me.number, backend.array(np.ascontiguousarray(panel)))
    me.close()


def border(source: int, target: int, iteration: int, data: Any) -> tuple[Any, ...]:
    """A border, or a template for one."""
    return ("oceanModel", "border", f"{source}>{target}", iteration, data)
