"""Which process runs on which processor. It decides more than one would think, so it is stated.

A round trip between two processes that share a processor is two context switches; on two
processors it is two wake-ups across them. Neither is "the" figure: experiments with a client and a
server report both.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Where = Literal["apart", "together", "free"]
PLACEMENTS: tuple[Where, ...] = ("apart", "together")
"""Those at which whatever has a client and a server is measured."""


@dataclass(frozen=True)
class Placement:
    """Where the server and the clients of an experiment run."""

    name: Where
    server: tuple[int, ...]
    client: tuple[int, ...]

    def __str__(self) -> str:
        """`apart: server on 1, clients on 0`."""
        if self.name == "free":
            return f"free: all on {_list(self.client)}"
        return f"{self.name}: server on {_list(self.server)}, clients on {_list(self.client)}"


def placement(name: Where) -> Placement:
    """The placement of that name on this machine; on one processor all are together."""
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    if name == "free":
        return Placement(name, cpus, cpus)
    if name == "together" or len(cpus) == 1:
        return Placement("together", cpus[:1], cpus[:1])
    return Placement(name, cpus[1:2], cpus[:1])


def lacking(name: Where) -> str | None:
    """Why nothing can be placed so on this machine; None if it can."""
    alone = name == "apart" and len(os.sched_getaffinity(0)) == 1
    return "there is one processor" if alone else None


def pin(cpus: Sequence[int]) -> None:
    """Keep this process on these processors."""
    os.sched_setaffinity(0, cpus)


def _list(cpus: Sequence[int]) -> str:
    return ", ".join(map(str, cpus))
