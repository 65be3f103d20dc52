"""Runs the blocks of a run, one after the other, each within its part of the budget."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tupelo_bench.backends.space import SharedSpace
from tupelo_bench.harness import stopping
from tupelo_bench.harness.budget import FOREVER_S, Budget, Part
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.runner.notebook import Notebook, what_failed
from tupelo_bench.harness.runner.server import started
from tupelo_bench.harness.runner.turn import Cell, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.harness.progress import Progress
    from tupelo_bench.harness.record import Run
    from tupelo_bench.harness.runner.job import Block
    from tupelo_bench.harness.runner.options import Options


@dataclass
class Runner:
    """Runs jobs into a record."""

    run: Run
    options: Options
    progress: Progress
    _notebook: Notebook = field(init=False)

    def __post_init__(self) -> None:
        self._notebook = Notebook(self.run, self.progress)

    def all_of(self, blocks: Sequence[Block]) -> None:
        """Run everything, within the budget."""
        self.progress.expect(sum(len(block.jobs) for block in blocks))
        budget = Budget(self.options.budget_s)
        present = []
        for block in blocks:
            if missing := block.peer.missing():
                text = f"{missing}: {block.peer.how_to_install}"
                name = block.peer.name
                self._notebook.remark(block.experiment, name, {}, "not installed", text)
                self.progress.done(len(block.jobs))
            else:
                present.append(block)
        budget.begin(sum(block.weight for block in present))
        for block in present:
            part = budget.part(block.weight)
            self._block(block, part if block.is_limited else Part(FOREVER_S, time.monotonic))

    def _block(self, block: Block, part: Part) -> None:
        name = block.peer.name
        cells = [Cell(job, job.repeats or self.options.repeats) for job in block.jobs]
        begin = time.monotonic()
        try:
            self._describe(block)
            with started(block.peer, block.where) as peer:
                turn = Turn(block, peer, cells, part, self.options, self._notebook)
                turn.least()
                turn.more(self._lost(block))
        except Exception as error:  # noqa: BLE001 - whatever a peer says, the others go on
            stopping.go_on()
            self._notebook.remark(block.experiment, name, {}, "failed", what_failed(error))
        stopping.go_on()
        spent_s = self.run.spent_s.setdefault(block.experiment, {})
        spent_s[name] = round(spent_s.get(name, 0.0) + time.monotonic() - begin, 1)
        for cell in cells:
            if cell.stages:
                self._notebook.keep(block.experiment, name, cell.job.parameters, cell.stages)

    def _lost(self, block: Block) -> set[str]:
        """The cells of its experiment that we were to have, and have not. Our block comes first."""
        return {
            told(remark.parameters)
            for remark in self.run.left_out
            if (remark.experiment, remark.backend) == (block.experiment, SharedSpace.name)
        }

    def _describe(self, block: Block) -> None:
        """Record which peer it is, how it is driven, and where it runs."""
        name = block.peer.name
        self.run.versions.setdefault(name, block.peer.version())
        self.run.notes.setdefault(name, block.peer.how)
        places = self.run.placements.setdefault(block.experiment, [])
        if str(block.where) not in places:
            places.append(str(block.where))
