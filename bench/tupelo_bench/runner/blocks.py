"""Runs the blocks of a run, one after the other, each within its part of the budget."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from tupelo_bench.backends.lines import adapter_lines
from tupelo_bench.harness import stopping
from tupelo_bench.harness.budget import FOREVER_S, Budget, Part
from tupelo_bench.harness.parameters import told
from tupelo_bench.runner.notebook import Notebook, what_failed
from tupelo_bench.runner.server import started
from tupelo_bench.runner.turn import Cell, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.harness.progress import Progress
    from tupelo_bench.harness.record import Run
    from tupelo_bench.runner.job import Block
    from tupelo_bench.runner.options import Options


@dataclass
class Runner:
    """Runs jobs into a record."""

    run: Run
    options: Options
    progress: Progress
    reference: str
    """The backend that the others are compared with: what it lacks has nothing beside it."""
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
        visits = max(1, self.options.visits)
        budget.begin(sum(block.weight for block in present) * visits)
        for group in _experiments(present):
            turns = [self._turn(block) for block in group]
            for visit in range(1, visits + 1):
                for turn in self._by_lot(turns, visit):
                    part = budget.part(turn.block.weight)
                    turn.part = part if turn.block.is_limited else Part(FOREVER_S, time.monotonic)
                    # In the last visit, what was not done before.
                    repeats = self.options.repeats_least * visit // visits
                    turn.upto = None if visit == visits else max(1, repeats)
                    self._visit(turn)
            for turn in turns:
                self._keep(turn)

    def _by_lot(self, turns: list[Turn], visit: int) -> list[Turn]:
        """The turns of a visit: as they come, or in an order by lot."""
        if not self.options.by_lot:
            return turns
        lot = random.Random(f"{self.options.seed} {self.run.begin} {visit}")
        return lot.sample(turns, len(turns))

    def _turn(self, block: Block) -> Turn:
        """The cells of a block, with what a record has of them already."""
        cells = []
        for job in block.jobs:
            cell = (block.experiment, block.peer.name, told(job.parameters))
            before = self.options.before.get(cell, 0) if block.is_limited else 0
            wanted = max(0, (job.repeats or self.options.repeats) - before)
            cells.append(Cell(job, wanted, before, closed=wanted == 0))
        return Turn(block, None, cells, Part(FOREVER_S, time.monotonic), self.options,
                    self._notebook)  # fmt: skip

    def _visit(self, turn: Turn) -> None:
        """Start the peer, and repeat its cells as often as this visit has them repeated."""
        block, name = turn.block, turn.block.peer.name
        if all(cell.closed for cell in turn.cells):
            return
        begin = time.monotonic()
        try:
            self._describe(block)
            with started(block.peer, block.where) as peer:
                turn.peer = peer
                turn.least()
                turn.more(self._lost(block))
        except Exception as error:  # noqa: BLE001 - whatever a peer says, the others go on
            stopping.go_on()
            self._notebook.remark(block.experiment, name, {}, "failed", what_failed(error))
        stopping.go_on()
        spent_s = self.run.spent_s.setdefault(block.experiment, {})
        spent_s[name] = round(spent_s.get(name, 0.0) + time.monotonic() - begin, 1)

    def _keep(self, turn: Turn) -> None:
        """Record the cells of a turn that were measured."""
        if self.options.visits > 1:
            self._notebook.progress.done(len(turn.cells))
        for cell in turn.cells:
            if cell.stages:
                self._notebook.keep(
                    turn.block.experiment, turn.block.peer.name, cell.job.parameters, cell.stages
                )

    def _lost(self, block: Block) -> set[str]:
        """The cells of its experiment that we were to have, and as far as is known have not."""
        return {
            told(remark.parameters)
            for remark in self.run.left_out
            if (remark.experiment, remark.backend) == (block.experiment, self.reference)
        }

    def _describe(self, block: Block) -> None:
        """Record which peer it is, how it is driven, and where it runs."""
        name = block.peer.name
        self.run.versions.setdefault(name, block.peer.version())
        of_adapter = f"Its adapter has {adapter_lines(block.peer)} lines."
        self.run.notes.setdefault(name, f"{block.peer.how} {of_adapter}".strip())
        places = self.run.placements.setdefault(block.experiment, [])
        if str(block.where) not in places:
            places.append(str(block.where))


def _experiments(blocks: Sequence[Block]) -> list[list[Block]]:
    """The blocks of each experiment that follow each other."""
    return [list(group) for _, group in groupby(blocks, key=lambda block: block.experiment)]
