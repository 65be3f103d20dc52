"""How much work a client of the overlapping series does: enough that its phases can be timed.

A phase should last a second for a client alone. That may need more objects than a small machine has
memory for, or more time than the budget has. Then the phase is shorter, and a client goes through
several rounds (write, pause, take), so that its phases of a kind last a second together. If not
even that fits into the time, they last less: a tenth of a second in a run of an hour for
everything. Objects and phase are found once per peer, by a client alone that does them. So all
cells of the peer do the same work, and no time of a phase is extrapolated. Response times are those
of a round, so that cells can have different numbers of rounds. All clients warm up at once before
the rounds that count. If the clients have the tuples themselves, they warm up with a whole round,
since it is the first to touch the memory. If a server has the tuples, they warm up with a part of a
round. A virtual machine gets as many operations as it needs to compile.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tupelo_bench.experiments.settle.metrics import SPACE
from tupelo_bench.experiments.settle.phases import fetch, write
from tupelo_bench.experiments.workload import ENTRIES, fields_of, template_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.base import Backend
    from tupelo_bench.harness.runner import Stage
    from tupelo_bench.harness.workers import Bench

QUICK_PHASE_S = 0.02
QUICK_PART = 25  # of the objects of a full run
WARM_SHARE = 0.1  # of a round, before those that count, where a server has the tuples
KNEE_SHARE = 0.5  # of the time of a peer: no cell gets more than half of the rest, not the largest
STRETCH = 1.2  # starts, pauses, and new processes
OBJECTS_FIRST = 200  # of the calibration, which goes on to more
GROWTH_MAX = 8.0  # from one size to the next: the first sizes tell little
# Of a client, so that those of all fit into the memory of a small machine: of empty entries, and of
# those that have something in them.
OBJECTS_MAX, OBJECTS_LARGE_MAX = 500_000, 15_000


@dataclass(frozen=True)
class Length:
    """How long a client is to write, and to take."""

    phase_s: float
    """In a round, if it is alone."""
    together_s: float
    """In all rounds, with all the others."""


# The first that fits into the time is taken. Together a second, as long as that can be.
LENGTHS = (
    *(Length(phase_s, 1.0) for phase_s in (1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12)),
    Length(0.1, 0.5),
    Length(0.1, 0.25),
    Length(0.05, 0.1),
    Length(0.05, 0.05),
)


@dataclass
class Load:
    """The work of the clients of one peer in the overlapping series of a kind: found once."""

    kind: str
    """Of the entries."""
    counts: Sequence[int]
    """Of the clients of the cells that have to fit into the time."""
    repeats: int
    """That these need."""
    lengths: Sequence[Length] = LENGTHS
    quick: bool = False
    objects: int = 0
    """Of a client in a round."""
    phase_s: float = 0.0
    """The shorter phase of a client alone, as measured."""
    together_s: float = 0.0
    """Of the phases of a kind of each client, all rounds."""

    @property
    def objects_max(self) -> int:
        """The most that a client may put in a round."""
        objects_max = OBJECTS_MAX if self.kind == "Null" else OBJECTS_LARGE_MAX
        return objects_max // QUICK_PART if self.quick else objects_max

    def find(self, stage: Stage) -> None:
        """Run a client alone, if that was not done yet."""
        if self.objects:
            return
        left_s = math.inf if stage.part_end is None else stage.part_end - time.monotonic()
        wanted = self.affordable(left_s, len(stage.placement.client), warm_share(stage.peer))
        # A virtual machine that has not compiled yet seems slow, and would get too little to do.
        warm_up = OBJECTS_FIRST if stage.quick else max(OBJECTS_FIRST, stage.peer.warm_up)
        asked = Asked(self.kind, wanted.phase_s, self.objects_max, warm_up)
        ((found,), _) = stage.run((calibrate, (stage.peer, asked)))
        self.objects, self.phase_s = found
        self.together_s = wanted.together_s

    def warm_up(self, peer: Backend) -> int:
        """How many objects each client puts and takes before those that count."""
        return max(int(self.objects * warm_share(peer)), peer.warm_up // 2)

    def affordable(self, left_s: float, processors: int, warm: float) -> Length:
        """The longest with which all cells fit into their share of what is left.

        `warm` is the part of a round that comes before those that count.
        """
        for length in self.lengths:
            phases = sum(n * (warm + rounds(length, n, processors)) for n in self.counts)
            if 2 * length.phase_s * phases * STRETCH * self.repeats <= KNEE_SHARE * left_s:
                return length
        return self.lengths[-1]

    def rounds(self, clients: int, processors: int) -> int:
        """How often each of so many clients writes and takes."""
        return rounds(Length(self.phase_s, self.together_s), clients, processors)


def warm_share(peer: Backend) -> float:
    """The part of a round with which the clients warm up."""
    return WARM_SHARE if peer.has_server else 1.0


def rounds(length: Length, clients: int, processors: int) -> int:
    """How many rounds each of so many clients needs to write, and to take, that long.

    Where there are more clients than processors each phase takes longer by as much, at least.
    """
    longer = max(1.0, clients / processors)
    # Rounded, not up: for a second that lacks a few milliseconds nobody wants two rounds.
    return max(1, round(length.together_s / (length.phase_s * longer)))


def quick_load(kind: str, counts: Sequence[int], repeats: int) -> Load:
    """The work of a quick run: a round of short phases."""
    return Load(kind, counts, repeats, (Length(QUICK_PHASE_S, QUICK_PHASE_S),), quick=True)


@dataclass(frozen=True)
class Asked:
    """What is to be found out by a client alone."""

    kind: str
    """Of the entries."""
    phase_s: float
    """How long its shorter phase is to take, at least."""
    objects_max: int
    warm_up: int
    """Operations that come first, at least, and are not timed."""


def calibrate(bench: Bench, backend: Backend, asked: Asked) -> tuple[int, float]:
    """Write and take more and more objects, until the shorter phase takes long enough.

    Returns:
        How many objects that were, and how long the shorter phase took, in seconds.
    """
    del bench
    space = backend.open(SPACE)
    entry = ENTRIES[asked.kind]
    fields, template = fields_of(backend, entry, 0), template_of(backend, entry)
    objects = min(OBJECTS_FIRST, asked.objects_max)
    for _ in range(0, asked.warm_up, 2 * objects):
        write(space, fields, objects)
        fetch(space, template, objects)
    while True:
        phase_s = math.inf
        for phase, argument in ((write, fields), (fetch, template)):
            begin = time.perf_counter()
            phase(space, argument, objects)
            phase_s = min(phase_s, time.perf_counter() - begin)
        if phase_s >= asked.phase_s or objects == asked.objects_max:
            break
        growth = min(GROWTH_MAX, 1.1 * asked.phase_s / phase_s)
        objects = min(asked.objects_max, int(objects * growth) + 1)
    space.close()
    return objects, phase_s
