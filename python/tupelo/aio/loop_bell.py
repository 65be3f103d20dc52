"""How the tasks of one event loop wait for the tuples of one space.

A native `Bell` tells which of many places in line have something. The loop waits for its file
descriptor, with all else that it waits for, and looks around from time to time as every blocked
caller does: time passes in the space while its callers sleep, and a process that was killed rings
nobody.
"""

from __future__ import annotations

from tupelo._native import Bell

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any

    from tupelo._native import Space, Subscription, Waiter

    Place = Waiter | Subscription[Any]

__all__ = ["LoopBell"]


class LoopBell:
    """The bell of one event loop in one space."""

    def __init__(self, space: Space, loop: asyncio.AbstractEventLoop) -> None:
        """Get a bell, and let the loop wait for it."""
        self._bell = Bell(space)
        self._loop = loop
        self._futures: dict[int, asyncio.Future[bool]] = {}
        self._next_look: asyncio.TimerHandle | None = None
        loop.add_reader(self._bell.fileno(), self._rung)

    async def wait(self, *places: Place, seconds: float | None) -> bool:
        """Wait until something happened to one of the places, or the time ran out.

        Returns:
            Whether something happened; perhaps in vain, so look.
        """
        future: asyncio.Future[bool] = self._loop.create_future()
        numbers = [self._bell.add(place) for place in places]
        self._futures.update(dict.fromkeys(numbers, future))
        timer = None
        if seconds is not None:
            timer = self._loop.call_later(seconds, _resolve, future, False)  # noqa: FBT003
        try:
            self._listen()
            return await future
        finally:
            if timer is not None:
                timer.cancel()
            for number in numbers:
                del self._futures[number]
                self._bell.remove(number)
            if not self._futures and self._next_look is not None:
                self._next_look.cancel()
                self._next_look = None

    def rouse(self, place: Place) -> None:
        """Tell whoever waits for a place that something happened to it."""
        self._tell([self._bell.add(place)])

    def close(self) -> None:
        """Give the bell back. Who still waits is told that something happened, and finds out."""
        for future in self._futures.values():
            _resolve(future, True)  # noqa: FBT003
        if not self._loop.is_closed():
            self._loop.remove_reader(self._bell.fileno())
        if self._next_look is not None:
            self._next_look.cancel()
        self._bell.close()

    def _listen(self) -> None:
        while not self._bell.listen():
            self._tell(self._bell.drain())
        if self._next_look is None:
            self._next_look = self._loop.call_later(self._bell.next_look(), self._look)

    def _rung(self) -> None:
        numbers = self._bell.drain()
        self._tell(numbers)
        if not numbers and self._next_look is not None:
            # Rung because of the time: something is due earlier than it was.
            self._next_look.cancel()
            self._next_look = None
        if self._futures:
            self._listen()

    def _look(self) -> None:
        self._next_look = None
        try:
            numbers = self._bell.look()
        except Exception:  # noqa: BLE001 - whoever waits meets it, and raises it
            numbers = list(self._futures)
        self._tell(numbers)
        if self._futures:
            self._listen()

    def _tell(self, numbers: list[int]) -> None:
        for number in numbers:
            future = self._futures.get(number)
            if future is not None:
                _resolve(future, True)  # noqa: FBT003


def _resolve(future: asyncio.Future[bool], happened: bool) -> None:  # noqa: FBT001
    if not future.done():
        future.set_result(happened)
