"""Callbacks of futures, in threads of their own: one that sleeps holds up no future.

The thread that ends the futures of a connection has others to end. So it leaves what a program has
asked to be called (`add_done_callback`) to a few threads, which are started when they are needed,
and end when there is nothing to do. The callbacks of one future are called in their order, by one
of them. What an event loop has asked for only tells the loop, and is called at once.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_elsewhere"]

THREADS_MAX = 8
"""So many callbacks may sleep until the next ones wait for them."""

IDLE_S = 1.0
"""How long a thread waits for more to do."""


class _Threads:
    """The threads, and what they have to do."""

    def __init__(self) -> None:
        self._due: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._lock = threading.RLock()  # a finalizer may come between, and end a future
        self._count = 0
        self._idle = 0

    def call(self, function: Callable[[], object]) -> None:
        """Have a function called by one of them."""
        self._due.put(function)
        with self._lock:
            if self._idle >= self._due.qsize() or self._count >= THREADS_MAX:
                return
            self._count += 1
        try:
            threading.Thread(target=self._run, name="tupelo callbacks", daemon=True).start()
        except BaseException:
            with self._lock:
                self._count -= 1
            if self._count == 0:  # or one of the others does it
                self._call_all()
            raise

    def _run(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            try:
                function = self._due.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    self._idle -= 1
                    if self._due.empty():
                        self._count -= 1
                        return
                continue
            with self._lock:
                self._idle -= 1
            function()

    def _call_all(self) -> None:
        """Call what is due in this thread: there is no other one to be had."""
        while True:
            try:
                function = self._due.get_nowait()
            except Empty:
                return
            function()


_threads = _Threads()


def call_elsewhere(function: Callable[[], object]) -> None:
    """Have a function called, which raises nothing, by a thread that has nothing else to do."""
    _threads.call(function)


def _begin_anew() -> None:
    """In the child of a fork: those threads are its parent's."""
    global _threads  # noqa: PLW0603 - nobody else runs yet
    _threads = _Threads()


os.register_at_fork(after_in_child=_begin_anew)
