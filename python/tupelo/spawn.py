"""`spawn`: worker processes for the length of a `with` block.

The processes start fresh (the "spawn" start method). They inherit no lock, no thread and no open
space of this process, and find the worker function by importing its module. So a program that is
run as a script needs `if __name__ == "__main__":` around the code that only the first process runs.

They do not outlive this process, however it ends: nothing would be left that waits for them.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from tupelo._native import end_with_parent
from tupelo.errors import RemoteError, make

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from types import TracebackType
    from typing import Any, Self

__all__ = ["spawn"]

INTERRUPTED = 130
"""Exit code of a worker that Ctrl-C ended: a shell reports the same."""

COULD_NOT_BEGIN = 1
"""Exit code of a worker that could not import its function, and of whatever Python ends so."""

PATIENCE_S = 1.0
"""How long others may go on after one has failed, before that is said."""

WORKERS_MAX = 4096
"""Also of a `Pool`: more is a mistake, and would take the machine with it."""


def spawn(function: Callable[..., Any], *args: Any, n: int = 1) -> Workers:
    """Run `function(*args)` in `n` new processes; a context manager.

    Leaving the block waits for all of them. An exception in the block, also Ctrl-C, terminates
    them, and gets a note for each that has failed. If one fails while others go on, the logger
    `tupelo` warns of it after a second. If this process dies, they are killed.

    Args:
        function: a function of a module, or of the script that is run. Not a lambda.
        args: its arguments. A space may be one of them if it is `shm://`.
        n: how many processes, up to 4096.

    Raises:
        RemoteError: at the end of the block, if a worker failed; with its traceback.
        TypeError: the function or an argument cannot be sent to another process.
        ValueError: the number of processes is out of range.

    >>> import time
    >>> with ts.spawn(time.sleep, 0.001, n=2) as workers:
    ...     len(workers.pids)
    2
    """
    if not callable(function):
        message = (
            f"function has the type {type(function).__name__}: give a function, then its arguments"
        )
        raise TypeError(message)
    if not isinstance(n, int) or isinstance(n, bool):
        message = f"n has the type {type(n).__name__}: give the number of processes, as an int"
        raise TypeError(message)
    if not 1 <= n <= WORKERS_MAX:
        message = f"n is {n}: give a number of processes from 1 to {WORKERS_MAX}"
        raise ValueError(message)
    return Workers(function, args, n)


class Workers:
    """The worker processes of one `with` block."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], n: int) -> None:
        """Note what to run; the block starts it."""
        self._function = function
        self._args = args
        self._n = n
        self._processes: list[SpawnProcess] = []
        self._reports: list[Connection] = []
        self._outcomes: dict[Connection, _Failure | None] = {}
        self._pid = 0
        self.pids: list[int] = []
        """The process ids, in the order of the start."""

    def __enter__(self) -> Self:
        """Start the processes."""
        if self._processes:
            message = "these workers were started already: call spawn(...) again"
            raise RuntimeError(message)
        self._pid = os.getpid()
        # Only here: importing it takes longer than importing all of tupelo.
        from multiprocessing import get_context  # noqa: PLC0415

        context = get_context("spawn")
        try:
            for number in range(self._n):
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(
                    target=_work,
                    args=(theirs, os.getpid(), self._function, self._args),
                    name=f"{_name(self._function)}-{number}",
                )
                self._reports.append(ours)
                # Before it starts: Ctrl-C may come when it has, and its end is waited for.
                self._processes.append(process)
                with theirs:
                    process.start()
                if process.pid is not None:
                    self.pids.append(process.pid)
        except BaseException as error:
            self._terminate()
            if isinstance(error, (AttributeError, TypeError)) or _is_pickling_error(error):
                message = f"a worker needs a function and arguments that can be pickled: {error}"
                raise TypeError(message) from error
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for the processes, or terminate them if the block failed."""
        if self._pid != os.getpid():
            return  # a fork's copy: they are the parent's
        if error is not None:
            try:
                self._note_failures(error)
            finally:
                self._terminate()
            return
        try:
            self._wait()
        except BaseException as interrupt:
            interrupt.add_note(
                "the block was over and waited for its workers; one that consumes ends when"
                " finish() was called with the same template"
            )
            try:
                self._note_failures(interrupt)
            finally:
                self._terminate()
            raise
        self._close()
        failures = self._failures()
        if failures:
            others = _others([failure.text for failure in failures[1:]])
            error = make(RemoteError.__name__, failures[0].text, others)
            error.__cause__ = failures[0].cause()
            raise error

    def _wait(self) -> None:
        """Wait for all of them; if some fail and others go on, say so: they may wait for ever."""
        from multiprocessing.connection import wait  # noqa: PLC0415 - as above

        untold: list[str] = []
        while left := [report for report in self._reports if report not in self._outcomes]:
            ended = wait(left, timeout=PATIENCE_S if untold else None)
            if not ended:
                import logging  # noqa: PLC0415 -- the half of what `import tupelo` would cost

                for told in untold:
                    message = "%s\nthe block waits for its other workers"
                    logging.getLogger("tupelo").warning(message, told)
                untold.clear()
            for report, process in zip(self._reports, self._processes, strict=True):
                if report in ended:
                    failure = _outcome(report, process)
                    self._outcomes[report] = failure
                    untold.extend([] if failure is None else [failure.text])
        for process in self._processes:
            process.join()

    def _note_failures(self, error: BaseException) -> None:
        """Say on an exception which workers have failed by now."""
        for report, process in zip(self._reports, self._processes, strict=True):
            if report not in self._outcomes and report.poll():
                failure = _outcome(report, process, PATIENCE_S)
                # What Ctrl-C has ended has not failed.
                if process.exitcode != INTERRUPTED:
                    self._outcomes[report] = failure
        for failure in self._failures():
            error.add_note(failure.text)

    def _failures(self) -> list[_Failure]:
        """Return how workers have failed, in the order of their start."""
        outcomes = [self._outcomes.get(report) for report in self._reports]
        return [failure for failure in outcomes if failure is not None]

    def _terminate(self) -> None:
        started = [process for process in self._processes if process.pid is not None]
        for process in started:
            process.terminate()
        for process in started:
            process.join()
        self._close()

    def _close(self) -> None:
        for process in self._processes:
            with suppress(ValueError):  # as above
                process.close()
        for report in self._reports:
            report.close()


def _work(
    report: Connection, parent: int, function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    """Run in the worker process: call the function, report how it failed."""
    end_with_parent(parent)
    try:
        function(*args)
    except KeyboardInterrupt:
        # The first process got the same signal and says what there is to say.
        sys.exit(INTERRUPTED)
    except Exception as error:  # noqa: BLE001
        import traceback  # noqa: PLC0415

        trace = "".join(traceback.format_exception(error)).rstrip()
        report.send(f"{_name(function)} failed in process {os.getpid()}\n{trace}")
        # What can be made again of the exception itself; after the text, which always can.
        with suppress(Exception):
            report.send((f"{type(error).__module__}.{type(error).__qualname__}", error.args))
        report.close()
        sys.exit(1)


class _Failure:
    """How a worker failed: its message, and the name and the arguments of its exception."""

    __slots__ = ("arguments", "kind", "text")

    def __init__(self, text: str, kind: str = "", arguments: tuple[Any, ...] = ()) -> None:
        self.text = text
        self.kind = kind
        self.arguments = arguments

    def cause(self) -> BaseException | None:
        """Return the exception, if it is one of Python's own."""
        from tupelo.tasks.failures import original  # noqa: PLC0415 - only where one has failed

        return original(self.kind, self.arguments)


def _outcome(
    report: Connection, process: SpawnProcess, seconds: float | None = None
) -> _Failure | None:
    """Wait for a worker's report, or its end; return how it failed, or None if it did not.

    A worker that has reported may not end yet: other threads of it go on.
    """
    failure = _read(report)
    if failure is None:
        process.join(seconds)
        # None if other code has waited for it: then its exit status is unknown.
        if process.exitcode not in (0, None):
            failure = _Failure(_killed(process))
    return failure


def _read(report: Connection) -> _Failure | None:
    """Wait for a worker's report; None if it ended without."""
    try:
        text: str = report.recv()
    except (EOFError, OSError):  # nothing more, or it was killed in the middle of a report
        return None
    try:
        kind, arguments = report.recv()
    except Exception:  # noqa: BLE001 - it was killed, or they are of a class that is not here
        return _Failure(text)
    return _Failure(text, kind, arguments)


def _killed(process: SpawnProcess) -> str:
    code = process.exitcode
    how = f"was ended by signal {-code}" if code is not None and code < 0 else f"exited with {code}"
    # Python's own words about it are on the terminal of the worker.
    advice = (
        "; if it could not begin, the function has to be in a file that can be imported, and what"
        ' starts workers there under `if __name__ == "__main__":`'
    )
    return f"worker process {process.pid} {how}{advice if code == COULD_NOT_BEGIN else ''}"


def _others(failures: list[str]) -> str | None:
    return None if not failures else "\n".join(["other workers failed too:", *failures])


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)


def _is_pickling_error(error: BaseException) -> bool:
    from pickle import PicklingError  # noqa: PLC0415

    return isinstance(error, PicklingError)
