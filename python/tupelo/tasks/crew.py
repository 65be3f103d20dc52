"""The workers of one queue on this machine: processes, or threads of this one.

A process that dies is replaced: its task is a claim, and is back already. All are gone with the
process that started them, also when that is killed. Nothing is told to them but through the space:
one tuple `("tupelo.end", queue)` per worker ends them after their tasks. Where there is no room for
that, processes get a signal, and threads end with their connection.

A process of `multiprocessing` may have workers, too. It ends without what `atexit` knows, and waits
for all its children first: so what ends them is registered with `multiprocessing` as well.
"""

from __future__ import annotations

import atexit
import multiprocessing

# The module waits for all processes at the end of the program. So it is imported before the
# functions of ours that end them are registered: the last one goes first.
import multiprocessing.util
import os
import select
import signal
import threading
import traceback
import weakref
from contextlib import contextmanager, suppress
from typing import NamedTuple, Protocol

from tupelo._native import Space, end_with_parent
from tupelo.errors import ConnectionLost, SpaceClosed, SpaceFull, SpaceNotFound, SpaceRemoved
from tupelo.space import connect, reconnect
from tupelo.tasks import functions, protocol
from tupelo.tasks.discarding import discard_queue
from tupelo.tasks.serving import Server
from tupelo.threads import system_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from typing import Any


__all__ = ["Crew", "Processes", "Terms", "Threads", "processors"]

READY, ENDED = "ready", "ended"

LOOK_S = 1.0
"""How long to wait for a thread that was told to end before it is told again."""

EARLY_DEATHS_MAX = 10
"""Processes that are killed one after the other before they are ready, until there is no point."""


def processors() -> int:
    """Count the processors that this process may run on, which may be fewer than there are."""
    return len(os.sched_getaffinity(0))


class Terms(NamedTuple):
    """How a crew serves: the arguments of `Server`."""

    queue: str
    only: str | None = None
    ttl_s: float = protocol.TTL_S
    timeout_s: float | None = None
    keeps_dead: bool = False
    result_ttl_s: float | None = protocol.RESULT_TTL_S
    reconnects: bool = False
    """Whether processes go on in the space that has the name now, when theirs was removed."""

    def server(self, space: Space) -> Server:
        """Make one worker."""
        terms = self._asdict()
        del terms["reconnects"]
        return Server(space, **terms)


class Crew(Protocol):
    """Workers of a queue."""

    def add(self, workers: int) -> None:
        """Start so many more."""

    def count(self) -> int:
        """Count the workers that run."""

    def end(self) -> None:
        """End all of them after their tasks, and wait for it."""

    def kill(self) -> None:
        """End all of them now, as far as that is possible."""

    def leave(self) -> None:
        """Let go of workers that were killed, and still have something to do."""


class Threads:
    """Workers that are threads of this process."""

    def __init__(self, space: Space, terms: Terms, on_broken: Callable[[str], None]) -> None:
        """Have `on_broken` called with the reason if a worker cannot go on.

        The connection is for these threads alone. A task that nothing stops must not lose its claim
        when the pool ends: the task would be back in the space for good. The last thread closes
        the connection.
        """
        self._space = space
        self._terms = terms
        self._on_broken = on_broken
        self._servers: dict[threading.Thread, Server] = {}
        self._lock = threading.RLock()
        self._is_ending = False
        self._is_last_to_close = False

    def add(self, workers: int) -> None:
        """Start so many more, until all are told to end."""
        for _ in range(workers):
            server = self._terms.server(self._space)
            name = f"tupelo worker {len(self._servers)}"
            thread = system_thread(self._run, name, (server,))
            with self._lock:
                if self._is_ending:
                    return
                self._servers[thread] = server
                thread.start()

    def count(self) -> int:
        """Count the threads that run."""
        return sum(thread.is_alive() for thread in list(self._servers))

    def end(self) -> None:
        """End all of them after their tasks, and wait for it.

        Where there is no room to tell them they end when the connection is closed.
        """
        self._start_no_more()
        if _tell_to_end(self._space, self._terms.queue, self.count()):
            for thread in self._servers:
                if thread.ident is not None:  # else there was none to be had
                    thread.join()
            self._space.take_all(protocol.end_of(self._terms.queue))
        self._space.close()

    def kill(self) -> None:
        """Let each end when its task is over: nothing stops a thread."""
        self._start_no_more()
        for server in self._servers.values():
            server.is_to_end = True
        with suppress(SpaceClosed):  # the last one has ended
            _tell_to_end(self._space, self._terms.queue, self.count())

    def _start_no_more(self) -> None:
        """Have a concurrent `add` stop: the set of threads stays the same then."""
        with self._lock:
            self._is_ending = True

    def leave(self) -> None:
        """Wait for the idle threads; the last of the busy ones removes the rest."""
        for thread, server in list(self._servers.items()):
            while thread.is_alive() and not server.is_busy:
                thread.join(LOOK_S)
                # Another thread may have taken the tuple that was to end it.
                if thread.is_alive() and not self._can_be_told_to_end():
                    break
        with self._lock:
            self._is_last_to_close = True
        self._close_if_last()

    def _can_be_told_to_end(self) -> bool:
        try:
            return _tell_to_end(self._space, self._terms.queue, 1)
        except SpaceClosed:  # as in `_close_if_last`
            return False

    def _close_if_last(self) -> None:
        with self._lock:
            if not self._is_last_to_close or any(
                server.is_busy for server in self._servers.values()
            ):
                return
            self._is_last_to_close = False
        try:
            # If it is closed, all have ended before the pool was killed, as after Ctrl-C.
            with suppress(SpaceClosed):
                discard_queue(self._space, self._terms.queue)
        finally:
            self._space.close()

    def _run(self, server: Server) -> None:
        try:
            server.serve()
        except SpaceClosed:
            return
        except BaseException:  # noqa: BLE001 - told to whoever waits for answers
            with suppress(SpaceClosed):  # another one has told it, and the pool has ended
                self._on_broken(traceback.format_exc())
        finally:
            self._close_if_last()


class Processes:
    """Workers that are processes, started fresh ("spawn") and replaced when they die."""

    def __init__(
        self,
        space: Space,
        terms: Terms,
        on_broken: Callable[[str], None],
        on_death: Callable[[int, str], None] | None = None,
    ) -> None:
        """Have `on_broken` called with the reason if they cannot work, `on_death` if one died."""
        self._context = multiprocessing.get_context("spawn")
        self._space = space
        self._terms = terms
        self._on_broken = on_broken
        self._on_death = on_death
        self._lock = threading.RLock()
        self._members: dict[int, _Member] = {}
        self._early_deaths = 0
        self._is_ending = False
        self._watcher: threading.Thread | None = None
        # Written to when there is something new to watch.
        self._news = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.owner = os.getpid()
        """The process whose workers they are: not the child of a fork."""
        at_end_of_process(_kill_those_left, KILLED_AT)
        # Not at the end of the program, when the watcher still uses it.
        weakref.finalize(self, os.close, self._news).atexit = False
        _running.add(self)

    def add(self, workers: int) -> None:
        """Start so many more.

        Raises:
            RuntimeError: this process is being started itself, and has not got to its main part.
        """
        # First: a caller that ends them before all have started waits for it.
        self._begin_to_watch()
        for _ in range(workers):
            with self._lock:
                if self._is_ending:
                    return
                member = _Member.start(self._context, self._space, self._terms)
                self._members[member.pidfd] = member
            os.eventfd_write(self._news, 1)

    def _begin_to_watch(self) -> None:
        with self._lock:  # two threads may ask for the first process at the same time
            if self._watcher is None:
                watcher = system_thread(self._watch, "tupelo crew")
                watcher.start()
                self._watcher = watcher  # not before: there may be no more threads to be had

    def count(self) -> int:
        """Count the processes that run."""
        with self._lock:
            return len(self._members)

    def pids(self) -> list[int]:
        """Return their process ids."""
        with self._lock:
            return [member.pid for member in self._members.values()]

    def end(self) -> None:
        """End all of them after their tasks, and wait for it. Dead ones are not replaced."""
        self._stop_replacing()
        if not _tell_to_end(self._space, self._terms.queue, self.count()):
            self.signal(signal.SIGTERM)
        self.join()
        self._space.take_all(protocol.end_of(self._terms.queue))

    def kill(self) -> None:
        """Kill all of them."""
        self._stop_replacing()
        self.signal(signal.SIGKILL)
        self.join()

    def leave(self) -> None:
        """Do nothing: they are gone when they are killed."""

    def retire(self) -> None:
        """Have each of them end when its task is over, and replace none; `join` waits for it."""
        self._stop_replacing()
        self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        """Send a signal to all of them."""
        with self._lock:
            for member in self._members.values():
                # It may have ended, and not been buried yet.
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(member.pidfd, number)

    def _stop_replacing(self) -> None:
        with self._lock:
            self._is_ending = True
        os.eventfd_write(self._news, 1)

    def join(self) -> None:
        """Wait until all of them have ended."""
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join()
        _running.discard(self)

    def _watch(self) -> None:
        """Notice dead processes, and replace them, until all have ended."""
        while True:
            with self._lock:
                pidfds = list(self._members)
                if not pidfds and self._is_ending:
                    return
            poll = select.poll()
            for descriptor in (*pidfds, self._news):
                poll.register(descriptor, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._news in ready:
                os.eventfd_read(self._news)
            for pidfd in ready & set(pidfds):
                self._bury(pidfd)

    def _bury(self, pidfd: int) -> None:
        """Take leave of a process that has ended, and replace it unless it was to end."""
        with self._lock:
            member = self._members.pop(pidfd)
            is_ending = self._is_ending
        ending = member.end()
        if is_ending or ending.was_told:
            return
        self._early_deaths = 0 if ending.was_ready else self._early_deaths + 1
        # It ended by itself: so would the next process.
        ended_early = not ending.was_ready and ending.code is not None and ending.code >= 0
        is_hopeless = ended_early or self._early_deaths > EARLY_DEATHS_MAX
        if ending.failure is not None or is_hopeless:
            self._on_broken(ending.failure or ending.early())
            return
        try:
            self.add(1)
        except Exception as error:  # noqa: BLE001 - told to whoever waits for answers
            self._on_broken(f"no process for the one that {ending.how()}: {error}")
            return
        # Last: whatever becomes of the news, there is another process.
        if self._on_death is not None:
            self._on_death(member.pid, ending.how())


class _Ending(NamedTuple):
    pid: int
    code: int | None
    """None if other code has waited for it."""
    was_ready: bool
    was_told: bool
    """Whether a tuple told it to end. A worker may also end by itself, in a task that exits."""
    failure: str | None

    def how(self) -> str:
        if self.code is not None and self.code < 0:
            return f"was ended by signal {-self.code}"
        return f"exited with {'an unknown code' if self.code is None else self.code}"

    def early(self) -> str:
        return (
            f"worker process {self.pid} {self.how()} before it was ready; if it said why, that is"
            ' above. A script needs `if __name__ == "__main__":` around what only the first'
            " process shall do"
        )


class _Member(NamedTuple):
    """A process of the crew."""

    process: SpawnProcess
    pid: int
    pidfd: int
    report: Connection

    @classmethod
    def start(cls, context: Any, space: Space, terms: Terms) -> _Member:
        ours, theirs = context.Pipe(duplex=False)
        with _may_have_children():
            # A pickled connection is to a space that is there. This one may be removed meanwhile.
            place = (space.url, space.objects == "pickle") if terms.reconnects else space
            process = context.Process(
                target=_work, args=(theirs, os.getpid(), place, terms), name="tupelo worker"
            )
        try:
            with theirs, _may_have_children():
                process.start()
            # Our child that has not been waited for: its number is still its own.
            return cls(process, process.pid, os.pidfd_open(process.pid), ours)
        except BaseException:
            # Ctrl-C when it has started, or no descriptor: no other code would know of it.
            if process.pid is not None:
                process.kill()
                process.join()
            raise

    def end(self) -> _Ending:
        """Wait for the process, which has ended, and read its report."""
        self.process.join()
        reports: list[str] = []
        with self.report as report:
            try:
                while report.poll():
                    reports.append(report.recv())
            except (EOFError, OSError):
                pass  # nothing more, or it was killed in the middle of a report
        os.close(self.pidfd)
        failures = [text for text in reports if text not in (READY, ENDED)]
        failure = failures[0] if failures else None
        code = self.process.exitcode
        ending = _Ending(self.pid, code, READY in reports, ENDED in reports, failure)
        with suppress(ValueError):  # other code has waited for it, so its end is not seen here
            self.process.close()
        return ending


@contextmanager
def _may_have_children() -> Iterator[None]:
    """Let a daemon of `multiprocessing`, as the workers of its pools are, start a process.

    It is not allowed to, since a daemon that is killed would leave its children behind. Ours end
    with it, however it ends.
    """
    config: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]  # noqa: SLF001 - there is no other way
    is_daemon = config.pop("daemon", None)
    try:
        yield
    finally:
        if is_daemon is not None:
            config["daemon"] = is_daemon


def _work(report: Connection, parent: int, place: Space | tuple[str, bool], terms: Terms) -> None:
    """Run in a worker process: serve until told to end, report what makes that impossible."""
    end_with_parent(parent)
    # Ctrl-C goes to all processes of a terminal; the first one decides what becomes of the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if terms.only is not None:
            functions.at(terms.only)
        if _serve(report, place, terms):
            report.send(ENDED)
    except Exception as error:  # noqa: BLE001 - told to the process that started this one
        trace = traceback.format_exc().rstrip()
        report.send(f"worker process {os.getpid()} can not go on: {error}\n{trace}")
        raise SystemExit(1) from None


def _serve(report: Connection, place: Space | tuple[str, bool], terms: Terms) -> bool:
    """Serve, in the next space of the name if need be; return whether a tuple ended it."""
    is_ready, is_to_end = False, False
    while not is_to_end:
        space = _with_name(*place) if isinstance(place, tuple) else place
        server = None
        try:
            server = terms.server(space)
            _end_after_task_on_sigterm(server)
            if not is_ready:
                report.send(READY)
                is_ready = True
            server.serve()
        except SpaceRemoved:
            if not terms.reconnects:
                raise
            is_to_end = server is not None and server.is_to_end
        else:
            return not server.is_to_end
    return False


def _with_name(url: str, pickle: bool) -> Space:  # noqa: FBT001 - private
    """Open the space that has a name, or make one: as the program does that started this one."""
    try:
        return reconnect(Space, url, pickle)
    except SpaceNotFound:
        return connect(url, objects="pickle" if pickle else "strict")


def _end_after_task_on_sigterm(server: Server) -> None:
    def end(_number: int, _frame: object) -> None:
        server.is_to_end = True
        if not server.is_busy:
            # In a claim that waits: a tuple on its way to it goes back (rule T5).
            raise SystemExit(0)

    signal.signal(signal.SIGTERM, end)


def _tell_to_end(space: Space, queue: str, workers: int) -> bool:
    """Have so many workers end after their tasks; return whether there was room to tell them."""
    if workers == 0:
        return True
    while True:
        try:
            space.put_all([(protocol.END, queue)] * workers, timeout=0)
        except SpaceFull:
            return False
        except ConnectionLost as lost:
            # More than enough of them do no harm: who ends the workers takes back what is left.
            if not lost.may_have_happened:
                raise
        else:
            return True


FINISHED_AT, KILLED_AT = 20, 10
"""The order at the end of a process: first it waits for the work that has begun, then it kills the
remaining workers. The greater goes first, and both before it waits for its children."""

_registered: set[tuple[int, Callable[[], object]]] = set()


def at_end_of_process(function: Callable[[], object], priority: int) -> None:
    """Have a function called at the end of this process, if it is one of `multiprocessing`."""
    if (os.getpid(), function) not in _registered:
        _registered.add((os.getpid(), function))
        multiprocessing.util.Finalize(None, function, exitpriority=priority)


_running: weakref.WeakSet[Processes] = weakref.WeakSet()


@atexit.register
def _kill_those_left() -> None:
    """Kill the workers of a program that ends without a word: else it would wait for them."""
    for crew in list(_running):
        if crew.owner == os.getpid():
            crew.kill()
