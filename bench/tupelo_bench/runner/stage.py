"""What one repeat of a job works with, and what it notes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tupelo_bench.harness import workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tupelo_bench.harness.histogram import Histogram
    from tupelo_bench.harness.placement import Placement
    from tupelo_bench.harness.profiler import Profiler
    from tupelo_bench.harness.record import Parameters


@dataclass(frozen=True)
class Note:
    """What one repeat measured of one metric."""

    metric: str
    unit: str
    samples: list[float]
    histogram: Histogram | None
    is_kept: bool = False
    """Whether its histogram is in the record for itself, too, beside that of all repeats."""


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
        self,
        metric: str,
        unit: str,
        samples: Sequence[float],
        histogram: Histogram | None = None,
        *,
        is_kept: bool = False,
    ) -> None:
        """Record samples of a metric; those of all repeats come together.

        A histogram is merged with those of the other repeats, and kept for itself if `is_kept`.
        """
        if samples:
            self.noted.append(Note(metric, unit, list(samples), histogram, is_kept))
