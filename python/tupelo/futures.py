"""Asking now and collecting later (Bonita's dispatch, arrived and obtain).

`take_future` and `read_future` join the wait queue for a match and return at once. One thread per
connection waits for all of them through one notifier, as long as there are any. A future that is
cancelled, and one whose process dies, leaves its tuple in the space (rule T5).

Finalizers and handlers of signals may come between any two instructions, including the ones here.
They may cancel futures or ask for some. So a thread that has a lock may get it once more, here and
in `tupelo.tasks`. The guarded state is consistent whenever other code may run.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from concurrent.futures import Future
from functools import partial

from tupelo import _native
from tupelo.calling_back import call_elsewhere
from tupelo.threads import system_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal

    from tupelo._native import Space, Template, Waiter

__all__ = ["PromptFuture", "dispatch", "settle"]

_LOGGER = logging.getLogger("concurrent.futures")
"""Where a future says which of its callbacks has raised."""


class PromptFuture(Future["Any"]):
    """A future whose waiters are told of its cancellation at once.

    `concurrent.futures.wait` and `as_completed` go on waiting until the runner of a cancelled
    future has noticed. A future that was only in the wait queue is never run.

    Its callbacks are called by a thread that has nothing else to do, where it is not the program's
    own thread that ends it.
    """

    _done_callbacks: list[Callable[[Any], object]]

    def __init__(self) -> None:
        """Be in the wait queue."""
        super().__init__()
        self._beginning = threading.RLock()
        self._told = False
        self._begun_by: int | None = None

    def _invoke_callbacks(self) -> None:
        """Call them as `concurrent.futures` does; the callbacks of a program elsewhere, if due."""
        if threading.current_thread().name not in THREADS:
            super()._invoke_callbacks()  # type: ignore[misc]  # as all futures do at their end
            return
        every = self._done_callbacks
        at_once = [one for one in every if _is_quick(one)]
        self._done_callbacks = [one for one in every if not _is_quick(one)]
        for callback in at_once:
            settle(callback, self)
        if self._done_callbacks:
            call_elsewhere(partial(settle, self._invoke_rest, None))

    def _invoke_rest(self, _: None) -> None:
        super()._invoke_callbacks()  # type: ignore[misc]  # as above

    def cancel(self) -> bool:
        """Cancel it, unless it runs or is done; return whether it is cancelled."""
        # In a handler that has come between the two halves of the beginning: it runs in a moment.
        if self._begun_by == threading.get_ident():
            return self.cancelled()
        if not super().cancel():
            return False
        self.set_running_or_notify_cancel()
        return True

    def set_running_or_notify_cancel(self) -> bool:
        """Run it; or tell, once, that it was cancelled. Return whether it runs."""
        with self._beginning:
            if self._told:
                return False
            self._begun_by = threading.get_ident()
            try:
                runs = super().set_running_or_notify_cancel()
                self._told = not runs
            finally:
                self._begun_by = None
            return runs


THREADS = frozenset({"tupelo futures", "tupelo answers"})
"""The names of the threads that end futures, and have others to end."""


def _is_quick(callback: Callable[[Any], object]) -> bool:
    """Whether a callback is ours, or only tells an event loop."""
    module = str(getattr(callback, "__module__", None))
    return module == "asyncio.futures" or module.startswith("tupelo.")


class Collector:
    """The futures of one connection, and the thread that fulfils them while there are any."""

    def __init__(self, space: Space) -> None:
        """Get a notifier."""
        self.pid = os.getpid()
        self._notifier = _native.Notifier(space)
        self._lock = threading.RLock()
        self._waiting: dict[int, tuple[Future[tuple[Any, ...]], Waiter]] = {}
        self._has_thread = False
        self._is_starting = False

    def future(self, place: Waiter) -> Future[tuple[Any, ...]]:
        """Return the future of the tuple that a place in the wait queue will be handed."""
        future: Future[tuple[Any, ...]] = PromptFuture()
        found = place.finish_now()
        if found is not None:
            future.set_result(found)
            return future
        try:
            self._add(future, place)
        except BaseException:
            future.cancel()  # so it leaves the wait queue, if it came to that
            place.cancel()
            raise
        return future

    def _add(self, future: Future[tuple[Any, ...]], place: Waiter) -> None:
        """Have a future fulfilled by the thread, if there is one to be had."""
        with self._lock:
            number = self._notifier.add(place)
            try:
                self._waiting[number] = (future, place)
                future.add_done_callback(lambda _: self._forget(number, place))
                self._start()
            except BaseException:
                # Before the lock is let go, so that no tuple is picked up for a caller that never
                # gets it.
                self._remove(number, place)
                raise

    def _start(self) -> None:
        """Start the thread that fulfils futures, unless it runs; with the lock.

        Ctrl-C may interrupt the start of a thread that runs nevertheless: only the thread itself
        can say that it runs.
        """
        if self._has_thread or self._is_starting:
            return
        self._is_starting = True
        try:
            system_thread(self._run, "tupelo futures").start()
        except BaseException:
            self._is_starting = False
            raise

    def _run(self) -> None:
        """Fulfil futures until there are none left, unless another thread does."""
        with self._lock:
            self._is_starting = False
            if self._has_thread:
                return
            self._has_thread = True
        try:
            while True:
                self._notifier.sleep(self._notifier.next_look())
                self._fulfil({*self._notifier.drain(), *self._notifier.look()})
                with self._lock:
                    if not self._waiting:
                        self._has_thread = False
                        self._notifier.rest()
                        return
        except BaseException as error:  # noqa: BLE001 - there is nobody else who could tell them
            self._fail(error)

    def _fulfil(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            with self._lock:
                future, place = self._waiting.get(number, (None, None))
                # A cancelled future is about to leave the wait queue, in another thread. It may be
                # here a second time, and has no state that could still change. The lock keeps it in
                # the wait queue during this look: otherwise its tuple would go back only after
                # `cancel` has returned.
                if future is None or place is None or future.cancelled() or not _is_served(place):
                    continue
            # A running future cannot be cancelled, so its tuple is delivered.
            if future.running() or future.set_running_or_notify_cancel():
                try:
                    found = place.finish_now()
                except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
                    settle(future.set_exception, error)
                else:
                    if found is not None:
                        settle(future.set_result, found)

    def _forget(self, number: int, place: Waiter) -> None:
        """Leave the line: the future is done, or was cancelled, and then its tuple goes back."""
        with self._lock:
            self._remove(number, place)
        place.cancel()

    def _remove(self, number: int, place: Waiter) -> None:
        """Forget a place in the wait queue, with the lock."""
        # A picked-up tuple has left the wait queue before, and its number may be another's by now.
        _, waiting = self._waiting.get(number, (None, None))
        if waiting is place:
            del self._waiting[number]
            self._notifier.remove(number)

    def _fail(self, error: BaseException) -> None:
        """Tell all waiters that there is nothing to wait for: the connection is closed."""
        with self._lock:
            futures = [future for future, _ in self._waiting.values()]
            self._has_thread = False
        for future in futures:
            if future.done():
                continue
            if future.running() or future.set_running_or_notify_cancel():
                settle(future.set_exception, error)


def settle(end: Callable[[Any], object], outcome: Any) -> None:
    """End a future, whatever its callbacks do: the others need the thread that does it.

    A future reports an `Exception` of a callback and goes on. It lets through an exception that is
    to end a program or a task, although neither the waiter nor this thread is meant.
    """
    try:
        end(outcome)
    except BaseException:
        _LOGGER.exception("exception calling a callback of a future")


def _is_served(place: Waiter) -> bool:
    """Whether something was handed over; not to a place that a cancelled future has left."""
    try:
        return place.wait(0)
    except RuntimeError:  # it was left
        return False


_collectors: weakref.WeakKeyDictionary[Space, Collector] = weakref.WeakKeyDictionary()
_collectors_lock = threading.RLock()


def _begin_anew() -> None:
    """In the child of a fork: another thread of the parent may have had the lock."""
    global _collectors, _collectors_lock  # noqa: PLW0603 - nobody else runs yet
    _collectors = weakref.WeakKeyDictionary()
    _collectors_lock = threading.RLock()


os.register_at_fork(after_in_child=_begin_anew)


def dispatch(
    space: Space, want: Literal["take", "read"], template: Template[Any]
) -> Future[tuple[Any, ...]]:
    """Join the wait queue for a match of `template`, and return its future."""
    with _collectors_lock:
        collector = _collectors.get(space)
        if collector is None or collector.pid != os.getpid():
            collector = _collectors[space] = Collector(space)
    return collector.future(_native.waiter(space, want, template))
