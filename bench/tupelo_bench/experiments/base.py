"""What an experiment is to the harness: jobs for a peer, and figures of a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from tupelo_bench.backends.base import Backend
from tupelo_bench.backends.space import SharedSpace
from tupelo_bench.harness.placement import placement
from tupelo_bench.runner import Block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tupelo_bench.backends.base import Peer
    from tupelo_bench.harness.placement import Where
    from tupelo_bench.harness.record import Measure, Run
    from tupelo_bench.presentation.figure import Figure
    from tupelo_bench.presentation.printed import Printed
    from tupelo_bench.runner import Job, Options

OURS = SharedSpace.name
"""The backend that the others are compared with."""


class Experiment(ABC):
    """One experiment of the literature."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    """The publication that it is from."""
    question: ClassVar[str]
    where: ClassVar[Where] = "free"
    """Where its servers and clients run, unless its parameters say it."""
    share: ClassVar[float] = 1.0
    """Its part of the time of a run, beside the other experiments."""
    weights: ClassVar[Mapping[str, float]] = {}
    """How many times their share those peers get that a target of this experiment names."""
    is_limited: ClassVar[bool] = True
    """Whether a run that has little time may cut it short."""
    main: ClassVar[tuple[str, ...]] = ()
    """The metrics that the terminal shows; the page shows all."""

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        """Those that take part."""
        return [peer for peer in self.meant(all_peers) if issubclass(peer, Backend)]

    def meant(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        """Those that are not made for other experiments."""
        return [peer for peer in all_peers if not peer.only_in or self.name in peer.only_in]

    @abstractmethod
    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        """What is to run, smaller sizes first."""

    def blocks(self, all_peers: Sequence[type[Peer]], options: Options) -> list[Block]:
        """All that is to run: per peer, and per placement since a server is put there once."""
        found = []
        peers = self.peers(all_peers)
        shares = sum(self.share_of(peer) for peer in peers if peer.missing() is None)
        for peer in peers:
            jobs = self.jobs(peer, options)
            for where in dict.fromkeys(job.where or self.where for job in jobs):
                there = [job for job in jobs if (job.where or self.where) == where]
                weight = self.share * self.share_of(peer) / max(shares, self.share_of(peer))
                weight *= _first_weight(there) / _first_weight(jobs)
                found.append(
                    Block(self.name, peer, placement(where), there, weight, self.is_limited)
                )
        return found

    def share_of(self, peer: type[Peer]) -> float:
        """The part of this experiment's time that the peer gets, beside the other peers."""
        return peer.share * self.weights.get(peer.name, 1.0)

    def derive(self, run: Run) -> list[Measure]:  # noqa: ARG002
        """Measures that follow from others, when all of them are there."""
        return []

    def figures(self, run: Run) -> list[Figure]:  # noqa: ARG002 - for those that draw nothing
        """The figures that can be drawn of what was measured."""
        return []

    def printed(self, run: Run) -> list[Printed]:  # noqa: ARG002
        """The numbers that the publication prints, beside ours."""
        return []


def _first_weight(jobs: Sequence[Job]) -> float:
    """The weight of the jobs that are run where time is short."""
    return sum(job.weight for job in jobs if job.rank <= 1) or 1.0
