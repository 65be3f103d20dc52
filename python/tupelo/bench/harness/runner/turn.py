"""The turn of one peer in one experiment: its cells are repeated while its part of the time lasts.

First each cell is repeated as often as the statistics need, in the order of what they tell; then
all in turn. A cell that is over its share is stopped and listed, and larger sizes of it are not
tried.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tupelo.bench.backends.base import Backend
from tupelo.bench.harness.budget import FOREVER_S
from tupelo.bench.harness.lifetime import ServerFailedError
from tupelo.bench.harness.parameters import told
from tupelo.bench.harness.runner.stage import Stage
from tupelo.bench.harness.workers import OverBudgetError, WorkerFailedError, WrongResultError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.bench.backends.base import Peer
    from tupelo.bench.harness.budget import Part
    from tupelo.bench.harness.record import Why
    from tupelo.bench.harness.runner.job import Block, Job
    from tupelo.bench.harness.runner.notebook import Notebook
    from tupelo.bench.harness.runner.options import Options

CELL_LEAST_S = 0.5  # no cell is tried with less than that: it could not even begin


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
class Turn:
    """The cells of a block, whose peer is started, and the time that they have."""

    block: Block
    peer: Peer
    cells: Sequence[Cell]
    part: Part
    options: Options
    notebook: Notebook

    def least(self) -> None:
        """Repeat each cell as often as the statistics need, in the order of what they tell."""
        over: dict[str, Job] = {}
        left_weight = sum(cell.job.weight for cell in self.cells)
        for cell in sorted(self.cells, key=lambda cell: cell.job.rank):
            job = cell.job
            refused = self._refused(job, over.get(job.family))
            if refused is not None:
                cell.closed = True
                self._remark(job, *refused)
            elif not self._first_repeats(cell, self.part.cell_s(job.weight, left_weight)):
                over[job.family] = job
            left_weight -= job.weight
            self.notebook.progress.done()

    def more(self) -> None:
        """Repeat all cells in turn, as long as there is time."""
        while True:
            again = [c for c in self.cells if not c.closed and len(c.stages) < c.repeats]
            if not again:
                return
            for cell in again:
                if cell.longest_s > self.part.left_s or not self._repeat(cell, self.part.end):
                    cell.closed = True

    def _refused(self, job: Job, smaller: Job | None) -> tuple[Why, str] | None:
        """Why a job is not tried; `smaller` is the last of its family that was over budget."""
        lack = job.lack or (self.peer.lacks(job.schema) if isinstance(self.peer, Backend) else None)
        if lack:
            return "can not", lack
        if self.part.left_s < CELL_LEAST_S:
            return "over budget", "not tried: the time of this peer was over"
        if smaller is not None and smaller.weight <= job.weight:
            return "over budget", f"not tried: over budget at {told(smaller.parameters)}"
        return None

    def _first_repeats(self, cell: Cell, cell_s: float) -> bool:
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
            elif self._repeat(cell, begin + cell_s):
                continue
            else:
                text = f"stopped in repeat {len(cell.stages) + 1} of {needed}, after {cell_s:.0f} s"
            self._take_out(cell, "over budget", text)
            return False
        return True

    def _repeat(self, cell: Cell, deadline: float) -> bool:
        """One repeat more; False if the time was over before it ended."""
        name = f"{self.block.experiment} {self.peer.name} {told(cell.job.parameters)}"
        self.notebook.progress.show(name, len(cell.stages), cell.repeats)
        stage = self._stage(cell, deadline)
        begin = time.monotonic()
        try:
            self._once(cell.job, stage)
        except OverBudgetError:
            return False
        except WrongResultError as error:
            self._take_out(cell, "wrong result", str(error))
        except (WorkerFailedError, ServerFailedError, OSError) as error:
            self._take_out(cell, "failed", str(error))
        else:
            cell.longest_s = max(cell.longest_s, time.monotonic() - begin)
            cell.stages.append(stage)
        return True

    def _stage(self, cell: Cell, deadline: float) -> Stage:
        """What the next repeat works with."""
        repeat = len(cell.stages)
        return Stage(
            self.peer,
            cell.job.parameters,
            self.block.where,
            self.options.seed * 1_000 + repeat,
            repeat,
            self.options.quick,
            deadline=None if deadline == FOREVER_S else deadline,
            part_end=None if self.part.end == FOREVER_S else self.part.end,
        )

    def _once(self, job: Job, stage: Stage) -> None:
        if not isinstance(self.peer, Backend):
            job.once(stage)
            return
        self.peer.create(job.schema, job.spaces, job.size_bytes)
        try:
            job.once(stage)
        finally:
            self.peer.drop()

    def _take_out(self, cell: Cell, why: Why, text: str) -> None:
        """What went well before does not count either: nobody knows what it was worth."""
        cell.closed = True
        cell.stages.clear()
        self._remark(cell.job, why, text)

    def _remark(self, job: Job, why: Why, text: str) -> None:
        self.notebook.remark(self.block.experiment, self.peer.name, job.parameters, why, text)
