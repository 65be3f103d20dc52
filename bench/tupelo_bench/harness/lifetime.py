"""Processes that end with the one that started them, also if that is killed.

The suite starts servers of peers and worker processes. None may be left behind, so each asks the
kernel to be told when its parent is gone, and looks whether it was gone before that.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from tupelo_bench.harness.stopping import ENDINGS, endings_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
GRACE_S = 10.0  # for a server to end when asked; then it is killed
LINES_MAX = 5  # of a server's log in a message
ORPHANED = 1  # exit code, which nobody asks for

_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int, signal_number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when its parent ends; end now if it has.

    `parent` is the process that started this one, by its own account: of a parent that is gone the
    kernel tells nothing any more, and `os.getppid` names another.
    """
    if _LIBC.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        os._exit(ORPHANED)


class ServerFailedError(Exception):
    """A server of a peer did not start, or ended before it was asked."""


class Server:
    """A server process of a peer; only the process that started it holds it."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        cpus: Sequence[int],
        stop_signal: int = signal.SIGTERM,
        **options: Any,
    ) -> None:
        """Start it on these processors, with `folder` as its working folder and for its log.

        `stop_signal` is what ends it, whatever it is doing and whoever is connected.
        """
        self._log = folder / "server.log"
        self._stop_signal = stop_signal
        parent = os.getpid()

        def prepare() -> None:
            os.sched_setaffinity(0, cpus)
            die_with_parent(parent, stop_signal)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)

        with self._log.open("ab") as log, ExitStack() as unless_started:
            unless_started.callback(self._abandon)
            with endings_wait():
                # Nothing but system calls happens between fork and exec: threads do not matter.
                self.process = subprocess.Popen(
                    command,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C is for us; we end the servers when we are done
                    preexec_fn=prepare,  # noqa: PLW1509
                    **options,
                )
            unless_started.pop_all()

    def _abandon(self) -> None:
        """End it where nobody will: who was told to end while it began never gets to hold it."""
        if hasattr(self, "process"):
            self.stop()

    def wait_until(self, ready: Callable[[], bool], patience_s: float = 60.0) -> None:
        """Wait until the server answers; raise `ServerFailedError` if it ends or takes too long."""
        from time import monotonic, sleep

        give_up_at = monotonic() + patience_s
        while not ready():
            if self.process.poll() is not None or monotonic() > give_up_at:
                tail = self._log.read_text(errors="replace").splitlines()[-LINES_MAX:]
                message = "\n".join([f"{self.process.args!r} did not start", *tail])
                self.stop()
                raise ServerFailedError(message)
            sleep(0.01)

    def stop(self) -> None:
        """End it, and wait until it is gone."""
        if self.process.poll() is None:
            self.process.send_signal(self._stop_signal)
        try:
            self.process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __reduce__(self) -> tuple[Any, ...]:
        """A worker process gets None instead: the server is not its own to stop."""
        return (type(None), ())


class PipedProgram:
    """A program beside a process of ours, which tells it over pipes what to do."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509 - two system calls
        )
        assert self.process.stdin is not None  # noqa: S101 - both are pipes
        assert self.process.stdout is not None  # noqa: S101
        self.questions, self.answers = self.process.stdin, self.process.stdout
