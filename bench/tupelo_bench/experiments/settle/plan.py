"""What each client of a cell does, and when, in the series with the paper's delays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tupelo_bench.experiments.workload import ENTRIES

if TYPE_CHECKING:
    from tupelo_bench.experiments.workload import Entry, Workload
    from tupelo_bench.runner import Stage

DELAY_MIN_S, DELAY_SPREAD_S = 0.200, 0.050
OBJECTS = 1_000


@dataclass(frozen=True)
class Plan:
    """One cell."""

    kind: str
    clients: int
    quick: bool
    workload: Workload | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All kinds of entry that there may be in the space."""
        return tuple(ENTRIES.values()) if self.workload is None else self.workload.entries

    def parts(self, stage: Stage) -> list[Part]:
        """What each client does, and when."""
        choice = stage.random
        scale, objects = (0.1, OBJECTS // 10) if self.quick else (1.0, OBJECTS)
        # As in a space that is aged, where somebody has put something just before; at least what a
        # virtual machine needs to compile, of which each object is a put and a take.
        warm_up = objects if self.quick else max(objects, stage.peer.warm_up // 2)
        delays_s = [
            scale * (DELAY_MIN_S + choice.uniform(0, DELAY_SPREAD_S)) for _ in range(self.clients)
        ]
        return [
            Part(
                self.kind,
                objects,
                sum(delays_s[1 : number + 1]),
                delays_s[number],
                warm_up=warm_up,
                until_steady=stage.peer.compiles and not self.quick,
                aged=self.workload is not None,
            )
            for number in range(self.clients)
        ]


@dataclass(frozen=True)
class Part:
    """What one client does, and when."""

    kind: str
    objects: int
    start_s: float
    """After the start of all."""
    pause_s: float
    """Between the phases."""
    warm_up: int
    """How many objects it puts and takes first, at once with all the others; they do not count."""
    aged: bool
    """Whether the space is aged when all are warm, while they wait."""
    until_steady: bool = False
    """Whether it goes on with that until its times differ no more."""
