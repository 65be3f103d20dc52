"""How the tasks of one event loop wait for the tuples of a space, or of several.

A native `Notifier` tells which of many places in the wait queue have something. The loop waits for
its file descriptor, with all else that it waits for, and looks around from time to time as every
blocked caller does: time passes in the space while its callers sleep, and a process that was killed
tells nobody.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from tupelo._native import Notifier, Waiter
from tupelo.errors import SpaceClosed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tupelo._native import Space, Subscription

    Place = Waiter | Subscription[Any]

__all__ = ["LoopNotifier", "running_loop", "wait_for_any"]


class LoopNotifier:
    """The notifier of one event loop in one space."""

    def __init__(self, space: Space, loop: asyncio.AbstractEventLoop) -> None:
        """Get a notifier, and let the loop wait for it."""
        self._notifier = Notifier(space)
        self._loop = loop
        self._pid = os.getpid()
        self._futures: dict[int, asyncio.Future[bool]] = {}
        self._places: dict[int, Place] = {}
        self._next_look: asyncio.TimerHandle | None = None
        self._is_closed = False
        loop.add_reader(self._notifier.fileno(), _Reader(self))

    @property
    def native(self) -> Notifier:
        """The notifier itself."""
        return self._notifier

    async def wait(self, *places: Place, seconds: float | None) -> bool:
        """Wait until something happened to one of the places, or the time ran out.

        Returns:
            Whether something happened in time. Look either way: it may have been in vain, or have
            come with the last look around.
        """
        rings = [(self, self._notifier.add(place)) for place in places]
        self._places.update(zip((number for _, number in rings), places, strict=True))
        return await wait_for_any(rings, seconds)

    def expect(self, number: int, future: asyncio.Future[bool]) -> None:
        """Resolve `future` when something happens to the place that was added under this number."""
        self._futures[number] = future

    def forget(self, number: int) -> None:
        """Expect nothing more of the place that was added under this number."""
        del self._futures[number]
        self._places.pop(number, None)
        self._notifier.remove(number)
        if not self._futures and self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None
            self._notifier.rest()

    def rouse(self, place: Place) -> None:
        """Tell the future that waits for a place that something happened to the place."""
        self._tell([self._notifier.add(place)])

    def close(self) -> None:
        """Give the notifier back. Each waiting future is told that something happened.

        A loop that was closed while its tasks waited can tell no future. Its tasks never go on, so
        the tuples handed to them go back. A loop that runs in another thread does it itself.
        """
        if self._pid != os.getpid():
            # In the child of a fork. The notifier of a loop is shared: if the child stopped
            # waiting for the notifier, so would the parent.
            self._notifier.close()
            return
        if self._loop.is_running() and self._loop is not running_loop():
            with suppress(RuntimeError):  # it was closed in between
                self._loop.call_soon_threadsafe(self._end)
                return
        self._end()

    def loop_is_gone(self) -> None:
        """Give everything back, if the loop was closed: its tasks never go on."""
        if self._loop.is_closed() and self._pid == os.getpid():
            self._end()

    def _end(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if not self._loop.is_closed():
            for future in self._futures.values():
                _resolve(future, True)  # noqa: FBT003
            self._loop.remove_reader(self._notifier.fileno())
        else:
            for place in self._places.values():
                if isinstance(place, Waiter):
                    place.cancel()
        if self._next_look is not None:
            self._next_look.cancel()
        self._notifier.close()

    def listen(self) -> None:
        """Have the loop told of what happens from now on, and of what has happened."""
        while not self._notifier.listen():
            self._tell(self._notifier.drain())
        due = self._loop.time() + self._notifier.next_look()
        if self._next_look is not None and due < self._next_look.when():
            # The notifier was told because something is due earlier than it was.
            self._next_look.cancel()
            self._next_look = None
        if self._next_look is None:
            self._next_look = self._loop.call_at(due, self._look)

    def last_look(self) -> None:
        """Look for places that have waited long enough.

        Everything that is due at this moment has happened, and tuples held by dead processes reach
        the places in the wait queue (rule L5).
        """
        self._tell(self._notifier.last_look())

    def _rung(self) -> None:
        self._tell(self._notifier.drain())
        if self._futures:
            self.listen()
        else:
            self._notifier.rest()

    def _look(self) -> None:
        self._next_look = None
        try:
            numbers = self._notifier.look()
        except SpaceClosed as error:
            for future in self._futures.values():
                if not future.done():
                    future.set_exception(error)
            self._notifier.rest()
            return
        except Exception:  # noqa: BLE001 - whoever waits meets it, and raises it
            numbers = list(self._futures)
        self._tell(numbers)
        if self._futures:
            self.listen()

    def _tell(self, numbers: list[int]) -> None:
        for number in numbers:
            future = self._futures.get(number)
            if future is not None:
                _resolve(future, True)  # noqa: FBT003


class _Reader:
    """The callback of a loop for a notifier with something to tell.

    A loop lets go of it when it is closed.
    """

    __slots__ = ("_notifier",)

    def __init__(self, notifier: LoopNotifier) -> None:
        self._notifier = notifier

    def __call__(self) -> None:
        self._notifier._rung()  # noqa: SLF001 - a part of it

    def __del__(self) -> None:
        """Tell the notifier that the loop is closed: a loop does not say when it closes."""
        self._notifier.loop_is_gone()


async def wait_for_any(rings: Sequence[tuple[LoopNotifier, int]], seconds: float | None) -> bool:
    """Wait until a notifier tells of one of these numbers, or the time ran out; then forget them.

    Returns:
        Whether something happened in time. Look either way: it may have been in vain, or have come
        with the last look around.

    Raises:
        SpaceClosed: one of the spaces was closed meanwhile.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[bool] = loop.create_future()
    timer = None
    if seconds is not None:
        timer = loop.call_later(seconds, _resolve, future, False)  # noqa: FBT003
    for notifier, number in rings:
        notifier.expect(number, future)
    try:
        for notifier, _ in rings:
            notifier.listen()
        happened = await future
        if not happened:
            for notifier in {notifier for notifier, _ in rings}:
                notifier.last_look()
        return happened
    finally:
        if timer is not None:
            timer.cancel()
        for notifier, number in rings:
            notifier.forget(number)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop of this thread, if one runs here."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _resolve(future: asyncio.Future[bool], happened: bool) -> None:  # noqa: FBT001
    if not future.done():
        future.set_result(happened)
