"""Runs the cells of experiments, one after the other, within a budget, and records what comes out.

A `Job` is one backend at one set of parameters. It is repeated; each repeat gets fresh spaces and a
seed of its own. Cells share the time: one that is over its share is stopped and listed, and larger
sizes of it are not tried.
"""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Peer, Schema
from tupelo.bench.harness import workers
from tupelo.bench.harness.lifetime import ServerFailedError
from tupelo.bench.harness.placement import Placement, placement
from tupelo.bench.harness.record import Measure, Parameters, Remark, Run, Why
from tupelo.bench.harness.workers import OverBudgetError, WorkerFailedError, WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tupelo.bench.experiments.workload import Workload
    from tupelo.bench.harness.profiler import Profiler
    from tupelo.bench.harness.progress import Progress

SHARES = 6.0  # a cell may use that many times the mean share: cells differ, most are short
REPEATS_MIN = 3
SHARE_MIN_S = 5.0
NOTHING = Schema(())


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    quick: bool = False
    repeats: int = 10
    seed: int = 1
    budget_s: float | None = None
    workload: Workload | None = None
    """That ages the spaces of `settle`, instead of a generated one."""


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
    noted: list[tuple[str, str, list[float], str | None]] = field(default_factory=list)

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
        self, metric: str, unit: str, samples: Sequence[float], histogram: str | None = None
    ) -> None:
        """Record samples of a metric; those of all repeats come together."""
        if samples:
            self.noted.append((metric, unit, list(samples), histogram))


@dataclass(frozen=True)
class Job:
    """One backend at one set of parameters."""

    parameters: Parameters
    once: Callable[[Stage], None]
    """One repeat: measures, checks, and notes. It must be over when it returns."""
    family: str = ""
    """Jobs of one family come in ascending size: where one is over budget, the larger ones are."""
    schema: Schema = NOTHING
    spaces: tuple[str, ...] = ()
    size_bytes: int = 0
    repeats: int | None = None
    """Where it is not for the user to say: the samples come from within."""
    weight: float = 1.0
    """Its share of the budget, beside other jobs."""


@dataclass
class Runner:
    """Runs jobs into a record."""

    run: Run
    options: Options
    progress: Progress
    left_weight: float = 0.0
    """Of the jobs that are still to come; their share of the time is measured by it."""
    begun: float = field(default_factory=time.monotonic)

    def plan(self, weight: float) -> None:
        """Say how much is to come, before the first job."""
        self.left_weight = weight
        self.begun = time.monotonic()

    def all_of(
        self, experiment: str, peer_class: type[Peer], where: Placement, jobs: Sequence[Job]
    ) -> None:
        """Run all jobs of one peer, its server started once."""
        if missing := peer_class.missing():
            text = f"{missing}: {peer_class.how_to_install}"
            self._remark(experiment, peer_class.name, {}, "not installed", text)
            self._skip(jobs)
            return
        self.run.versions.setdefault(peer_class.name, peer_class.version())
        self.run.notes.setdefault(peer_class.name, peer_class.how)
        over: dict[str, Parameters] = {}
        try:
            with started(peer_class, where) as peer:
                for job in jobs:
                    self._job(experiment, peer, where, job, over)
                    self._skip([job])
        except (ServerFailedError, OSError) as error:
            self._remark(experiment, peer_class.name, {}, "failed", str(error))

    def _skip(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.left_weight -= job.weight
            self.progress.done()

    def _job(
        self,
        experiment: str,
        peer: Peer,
        where: Placement,
        job: Job,
        over: dict[str, Parameters],
    ) -> None:
        if isinstance(peer, Backend) and (lack := peer.lacks(job.schema)):
            self._remark(experiment, peer.name, job.parameters, "can not", lack)
            return
        if job.family in over:
            text = f"not tried: over budget at {told(over[job.family])}"
            self._remark(experiment, peer.name, job.parameters, "over budget", text)
            return
        share_s = self._share_s(job)
        stages: list[Stage] = []
        try:
            for stage in self._stages(experiment, peer, where, job, share_s):
                self._repeat(peer, job, stage)
                stages.append(stage)
        except OverBudgetError:
            if len(stages) < REPEATS_MIN:
                over[job.family] = job.parameters
                text = f"stopped after {share_s:.0f} s"
                self._remark(experiment, peer.name, job.parameters, "over budget", text)
                return
        except WrongResultError as error:
            self._remark(experiment, peer.name, job.parameters, "wrong result", str(error))
            return
        except (WorkerFailedError, ServerFailedError, OSError) as error:
            self._remark(experiment, peer.name, job.parameters, "failed", str(error))
            return
        self._keep(experiment, peer.name, job.parameters, stages)

    def _stages(
        self, experiment: str, peer: Peer, where: Placement, job: Job, share_s: float
    ) -> Iterator[Stage]:
        """A stage per repeat, as long as there is time for one more."""
        begin = time.monotonic()
        deadline = None if self.options.budget_s is None else begin + share_s
        repeats = job.repeats or self.options.repeats
        label = f"{experiment} {peer.name} {told(job.parameters)}"
        for repeat in range(repeats):
            spent_s = time.monotonic() - begin
            if repeat >= REPEATS_MIN and spent_s / repeat * (repeat + 1) > share_s:
                return
            self.progress.show(label, repeat, repeats)
            seed = self.options.seed * 1_000 + repeat
            yield Stage(
                peer, job.parameters, where, seed, repeat, self.options.quick, deadline=deadline
            )

    def _repeat(self, peer: Peer, job: Job, stage: Stage) -> None:
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
        together: dict[str, Measure] = {}
        for stage in stages:
            for metric, unit, samples, histogram in stage.noted:
                fresh = Measure(experiment, backend, parameters, metric, unit, [], histogram)
                together.setdefault(metric, fresh).samples.extend(samples)
        self.run.measures.extend(together.values())

    def _share_s(self, job: Job) -> float:
        """The longest that a job may take."""
        if self.options.budget_s is None:
            return float("inf")
        left_s = self.options.budget_s - (time.monotonic() - self.begun)
        share_s = SHARES * left_s * job.weight / max(self.left_weight, job.weight)
        return max(SHARE_MIN_S, min(share_s, left_s))

    def _remark(
        self, experiment: str, backend: str, parameters: Parameters, why: Why, text: str
    ) -> None:
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


def told(parameters: Parameters) -> str:
    """Parameters as text: `type=Null fill=0`."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())
