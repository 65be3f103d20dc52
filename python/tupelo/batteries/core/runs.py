"""The runs of a service, and what ends them.

What counts is a flag: every loop of a run looks at it before it waits for a request. A tuple wakes
the loops that wait already. Each loop that gets the tuple puts it back for the next one, and the
run removes it at its end. The tuple has a lease, for a process that is killed before that. If the
space is full, or the process was stopped for longer than the lease, the tuple cannot wake a loop.
That loop looks at the flag within `LOOK_S`.

A run has a text of its own, so that a stop ends neither the next run nor that of a forked process,
which has a copy of the object. There is no lock: a signal handler may stop the run that its own
thread is just beginning.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

from tupelo.errors import SpaceClosed, SpaceFull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo.batteries.verbs import Verbs

__all__ = ["LOOK_S", "Run", "Runs", "unique"]

STOP = "tupelo.request.stop"

LOOK_S = 5.0
"""How often a loop that waits looks whether its run is over, if nothing wakes it."""

LEASE_S = 60.0
"""The lease of the tuple, for a killed run. A run that ends removes its tuple."""


def unique() -> str:
    """Return a name that is used once."""
    return os.urandom(12).hex()


class Run:
    """One run, of one process."""

    def __init__(self, service: str) -> None:
        """Begin it."""
        self.stop = (STOP, service, unique())
        """The tuple that wakes its loops."""
        self.pid = os.getpid()
        self.is_over = False
        """Whether its loops are to end."""


class Runs:
    """The runs of one object of a service: one at a time, unless several threads run it."""

    def __init__(self, space: Verbs, service: str) -> None:
        """Begin with none."""
        self._space = space
        self._service = service
        self._current: list[Run] = []
        self._begun_in: int | None = None
        """The process in which there was a run."""
        self._stopped_in: int | None = None
        """The process in which the first run was stopped before it began."""

    @contextmanager
    def begun(self) -> Iterator[Run]:
        """Begin a run, which has ended when the block has."""
        run = Run(self._service)
        # In this order, against that of `stop`: a stop in between finds the run, or is found here.
        self._current.append(run)
        is_first, self._begun_in = self._begun_in != run.pid, run.pid
        if is_first and self._stopped_in == run.pid:
            run.is_over = True
        try:
            yield run
        finally:
            self._current.remove(run)
            self._remove(run)

    async def stop(self) -> None:
        """End the runs of this process.

        Before the first one, end that: its thread may not have got to it. Later there is nothing to
        end, if nothing runs.

        Raises:
            SpaceClosed: the connection was closed.
        """
        pid = os.getpid()
        if self._begun_in != pid:
            self._stopped_in = pid
        for run in list(self._current):
            if run.pid == pid:
                await self.end(run)

    async def end(self, run: Run) -> None:
        """Have the loops of a run end after their current requests.

        Raises:
            SpaceClosed: the connection was closed.
        """
        run.is_over = True
        with suppress(SpaceFull):  # then they look
            await self._space.put(*run.stop, lease=LEASE_S, timeout=0)
        if run not in self._current:  # it has ended, and may have removed this before it was there
            self._remove(run)

    def _remove(self, run: Run) -> None:
        with suppress(SpaceClosed):
            self._space.blocking.take_all(*run.stop)
