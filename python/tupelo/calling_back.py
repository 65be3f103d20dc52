"""Callbacks of futures, in threads of their own: a callback that sleeps holds up no future.

The thread that ends the futures of a connection has others to end. So it leaves a program's
callbacks (`add_done_callback`) to a few threads, which start on demand and end when they have
nothing to do. One thread calls the callbacks of one future, in their order. A callback of an event
loop only tells the loop, and is called at once.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue

from tupelo.threads import system_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_elsewhere"]

THREADS_MAX = 8
"""So many callbacks may sleep until the next ones wait for them."""

IDLE_S = 1.0
"""How long a thread waits for more to do."""


class _Threads:
    """The threads, and their queue."""

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
            system_thread(self._run, "tupelo callbacks").start()
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
        """Call the due callbacks in this thread: no other thread can be started."""
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
    """In the child of a fork: the threads are its parent's."""
    global _threads  # noqa: PLW0603 - nobody else runs yet
    _threads = _Threads()


os.register_at_fork(after_in_child=_begin_anew)
