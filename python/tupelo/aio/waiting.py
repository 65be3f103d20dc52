"""How the tasks of a connection wait.

A wait is in the wait queue for a tuple (`take`, `read`, `claim`) or for room (all puts). Other
verbs try again when something was put or removed (`take_many`, `swap`, `wait_none`, `consume`).
"""

from __future__ import annotations

import asyncio

from tupelo import _native
from tupelo.aio.loop_notifier import LoopNotifier
from tupelo.errors import SpaceFull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, TypeAlias, TypeVar

    from tupelo._native import Seconds, Sync, Template
    from tupelo.aio.disk import Disk
    from tupelo.consuming import Mark

    R = TypeVar("R")
    # The patterns, and the fields of an entry that came by name.
    Sought: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

__all__ = ["Waiting"]


class Waiting:
    """The waits of the tasks of one connection, with a notifier in each event loop."""

    def __init__(self, space: _native.Space, disk: Disk | None = None) -> None:
        """Get ready; a loop gets its notifier when a task of it waits.

        The disk is that of a space that is kept in a file.
        """
        self._space = space
        self._disk = disk
        self._notifiers: dict[asyncio.AbstractEventLoop, LoopNotifier] = {}

    def __del__(self) -> None:
        """Give all notifiers back: a loop that waits for one would keep it, and the connection.

        No task waits any more: a waiting task holds a reference to this. It may be at the end of
        the program, in any thread, or in the child of a fork.
        """
        self.close()

    def notifier(self, loop: asyncio.AbstractEventLoop) -> LoopNotifier:
        """Return what an event loop waits with."""
        notifier = self._notifiers.get(loop)
        if notifier is None:
            self._give_back_notifiers()
            notifier = self._notifiers[loop] = LoopNotifier(self._space, loop)
        return notifier

    def _give_back_notifiers(self) -> None:
        """Close the notifiers of loops that are closed, each of which has a descriptor.

        A loop does not say when it closes. So a program that calls `asyncio.run` again and again
        has one notifier at a time, and not one for each.
        """
        for loop in list(self._notifiers):
            if loop.is_closed() and (notifier := self._notifiers.pop(loop, None)) is not None:
                notifier.close()

    def close(self) -> None:
        """Give all notifiers back. Each waiting task is told that something happened."""
        # One by one: a thread may begin to wait meanwhile.
        while self._notifiers:
            try:
                _, notifier = self._notifiers.popitem()
            except KeyError:  # another one was at it
                return
            notifier.close()

    def require_sync(self, sync: Sync | None) -> None:
        """Refuse a call that says wrongly when it returns.

        Raises:
            TypeError: it says nothing that is known.
            ValueError: as above, or the space is kept in no file.
        """
        if sync is not None:
            _native.require_sync(self._space, sync)

    @property
    def deferred(self) -> Literal["none"] | None:
        """What a blocking call is told, so that the wait for the disk is left to `settled`."""
        return None if self._disk is None else "none"

    async def settled(self, sync: Sync | None = None) -> None:
        """Wait until what has changed is on disk, if there is one and the call is to wait."""
        if self._disk is not None:
            await self._disk.settled(sync)

    async def queued(
        self,
        verb: Literal["take", "read", "claim"],
        place: _native.Waiter,
        sought: tuple[Template[Any], float | None],
        pick_up: Callable[[_native.Waiter], R | None],
    ) -> R:
        """Wait for the match that a place is in the wait queue for, and pick it up."""
        template, seconds = sought
        try:
            found = await self._served(place, seconds, pick_up)
        finally:
            # A tuple that was handed over in the meantime goes back to its place (rule T5).
            place.cancel()
        if found is None:
            raise _native.timed_out(self._space, verb, seconds or 0.0, template)
        return found

    async def _served(
        self,
        place: _native.Waiter,
        seconds: float | None,
        pick_up: Callable[[_native.Waiter], R | None],
    ) -> R | None:
        """Wait for a tuple that is handed to a waiter; None if the time runs out."""
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        while True:
            found = pick_up(place)
            if found is not None:
                return found
            left = None if deadline is None else deadline - loop.time()
            if left is not None and left <= 0:
                # What comes between the two looks has come in time, too.
                return pick_up(place) if place.end_wait() else None
            await self.notifier(loop).wait(place, seconds=left)

    async def with_room(self, put: Callable[[], R], timeout: Seconds | None) -> R:
        """Put; if there is no room, wait for it, as long as the timeout and the space say."""
        seconds = _native.time_limit(self._space, timeout)
        try:
            return put()
        except SpaceFull as full:
            if seconds == 0 or not full.may_pass:
                raise
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        place = _native.waiter(self._space, "room")
        try:
            while True:
                try:
                    return place.with_grant(put)
                except SpaceFull:
                    left = None if deadline is None else deadline - loop.time()
                    if left is not None and left <= 0:
                        raise
                await self.notifier(loop).wait(place, seconds=left)
        finally:
            # The turn, if it came in the meantime, goes to the next in the wait queue.
            place.cancel()

    async def until(
        self,
        attempt: Callable[[], R | None],
        on: Literal["put", "removal"],
        sought: Sought,
        seconds: float | None,
    ) -> R | None:
        """Try again whenever a match was put or removed; None if the time runs out."""
        done = attempt()
        if done is not None or seconds == 0:
            return done
        loop = asyncio.get_running_loop()
        deadline = None if seconds is None else loop.time() + seconds
        # Watching begins before the next attempt, so that nothing in between is missed.
        patterns, fields = sought
        watch = _native.waiter(self._space, on, _native.like(*patterns, **fields))
        try:
            while True:
                done = attempt()
                left = None if deadline is None else deadline - loop.time()
                if done is not None or (left is not None and left <= 0):
                    return done
                await self.notifier(loop).wait(watch, seconds=left)
        finally:
            watch.cancel()

    async def next_of(self, template: Template[Any], mark: Mark, idle_s: float | None) -> Any:
        """Wait for a match and return it, or None at the end of a `consume`."""
        loop = asyncio.get_running_loop()
        deadline = None if idle_s is None else loop.time() + idle_s
        place = _native.waiter(self._space, "take", template)
        # Watching begins before the first look, so that nothing slips through in between.
        finished = _native.waiter(self._space, "put", *mark.any)
        removals = _native.waiter(self._space, "removal", template)
        try:
            while True:
                over = mark.over()
                found = place.finish_now()
                if found is not None:
                    mark.begin_anew(over)
                    return found
                left = None if deadline is None else deadline - loop.time()
                if (left is not None and left <= 0) or mark.ends(lambda: self._is_none(template)):
                    found = place.finish_now() if place.end_wait() else None
                    mark.begin_anew(over if found is not None else None)
                    return found
                await self.notifier(loop).wait(place, finished, removals, seconds=left)
        finally:
            for waiter in (place, finished, removals):
                waiter.cancel()

    def _is_none(self, template: Template[Any]) -> bool:
        """Return whether nothing matches or is held."""
        return not _native.present(self._space, (template,), {})
