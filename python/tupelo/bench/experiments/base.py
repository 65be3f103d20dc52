"""What an experiment is to the harness: jobs for a peer, and figures of a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.bench.backends.base import Peer
    from tupelo.bench.harness.placement import Where
    from tupelo.bench.harness.record import Measure, Run
    from tupelo.bench.harness.runner import Job, Options
    from tupelo.bench.report.figure import Figure
    from tupelo.bench.report.printed import Printed


class Experiment(ABC):
    """One experiment of the literature."""

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    """The publication that it is from."""
    question: ClassVar[str]
    where: ClassVar[Where] = "free"
    """Where its servers and clients run, unless its parameters say it."""
    main: ClassVar[tuple[str, ...]] = ()
    """The metrics that the terminal shows; the page shows all."""

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        """Those that take part."""
        from tupelo.bench.backends.base import Backend

        return [peer for peer in all_peers if issubclass(peer, Backend)]

    @abstractmethod
    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        """What is to run, smaller sizes first."""

    def derive(self, run: Run) -> list[Measure]:  # noqa: ARG002
        """Measures that follow from others, when all of them are there."""
        return []

    def figures(self, run: Run) -> list[Figure]:  # noqa: ARG002 - for those that draw nothing
        """The figures that can be drawn of what was measured."""
        return []

    def printed(self, run: Run) -> list[Printed]:  # noqa: ARG002
        """The numbers that the publication prints, beside ours."""
        return []
