"""A subscription whose events are awaited: `async with space.subscribe(…)`, `async for`."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from tupelo import _native
from tupelo.aio.loop_notifier import running_loop
from tupelo.errors import SpaceClosed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, Self

    from tupelo._native import Seconds
    from tupelo.aio.loop_notifier import LoopNotifier
    from tupelo.events import Event

__all__ = ["Subscription"]


class Subscription:
    """The events of the tuples that match a template. Made by `tupelo.aio.Space.subscribe`.

    Cancelling a wait loses nothing: the event is told to whoever asks next. Tasks of one event loop
    at a time may wait for events: those of another are refused with `ValueError`.
    """

    def __init__(
        self,
        subscription: _native.Subscription[Any],
        notifier: Callable[[asyncio.AbstractEventLoop], LoopNotifier],
    ) -> None:
        """Wrap a subscription; `notifier` is what an event loop waits with."""
        self._subscription = subscription
        self._notifier = notifier
        # Of one loop: the loop that asked for events last, the number of its tasks that ask, the
        # lock by which they take turns, and whether a task waits at the notifier.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asking = 0
        self._turn = asyncio.Lock()
        self._is_at_notifier = False
        # What changes the first three. A task of a closed loop may be collected, and so end, where
        # this is held.
        self._changes = threading.RLock()
        self._is_closed = False
        self._was_dealt_with = True

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        message = (
            "a subscription stays with the process that made it: subscribe in the other process"
        )
        raise TypeError(message)

    def __repr__(self) -> str:
        """Show where it is, and how many events wait."""
        return f"<aio.{repr(self._subscription)[1:]}"

    async def __aenter__(self) -> Self:
        """Do nothing more: everything is heard since `subscribe` was called."""
        self._require_open()
        return self

    async def __aexit__(self, *exception: object) -> None:
        """End the subscription. If the block has raised, the last event was not dealt with."""
        self._was_dealt_with = exception[1] is None
        self.close()

    def __aiter__(self) -> Self:
        """Return itself."""
        return self

    async def __anext__(self) -> Event[Any]:
        """Wait for the next event; end when the subscription is closed meanwhile."""
        self._require_open()
        event = await self._next(None)
        if event is None:
            raise StopAsyncIteration
        return event

    async def next(self, timeout: Seconds | None = None) -> Event[Any]:
        """Return the next event, waiting for it up to `timeout` seconds."""
        seconds = _native.seconds("timeout", timeout)
        self._require_open()
        event = await self._next(seconds)
        if event is None:
            # What has come by now is told.
            event = self.try_next()
        if event is None:
            raise _native.no_event(self._subscription, seconds or 0.0)
        return event

    def try_next(self) -> Event[Any] | None:
        """Return the next event, or None at once if none waits."""
        self._require_open()
        return self._subscription.try_next()

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return self._subscription.waiting

    def close(self) -> None:
        """End the subscription; what waits is forgotten. Tasks that wait for an event stop.

        It may be called in any thread, also where no loop runs.
        """
        # In this order, as `_next` does it the other way about: either this finds the loop, or that
        # finds it closed.
        self._is_closed = True
        loop = self._loop
        if loop is not None and loop.is_running() and loop is not running_loop():
            with suppress(RuntimeError):  # it was closed in between
                loop.call_soon_threadsafe(self._end)
                return
        self._end()

    def _end(self) -> None:
        """Give back the native subscription; in the thread of the loop, while the loop runs."""
        loop = self._loop
        if loop is None or loop.is_closed() or not self._is_at_notifier:
            self._give_back()
            return
        # Its place in the wait queue must stay its own until the task has left the notifier.
        with suppress(SpaceClosed):  # then the task was told
            self._notifier(loop).rouse(self._subscription)

    def _give_back(self) -> None:
        if self._was_dealt_with:
            self._subscription.close()
        else:
            self._subscription._drop()

    def _require_open(self) -> None:
        if self._is_closed:
            message = "this subscription was closed: subscribe again to hear more"
            raise ValueError(message)

    async def _next(self, seconds: float | None) -> Event[Any] | None:
        """Wait for an event; None if the time runs out, or the subscription is closed."""
        loop = asyncio.get_running_loop()
        turn = self._begin_to_ask(loop)
        try:
            # One task at a time waits at the notifier, the others for their turn.
            async with asyncio.timeout(seconds), turn:
                while not self._is_closed:
                    event = self._subscription.try_next()
                    if event is not None:
                        return event
                    await self._wait(loop)
        except TimeoutError:
            return None
        finally:
            self._end_asking(loop)
        return None

    def _begin_to_ask(self, loop: asyncio.AbstractEventLoop) -> asyncio.Lock:
        """Return the lock by which the tasks of a loop take turns: each loop needs its own.

        Raises:
            ValueError: tasks of another loop wait for events, or for their turn.
        """
        with self._changes:
            before = self._loop
            if before is not loop:
                # The waiting tasks of a loop that was closed never go on, so they do not count.
                if before is not None and self._asking and not before.is_closed():
                    message = (
                        "TUP-019: tasks of another event loop wait for the events of this "
                        "subscription\n  subscribe in each loop: every subscription is told of "
                        "all that happens"
                    )
                    raise ValueError(message)
                self._loop, self._asking, self._turn = loop, 0, asyncio.Lock()
                self._is_at_notifier = False
            self._asking += 1
            return self._turn

    def _end_asking(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._changes:
            # A task of a loop that was closed may be ended long after.
            if self._loop is loop:
                self._asking -= 1

    async def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_at_notifier = True
        try:
            await self._notifier(loop).wait(self._subscription, seconds=None)
        finally:
            if self._loop is loop:  # as above
                self._is_at_notifier = False
                if self._is_closed:
                    self._give_back()
