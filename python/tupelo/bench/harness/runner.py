"""Runs the cells of experiments, one after the other, within a budget, and records what comes out.

A `Job` is one backend at one set of parameters, a cell. It is repeated; each repeat gets fresh
spaces and a seed of its own. `budget` shares the time: a cell that is over its share is stopped and
listed, and larger sizes of it are not tried.
"""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tupelo
from tupelo.bench.backends.base import Backend, Peer, Schema
from tupelo.bench.harness import workers
from tupelo.bench.harness.budget import FOREVER_S, Budget, Part
from tupelo.bench.harness.histogram import Histogram, merged
from tupelo.bench.harness.lifetime import ServerFailedError
from tupelo.bench.harness.parameters import told
from tupelo.bench.harness.placement import Placement, Where, placement
from tupelo.bench.harness.record import Measure, Parameters, Remark, Run, Why
from tupelo.bench.harness.workers import OverBudgetError, WorkerFailedError, WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tupelo.bench.experiments.workload import Operation, Workload
    from tupelo.bench.harness.profiler import Profiler
    from tupelo.bench.harness.progress import Progress

# (a budget in seconds, repeats): how often every cell is repeated before any is repeated more, with
# that budget or a larger one. Three samples and three can never be told apart (Mann-Whitney at
# 0.05), four and four can if they do not overlap, five and five even if they do a little.
REPEATS_LEAST = ((3_600.0, 5), (900.0, 4))
REPEATS_MIN = 3  # with less than these: more cells, of which no difference can be told
CELL_LEAST_S = 0.5  # no cell is tried with less than that: it could not even begin
NOTHING = Schema(())
PACKAGES = Path(tupelo.__file__).parents[1]


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    quick: bool = False
    repeats: int = 10
    seed: int = 1
    budget_s: float | None = None
    workload: Workload | None = None
    """That ages the spaces of `settle`, instead of a generated one."""
    operations: Mapping[Operation, float] | None = None
    """How often a generated workload reads, takes and writes."""
    kinds: Mapping[str, float] | None = None
    """How often it has each kind of entry."""

    @property
    def repeats_least(self) -> int:
        """How often every cell is repeated before any is repeated more often."""
        budget_s = FOREVER_S if self.budget_s is None else self.budget_s
        enough = (repeats for from_s, repeats in REPEATS_LEAST if budget_s >= from_s)
        return min(self.repeats, next(enough, REPEATS_MIN))


@dataclass(frozen=True)
class Note:
    """What one repeat measured of one metric."""

    metric: str
    unit: str
    samples: list[float]
    histogram: Histogram | None


@dataclass
class Stage:
    """What one repeat of a job works with."""

    peer: Any
    parameters: Parameters
    placement: Placement
    seed: int
    repeat: int
    quick: bool
    deadline: float | None
    part_end: float | None = None
    """When the time of this peer in this experiment is over, on the clock of `time.monotonic`."""
    noted: list[Note] = field(default_factory=list)

    @property
    def random(self) -> random.Random:
        """Fresh random numbers, the same at every run with this seed."""
        return random.Random(self.seed)

    def run(
        self, *targets: tuple[Callable[..., Any], tuple[Any, ...]]
    ) -> tuple[list[Any], list[Profiler]]:
        """Run each function in a process of its own, on the processors for clients."""
        cpus = [self.placement.client] * len(targets)
        return workers.run(targets, deadline=self.deadline, cpus=cpus)

    def run_at(
        self, *targets: tuple[Sequence[int], Callable[..., Any], tuple[Any, ...]]
    ) -> tuple[list[Any], list[Profiler]]:
        """Run each function in a process of its own, on processors of its own."""
        functions = [(function, arguments) for _, function, arguments in targets]
        return workers.run(functions, deadline=self.deadline, cpus=[cpus for cpus, *_ in targets])

    def note(
        self, metric: str, unit: str, samples: Sequence[float], histogram: Histogram | None = None
    ) -> None:
        """Record samples of a metric; those of all repeats come together."""
        if samples:
            self.noted.append(Note(metric, unit, list(samples), histogram))


@dataclass(frozen=True)
class Job:
    """One backend at one set of parameters."""

    parameters: Parameters
    once: Callable[[Stage], None]
    """One repeat: measures, checks, and notes. It must be over when it returns."""
    family: str = ""
    """Where a job is over budget, those of its family that weigh as much or more are not tried."""
    schema: Schema = NOTHING
    spaces: tuple[str, ...] = ()
    size_bytes: int = 0
    repeats: int | None = None
    """Where it is not for the user to say: the samples come from within."""
    weight: float = 1.0
    """How long it takes beside other jobs, roughly."""
    rank: int = 0
    """The lower, the more it tells: where time is short, those of the lowest rank are run first."""
    lack: str | None = None
    """Why this peer can not do it, whatever the schema; None if it can."""
    where: Where | None = None
    """Where its server and clients run; None for the placement of the experiment."""


@dataclass
class Cell:
    """A job while it runs: its repeats so far."""

    job: Job
    repeats: int
    """How many are wanted."""
    stages: list[Stage] = field(default_factory=list)
    longest_s: float = 0.0
    """Of its repeats."""
    closed: bool = False
    """Whether it is not to be repeated again."""


@dataclass
class Block:
    """The jobs of one peer in one experiment at one placement; its server is started once."""

    experiment: str
    peer: type[Peer]
    where: Placement
    jobs: Sequence[Job]
    weight: float
    """Its share of the budget, beside other blocks."""
    is_limited: bool = True
    """Whether it may be cut short."""


@dataclass
class Runner:
    """Runs jobs into a record."""

    run: Run
    options: Options
    progress: Progress
    _part_end: float = FOREVER_S

    def all_of(self, blocks: Sequence[Block]) -> None:
        """Run everything, within the budget."""
        self.progress.expect(sum(len(block.jobs) for block in blocks))
        budget = Budget(self.options.budget_s)
        present = []
        for block in blocks:
            if missing := block.peer.missing():
                text = f"{missing}: {block.peer.how_to_install}"
                self._remark(block.experiment, block.peer.name, {}, "not installed", text)
                self.progress.done(len(block.jobs))
            else:
                present.append(block)
        budget.begin(sum(block.weight for block in present))
        for block in present:
            part = budget.part(block.weight)
            self._block(block, part if block.is_limited else Part(FOREVER_S, time.monotonic))

    def _block(self, block: Block, part: Part) -> None:
        name = block.peer.name
        self.run.versions.setdefault(name, block.peer.version())
        self.run.notes.setdefault(name, block.peer.how)
        places = self.run.placements.setdefault(block.experiment, [])
        if str(block.where) not in places:
            places.append(str(block.where))
        cells = [Cell(job, job.repeats or self.options.repeats) for job in block.jobs]
        begin = time.monotonic()
        self._part_end = part.end
        try:
            with started(block.peer, block.where) as peer:
                self._least(block, peer, cells, part)
                self._more(block, peer, cells, part)
        except (ServerFailedError, OSError) as error:
            self._remark(block.experiment, name, {}, "failed", str(error))
        spent_s = self.run.spent_s.setdefault(block.experiment, {})
        spent_s[name] = round(spent_s.get(name, 0.0) + time.monotonic() - begin, 1)
        for cell in cells:
            if cell.stages:
                self._keep(block.experiment, name, cell.job.parameters, cell.stages)

    def _least(self, block: Block, peer: Peer, cells: Sequence[Cell], part: Part) -> None:
        """Repeat each cell as often as the statistics need, in the order of what they tell."""
        over: dict[str, Job] = {}
        left_weight = sum(cell.job.weight for cell in cells)
        for cell in sorted(cells, key=lambda cell: cell.job.rank):
            job = cell.job
            lack = job.lack or (peer.lacks(job.schema) if isinstance(peer, Backend) else None)
            smaller = over.get(job.family)
            if lack:
                cell.closed = True
                self._remark(block.experiment, peer.name, job.parameters, "can not", lack)
            elif part.left_s < CELL_LEAST_S:
                cell.closed = True
                text = "not tried: the time of this peer was over"
                self._remark(block.experiment, peer.name, job.parameters, "over budget", text)
            elif smaller is not None and smaller.weight <= job.weight:
                cell.closed = True
                text = f"not tried: over budget at {told(smaller.parameters)}"
                self._remark(block.experiment, peer.name, job.parameters, "over budget", text)
            else:
                cell_s = part.cell_s(job.weight, left_weight)
                if not self._first_repeats(block, peer, cell, cell_s):
                    over[job.family] = job
            left_weight -= job.weight
            self.progress.done()

    def _first_repeats(self, block: Block, peer: Peer, cell: Cell, cell_s: float) -> bool:
        """The repeats that a cell needs to count; False if it is over its share."""
        needed = min(cell.repeats, self.options.repeats_least)
        begin = time.monotonic()
        while len(cell.stages) < needed and not cell.closed:
            spent_s = time.monotonic() - begin
            missing = needed - len(cell.stages)
            if spent_s + missing * cell.longest_s > cell_s:
                text = (
                    f"a repeat takes {cell.longest_s:.1f} s, it needs {needed}, and its share is"
                    f" {cell_s:.0f} s"
                )
            elif self._repeat(block, peer, cell, begin + cell_s):
                continue
            else:
                text = f"stopped in repeat {len(cell.stages) + 1} of {needed}, after {cell_s:.0f} s"
            cell.closed = True
            cell.stages.clear()
            self._remark(block.experiment, peer.name, cell.job.parameters, "over budget", text)
            return False
        return True

    def _more(self, block: Block, peer: Peer, cells: Sequence[Cell], part: Part) -> None:
        """Repeat all cells in turn, as long as there is time."""
        while True:
            again = [c for c in cells if not c.closed and len(c.stages) < c.repeats]
            if not again:
                return
            for cell in again:
                if cell.longest_s > part.left_s or not self._repeat(block, peer, cell, part.end):
                    cell.closed = True

    def _repeat(self, block: Block, peer: Peer, cell: Cell, deadline: float) -> bool:
        """One repeat more; False if the time was over before it ended."""
        job, repeat = cell.job, len(cell.stages)
        self.progress.show(
            f"{block.experiment} {peer.name} {told(job.parameters)}", repeat, cell.repeats
        )
        stage = Stage(
            peer,
            job.parameters,
            block.where,
            self.options.seed * 1_000 + repeat,
            repeat,
            self.options.quick,
            deadline=None if deadline == FOREVER_S else deadline,
            part_end=None if self._part_end == FOREVER_S else self._part_end,
        )
        begin = time.monotonic()
        why: Why
        try:
            self._once(peer, job, stage)
        except OverBudgetError:
            return False
        except WrongResultError as error:
            why, text = "wrong result", str(error)
        except (WorkerFailedError, ServerFailedError, OSError) as error:
            why, text = "failed", str(error)
        else:
            cell.longest_s = max(cell.longest_s, time.monotonic() - begin)
            cell.stages.append(stage)
            return True
        # What went well before does not count either: nobody knows what it was worth.
        cell.closed = True
        cell.stages.clear()
        self._remark(block.experiment, peer.name, job.parameters, why, text)
        return True

    def _once(self, peer: Peer, job: Job, stage: Stage) -> None:
        if not isinstance(peer, Backend):
            job.once(stage)
            return
        peer.create(job.schema, job.spaces, job.size_bytes)
        try:
            job.once(stage)
        finally:
            peer.drop()

    def _keep(
        self, experiment: str, backend: str, parameters: Parameters, stages: Sequence[Stage]
    ) -> None:
        """Record what the repeats of a cell noted, those of a metric together."""
        together: dict[str, list[Note]] = {}
        for stage in stages:
            for note in stage.noted:
                together.setdefault(note.metric, []).append(note)
        for metric, notes in together.items():
            groups = [len(note.samples) for note in notes]
            histograms = [note.histogram for note in notes if note.histogram is not None]
            self.run.measures.append(
                Measure(
                    experiment,
                    backend,
                    parameters,
                    metric,
                    notes[0].unit,
                    [sample for note in notes for sample in note.samples],
                    merged(histograms).encoded() if histograms else None,
                    groups if max(groups) > 1 else [],
                )
            )

    def _remark(
        self, experiment: str, backend: str, parameters: Parameters, why: Why, text: str
    ) -> None:
        # A record is published: where this package lies on a disk is nobody's business.
        text = text.replace(f"{PACKAGES}/", "")
        self.run.remarks.append(Remark(experiment, backend, parameters, why, text))
        self.progress.line(f"  {experiment}, {backend} {told(parameters)}: {why}: {text}")


@contextmanager
def started(peer_class: type[Peer], where: Placement | None = None) -> Iterator[Peer]:
    """Start a peer's server for the length of a block, with a data folder of its own."""
    peer = peer_class()
    with tempfile.TemporaryDirectory(prefix=f"tupelo-bench-{peer.name}-") as folder:
        try:
            peer.start(Path(folder), (where or placement("free")).server)
            yield peer
        finally:
            peer.stop()
