"""The worker processes of a demo, each of which can be killed."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any, Self

import tupelo as ts

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tupelo.spawn import Workers

PATIENCE_S = 120.0  # longer than any step takes; a dead worker must not hang the demo


class Team:
    """Workers that run `function(*arguments)`, each in a `spawn` block of its own."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Note the function and its arguments."""
        self._function = function
        self._arguments = arguments
        self._workers: dict[int, Workers] = {}

    @property
    def pids(self) -> list[int]:
        """The processes that were not killed, in the order of their start."""
        return list(self._workers)

    def start(self, n: int) -> None:
        """Start so many more."""
        for _ in range(n):
            workers = ts.spawn(self._function, *self._arguments)
            workers.__enter__()
            self._workers[workers.pids[0]] = workers

    def kill(self, pid: int) -> None:
        """Kill one with SIGKILL; return when it is gone."""
        os.kill(pid, signal.SIGKILL)
        try:
            self._workers.pop(pid).__exit__(None, None, None)
        except ts.RemoteError as error:
            # The message of a worker that was killed on purpose; any other end is a failure.
            if f"process {pid} was ended by signal 9" not in str(error):
                raise

    def __enter__(self) -> Self:
        """Begin without any."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for all of them, or terminate them if the block failed."""
        failed: BaseException | None = None
        for workers in self._workers.values():
            try:
                workers.__exit__(kind, error, traceback)
            except BaseException as failure:  # noqa: BLE001 - the others are to end too
                failed = failed or failure
                kind, error, traceback = type(failure), failure, failure.__traceback__
        if failed is not None:
            raise failed
