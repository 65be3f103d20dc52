"""Futures whose lines are written before anybody can have their results.

A callback would be too late: it runs when the result is out, and the program may have ended by
then. So the program gets a future of its own, which the other one fulfils.
"""

from __future__ import annotations

from concurrent.futures import Future

from tupelo.recording.verbs import Call, named, stand_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["FUTURES", "future"]

FUTURES = {"take_future": "take", "read_future": "read"}
"""The verbs, and the lines that record their results."""


def future(name: str, verb: str) -> Callable[..., Any]:
    """Return a method that records `name`, of a class with `_note`, and `_plain` to do it."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        call = Call(self._note, arguments, options)
        call.waits()
        return RecordingFuture(call, verb, getattr(self._plain, name)(*arguments, **options))

    return named(method, name)


class RecordingFuture(Future["Any"]):
    """A future that is done when the other is done, and that is written down."""

    def __init__(self, call: Call, verb: str, pending: Future[Any]) -> None:
        """Follow a future of a connection that is not recorded."""
        super().__init__()
        self._call = call
        self._verb = verb
        self._pending = pending
        pending.add_done_callback(self._arrived)

    def cancel(self) -> bool:
        """As `Future.cancel`: whether anything has come is for the other one to say."""
        self._pending.cancel()
        return self.cancelled()

    def running(self) -> bool:
        """As `Future.running`."""
        return self._pending.running()

    def _arrived(self, pending: Future[Any]) -> None:
        if pending.cancelled():
            super().cancel()
            # The future is never run, so nothing else would tell its waiters.
            self.set_running_or_notify_cancel()
        elif (error := pending.exception()) is not None:
            self.set_exception(error)
        else:
            self._call.found(self._verb, pending.result())
            self.set_result(pending.result())


stand_in(RecordingFuture, Future)
