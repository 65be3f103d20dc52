"""Real processes: a function each, a raw file each, and one deadline for all.

They come from a fork server, which has imported the suite and nothing else: so they start in
milliseconds and inherit no connection, no thread and no open space. A process that fails ends the
others; what they have not finished by the deadline does not count.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import traceback
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Protocol

from tupelo_bench.harness import profiler
from tupelo_bench.harness.folders import temporary_folder
from tupelo_bench.harness.placement import pin
from tupelo_bench.harness.profiler import Profiler
from tupelo_bench.harness.stopping import endings_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

GRACE_S = 2.0  # a process that does not end when asked is killed after that

CONTEXT = multiprocessing.get_context("forkserver")
# By their names: they are of higher layers. So each process has what it runs when it is forked.
CONTEXT.set_forkserver_preload(
    ["tupelo_bench.harness.forkserver", "tupelo_bench.experiments.everything"]
)


class OverBudgetError(Exception):
    """The time of a cell is used up; what it measured so far does not count."""


class WorkerFailedError(Exception):
    """A process of an experiment failed; the message has its traceback."""


class WrongResultError(Exception):
    """A result differs from what a sequential program computes; its time does not count."""


class Start(Protocol):
    """The line from which all processes of an experiment start."""

    def wait(self) -> int:
        """Wait until all are there."""


@dataclass
class Bench:
    """What a process of an experiment works with."""

    number: int
    profiler: Profiler
    start: Start


def run(
    targets: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]],
    *,
    deadline: float | None,
    cpus: Sequence[Sequence[int]] | None = None,
) -> tuple[list[Any], list[Profiler]]:
    """Run each function with a `Bench` and its arguments in a process of its own.

    Args:
        targets: per process the function, of a module, and its further arguments.
        deadline: when to give up, on the clock of `time.monotonic`; None for never.
        cpus: the processors of each process; all may use all if None.

    Returns:
        What each returned, and what each measured.

    Raises:
        OverBudgetError: the deadline passed. All processes were ended.
        WorkerFailedError: one failed. All processes were ended.
        WrongResultError: one found a wrong result. All processes were ended.
    """
    with temporary_folder("workers") as folder, ExitStack() as ending:
        with endings_wait():  # half a barrier would leave a semaphore of the system behind
            start = CONTEXT.Barrier(len(targets))
        running: list[tuple[BaseProcess, Connection]] = []
        ending.callback(_end, running)
        try:
            for number, (function, arguments) in enumerate(targets):
                ours, theirs = CONTEXT.Pipe(duplex=False)
                own = cpus[number] if cpus else None
                task = Task(raw(folder, number), number, own, function, arguments)
                process = CONTEXT.Process(target=_work, args=(theirs, start, task), daemon=True)
                with endings_wait():  # half a message would end the process that forks all others
                    process.start()
                    running.append((process, ours))
                theirs.close()
            results = _collect(running, deadline)
        except BaseException:
            # Nobody tells the others to end, also those that wait for one that never began: they
            # would be waited for in vain.
            for each, _ in running:
                each.terminate()
            raise
        return results, [profiler.read(raw(folder, number)) for number in range(len(targets))]


def raw(folder: Path, number: int) -> Path:
    """Where the process of that number writes what it measured."""
    return folder / f"process-{number}{profiler.SUFFIX}"


@dataclass
class Task:
    """What a new process is told to do."""

    path: Path
    number: int
    cpus: Sequence[int] | None
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def _work(report: Connection, start: Barrier, task: Task) -> None:
    """Run in the new process."""
    # Not above: to import it is what makes the process that forks end with the first.
    from tupelo_bench.harness.forkserver import die_with_the_first

    die_with_the_first()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])  # by which `run` ends it
    try:
        if task.cpus:
            pin(task.cpus)
        bench = Bench(task.number, Profiler(), start)
        result = task.function(bench, *task.arguments)
        bench.profiler.write(task.path)
        report.send(("done", result))
    except WrongResultError as wrong:
        _give_up(report, "wrong", str(wrong))
    except BaseException:  # noqa: BLE001 - the first process raises it again
        _give_up(report, "failed", traceback.format_exc())


def _give_up(report: Connection, how: str, why: str) -> None:
    """Report what went wrong, unless another process was faster, and end."""
    with suppress(BrokenPipeError):
        report.send((how, why))
    sys.exit(1)


def _collect(
    running: Sequence[tuple[BaseProcess, Connection]], deadline: float | None
) -> list[Any]:
    """Wait for all reports, in whatever order they come."""
    waiting = {report: number for number, (_, report) in enumerate(running)}
    results: list[Any] = [None] * len(running)
    while waiting:
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = [report for report in wait(list(waiting), patience) if report in waiting]
        if not ready:
            raise OverBudgetError
        for report in ready:
            assert isinstance(report, Connection)  # noqa: S101 - for the type checker
            number = waiting.pop(report)
            try:
                how, what = report.recv()
            except EOFError:
                process = running[number][0]
                process.join()
                message = f"process {number} ended with exit code {process.exitcode}"
                raise WorkerFailedError(message) from None
            if how == "wrong":
                raise WrongResultError(what)
            if how == "failed":
                raise WorkerFailedError(what)
            results[number] = what
    return results


def _end(running: Sequence[tuple[BaseProcess, Connection]]) -> None:
    """See that no process is left, whatever happened."""
    for process, report in running:
        report.close()
        if process.is_alive():
            process.join(0)
    give_up_at = time.monotonic() + GRACE_S
    for process, _ in running:
        process.join(max(0.0, give_up_at - time.monotonic()) if process.exitcode is None else None)
    for process, _ in running:
        if process.is_alive():
            process.kill()
        process.join()
        process.close()
