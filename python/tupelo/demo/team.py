"""The worker processes of a demo, each of which can be killed."""

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import tupelo as ts

PATIENCE_S = 120.0  # longer than any step takes; a dead worker must not hang the demo


class Team(ExitStack):
    """Workers that run `function(*arguments)`, each in a `spawn` block of its own.

    The end of the block waits for all of them, or terminates them if the block failed.
    """

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Note the function and its arguments."""
        super().__init__()
        self._spawn = partial(ts.spawn, function, *arguments)
        self.pids: list[int] = []
        """The processes that were not killed, in the order of their start."""

    def start(self, n: int) -> None:
        """Start so many more."""
        for _ in range(n):
            workers = self._spawn().__enter__()
            self.pids += workers.pids
            self.push(partial(self._end, workers))

    def kill(self, pid: int) -> None:
        """Kill one with SIGKILL."""
        os.kill(pid, signal.SIGKILL)
        self.pids.remove(pid)

    def _end(self, workers: Any, *exception: Any) -> None:
        try:
            workers.__exit__(*exception)
        except ts.RemoteError:
            # One that was killed on purpose; any other end is a failure.
            if workers.pids[0] in self.pids:
                raise
