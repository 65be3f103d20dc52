"""What is to run: a job is a cell of the results, a block the jobs that share a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tupelo_bench.backends.base import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tupelo_bench.backends.base import Peer
    from tupelo_bench.harness.placement import Placement, Where
    from tupelo_bench.harness.record import Parameters
    from tupelo_bench.runner.stage import Stage

NOTHING = Schema(())


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
    in_turns: str = ""
    """Jobs of the same word here are compared with each other: the first repeats of all, then the
    second ones, so that minutes in which the machine is slow hit them alike."""


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
