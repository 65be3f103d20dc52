"""Ends a task that runs for too long, and the process with it.

Nothing else ends code that does not cooperate: a thread cannot be stopped, and code may catch an
exception thrown into it. The process of a worker holds nothing but its claim, so it may end.

Beginning and ending a task costs a lock and two stores. The thread that keeps the time sleeps on,
and looks at the clock when the first of many tasks would have been late. While it sleeps, the
watchdog of `faulthandler` watches the thread itself. So a task in a call of C code that lets no
other thread run is ended too, a little later. Its traceback goes to the standard error.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from time import monotonic

from tupelo.threads import system_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Self

__all__ = ["EXIT_CODE_LATE", "Timekeeper"]

EXIT_CODE_LATE = 124
"""Exit code of a worker whose task was late: that of the shell's `timeout`."""


class Timekeeper:
    """Keeps the time of one task after the other of a thread; a context manager for each."""

    def __init__(self, timeout_s: float, on_late: Callable[[FrameType | None], None]) -> None:
        """Have `on_late` called with the stack of the task, before the process ends."""
        self._timeout_s = timeout_s
        self._on_late = on_late
        self._changed = threading.Condition()
        self._late_at: float | None = None
        self._sleeps = False
        self._worker = threading.get_ident()
        self._out = _where_errors_go()
        system_thread(self._run, "tupelo timekeeper").start()

    def __enter__(self) -> Self:
        """Begin a task."""
        with self._changed:
            self._late_at = monotonic() + self._timeout_s
            if self._sleeps:
                # Here: the task may never let the other thread run, not even for the first time.
                self._watch(self._timeout_s)
                self._changed.notify()
        return self

    def __exit__(self, *exception: object) -> None:
        """End it in time. If it is late, this does not return."""
        with self._changed:
            self._late_at = None

    def _run(self) -> None:
        with self._changed:
            while True:
                if self._late_at is None:
                    faulthandler.cancel_dump_traceback_later()
                    self._sleeps = True
                    self._changed.wait()
                    self._sleeps = False
                    continue
                left_s = self._late_at - monotonic()
                if left_s <= 0:
                    self._end()
                self._watch(left_s)
                self._changed.wait(left_s)

    def _watch(self, left_s: float) -> None:
        """Have the process ended if this is not called again soon after `left_s`."""
        faulthandler.dump_traceback_later(left_s + self._timeout_s, file=self._out, exit=True)

    def _end(self) -> None:
        """End the process. The lock is held, so the task cannot end meanwhile."""
        try:
            self._on_late(sys._current_frames().get(self._worker))  # noqa: SLF001
        finally:
            # Whatever the space said to that: the claim comes back when the process is gone.
            os._exit(EXIT_CODE_LATE)


def _where_errors_go() -> int:
    """The descriptor of standard error; of nothing, where a program has put something else."""
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
