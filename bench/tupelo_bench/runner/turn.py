"""The turn of one peer in one experiment: its cells are repeated while its part of the time lasts.

First each cell is repeated as often as the statistics need, the most telling cells first, and in
turns with the cells that it is compared with. Then all cells are repeated in turns. A cell whose
share suffices for fewer repeats has those, three at least. A cell that is further over its share is
stopped and listed, and larger sizes of it are not tried. A repeat that the end of the time stops is
noted. It is a failure if the repeats before it took a small part of that time: a system that hangs
now and then is not judged by its other repeats.

Of the first repeat of a large cell nobody can say whether it is slow or hangs. The smallest sizes
are done in seconds: there the budget says what is begun, but stops nothing, and who is not done
after a minute has failed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tupelo_bench.backends.base import Backend
from tupelo_bench.harness import stopping
from tupelo_bench.harness.budget import FOREVER_S
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.workers import OverBudgetError, WrongResultError
from tupelo_bench.runner.notebook import what_failed
from tupelo_bench.runner.options import REPEATS_MIN
from tupelo_bench.runner.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from tupelo_bench.backends.base import Peer
    from tupelo_bench.harness.budget import Part
    from tupelo_bench.harness.record import Why
    from tupelo_bench.runner.job import Block, Job
    from tupelo_bench.runner.notebook import Notebook
    from tupelo_bench.runner.options import Options

CELL_LEAST_S = 0.5  # no cell is tried with less than that: it could not even begin
# A repeat that takes so many times what the others took is no slow one: somebody waits in vain. But
# a machine that others use, too, stands still for seconds.
HANGS_TIMES, HANGS_LEAST_S = 4, 5.0
# So long a repeat of the smallest sizes may take, whatever the budget: the slowest of all systems
# (JavaSpaces) needs up to 16 s for one, on two processors that others use, too.
QUICK_MOST_S = 60.0


@dataclass
class Cell:
    """A job while it runs: its repeats so far."""

    job: Job
    repeats: int
    """How many are wanted."""
    before: int = 0
    """How many an earlier sitting has made, which are not made again."""
    stages: list[Stage] = field(default_factory=list)
    longest_s: float = 0.0
    """Of its repeats."""
    closed: bool = False
    """Whether it is not to be repeated again."""


@dataclass
class Turn:
    """The cells of a block, whose peer is started, and the time that they have."""

    block: Block
    peer: Peer | None
    cells: Sequence[Cell]
    part: Part
    options: Options
    notebook: Notebook
    over: dict[str, Job] = field(default_factory=dict)
    """The last job of each family that was over budget."""
    upto: int | None = None
    """How many repeats each cell has at most when the turn is over; None for all."""

    def least(self) -> None:
        """Repeat each cell as often as the statistics need, in the order of what they tell."""
        left_weight = sum(cell.job.weight for cell in self.cells)
        for group in _groups(self.cells):
            self._first_repeats(group, left_weight)
            left_weight -= sum(cell.job.weight for cell in group)
            if self.upto is None:
                self.notebook.progress.done(len(group))

    def more(self, alone: Container[str]) -> None:
        """Repeat all cells in turn, as long as there is time.

        Cells whose parameters, as they are told, are in `alone` are left out: there is nothing to
        compare them with. Their time is for the peers that follow.
        """
        compared = [cell for cell in self.cells if told(cell.job.parameters) not in alone]
        while True:
            again = [c for c in compared if not c.closed and len(c.stages) < self._most(c)]
            if not again:
                return
            for cell in again:
                # Of one that an earlier sitting has, nobody knows here how long it takes.
                least_s = cell.longest_s if cell.stages else CELL_LEAST_S
                if least_s > self.part.left_s or not self._repeat(cell, self.part.end):
                    cell.closed = True

    def _most(self, cell: Cell) -> int:
        return cell.repeats if self.upto is None else min(cell.repeats, self.upto)

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

    def _first_repeats(self, group: list[Cell], left_weight: float) -> None:
        """The repeats that the cells of a group need to count, in turns.

        The weight of these cells and of all to come is `left_weight`.
        """
        group = [cell for cell in group if not cell.closed and self._lacks(cell)]
        share_s = self.part.cell_s(sum(cell.job.weight for cell in group), left_weight)
        end = self.part.clock() + share_s
        for cell in group:
            # Nobody knows yet how long it takes: it may not take what the others of the group need.
            most_s = self.part.cell_s(cell.job.weight, left_weight)
            left_weight -= cell.job.weight
            if refused := self._refused(cell.job, self.over.get(cell.job.family)):
                self._take_out(cell, *refused)
            else:
                self._first_repeat(cell, min(end, self.part.clock() + most_s))
        while group := self._going_on(group, end):
            for cell in group:
                self._first_repeat(cell, end)

    def _first_repeat(self, cell: Cell, deadline: float) -> None:
        """One of the repeats that a cell needs; without them it is over budget."""
        left_s = deadline - self.part.clock()
        if self._repeat(cell, deadline):
            return
        cell.closed = True
        if len(cell.stages) < self._fewest(cell):
            repeat = len(cell.stages) + 1
            text = f"stopped in repeat {repeat} of {self._needed(cell)}, after {left_s:.0f} s"
            self._over_budget(cell, text)

    def _going_on(self, group: Iterable[Cell], end: float) -> list[Cell]:
        """Those of a group that are repeated next: in order, as many as there is time for."""
        found = []
        left_s = end - self.part.clock()
        for cell in group:
            repeats = len(cell.stages)
            if cell.closed or not self._lacks(cell):
                continue
            missing = max(1, self._fewest(cell) - repeats)
            if missing * cell.longest_s <= left_s:
                left_s -= missing * cell.longest_s
                found.append(cell)
            elif repeats < self._fewest(cell):
                text = (
                    f"a repeat takes {cell.longest_s:.1f} s, {missing} more are needed, and"
                    f" {max(0.0, left_s):.0f} s of its share are left"
                )
                self._over_budget(cell, text)
        return found

    def _lacks(self, cell: Cell) -> bool:
        """Whether a cell lacks repeats that it needs, and may have in this turn."""
        return len(cell.stages) < self._needed(cell)

    def _needed(self, cell: Cell) -> int:
        least = max(0, self.options.repeats_least - cell.before)
        return min(cell.repeats, least if self.upto is None else min(least, self.upto))

    def _fewest(self, cell: Cell) -> int:
        """With how many repeats a cell counts for which there is no time for all that it needs."""
        return min(self._needed(cell), max(0, REPEATS_MIN - cell.before))

    def _over_budget(self, cell: Cell, text: str) -> None:
        self.over[cell.job.family] = cell.job
        self._take_out(cell, "over budget", text)

    def _repeat(self, cell: Cell, deadline: float) -> bool:
        """One repeat more; False if the time was over before it ended, and it may just be slow."""
        name = f"{self.block.experiment} {self.block.peer.name} {told(cell.job.parameters)}"
        self.notebook.progress.show(name, len(cell.stages), cell.repeats)
        stage = self._stage(cell, deadline)
        begin = self.part.clock()
        stopping.go_on()
        try:
            self._once(cell.job, stage)
        except OverBudgetError:
            stopping.go_on()
            return self._stopped(cell, self.part.clock() - begin)
        except WrongResultError as error:
            stopping.go_on()
            self._take_out(cell, "wrong result", str(error))
        except Exception as error:  # noqa: BLE001 - whatever a peer says, the others go on
            stopping.go_on()
            self._take_out(cell, "failed", what_failed(error))
        else:
            cell.longest_s = max(cell.longest_s, self.part.clock() - begin)
            cell.stages.append(stage)
        return True

    def _stopped(self, cell: Cell, after_s: float) -> bool:
        """Note that a repeat did not end in time; whether it seems to hang, and has failed."""
        before = len(cell.stages)
        text = f"repeat {before + 1} was stopped after {after_s:.1f} s"
        if self.options.quick:
            usual = "in the smallest sizes it takes seconds, so somebody waits in vain"
            self._take_out(cell, "failed", f"{text}; {usual}")
            return True
        if before and after_s > max(HANGS_LEAST_S, HANGS_TIMES * cell.longest_s):
            others = f"none of the {before} before took more than {cell.longest_s:.1f} s"
            self._take_out(cell, "failed", f"{text}; {others}")
            return True
        if before >= self._fewest(cell):
            counting = f"the {before} before count, of up to {cell.longest_s:.1f} s each"
            self._remark(cell.job, "repeat stopped", f"{text}; {counting}")
        return False

    def _stage(self, cell: Cell, deadline: float) -> Stage:
        """What the next repeat works with."""
        repeat = cell.before + len(cell.stages)
        if self.options.quick:
            deadline = self.part.clock() + QUICK_MOST_S
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
        except BaseException:
            # What went wrong first is what is told: a peer whose server is gone can not drop.
            with suppress(Exception):
                self.peer.drop()
            raise
        self.peer.drop()

    def _take_out(self, cell: Cell, why: Why, text: str) -> None:
        """What went well before does not count either: nobody knows what it was worth."""
        cell.closed = True
        cell.stages.clear()
        self._remark(cell.job, why, text)

    def _remark(self, job: Job, why: Why, text: str) -> None:
        self.notebook.remark(self.block.experiment, self.block.peer.name, job.parameters, why, text)


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """The cells in the order of their ranks, with each those that are repeated in turns with it."""
    groups: dict[object, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: cell.job.rank):
        groups.setdefault(cell.job.in_turns or id(cell), []).append(cell)
    return list(groups.values())
