"""How the tasks of a connection wait for the disk (rule C4).

A change of a space that is kept in a file is in effect at once. The call that made it returns when
the change is on disk. Its task waits for that, and the other tasks of the event loop go on. One
thread of the connection waits for the disk itself. While it does, more tasks change the space, and
the next wait is for all of them.

Rejected: a thread per call, which costs more than the rest of the call. Rejected, too: the default
threads of the event loop, which a program may keep busy for long.
"""

from __future__ import annotations

import asyncio
import functools
import os
from concurrent.futures import ThreadPoolExecutor

from tupelo import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from tupelo._native import Sync

__all__ = ["Disk", "settling"]


class Disk:
    """The disk behind a connection whose own calls do not wait for it."""

    def __init__(self, space: _native.Space, sync: Sync | None) -> None:
        """Get ready; `sync` is what calls do that do not say it themselves."""
        self._space = space
        self._sync = sync
        self._turns: dict[asyncio.AbstractEventLoop, asyncio.Future[None]] = {}
        self._thread: tuple[int, ThreadPoolExecutor] | None = None

    async def settled(self, sync: Sync | None = None) -> None:
        """Wait until what this thread has changed is on disk, if the call is to wait.

        A task that is cancelled meanwhile has had its effect, so its call returns all the same.
        The cancellation is raised where the task waits next.

        Raises:
            DurabilityUnknown: it is in effect, and comes to the disk when that is possible.
        """
        position = None if (sync or self._sync) == "none" else _native.unsettled(self._space)
        if position is None:
            return
        loop = asyncio.get_running_loop()
        cancelled = None
        try:
            while not _native.is_on_disk(self._space, position):
                turn = self._turn(loop, position)
                try:
                    await asyncio.shield(turn)
                except asyncio.CancelledError as error:
                    if turn.cancelled():
                        raise
                    cancelled = error
        finally:
            if cancelled is not None:
                loop.call_soon(_cancel_again, asyncio.current_task(), cancelled.args)

    def _turn(self, loop: asyncio.AbstractEventLoop, position: int) -> asyncio.Future[None]:
        """Return the wait that is under way, or begin one up to a position."""
        turn = self._turns.get(loop)
        if turn is None or turn.done():
            for closed in [one for one in self._turns if one.is_closed()]:
                del self._turns[closed]
            turn = loop.run_in_executor(
                self._executor(), _native.settle_up_to, self._space, position
            )
            self._turns[loop] = turn
        return turn

    def _executor(self) -> ThreadPoolExecutor:
        """Return the thread; the child of a fork has one of its own."""
        process = os.getpid()
        if self._thread is None or self._thread[0] != process:
            self._thread = process, ThreadPoolExecutor(1, thread_name_prefix="tupelo-disk")
        return self._thread[1]


def _cancel_again(task: asyncio.Task[Any] | None, arguments: tuple[Any, ...]) -> None:
    """Cancel a task that was cancelled too late, unless the cancellation was withdrawn since.

    It was, if a block such as `asyncio.timeout` has ended in time.
    """
    if task is not None and not task.done() and task.cancelling():
        task.uncancel()
        task.cancel(*arguments)


def settling(verb: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Return the verb of a space as it waits for the disk when it has had its effect."""

    @functools.wraps(verb)
    async def method(self: Any, *arguments: Any, sync: Sync | None = None, **keywords: Any) -> Any:
        if sync is not None:
            _native.require_sync(self._space, sync)
        result = await verb(self, *arguments, **keywords)
        await self._waiting.settled(sync)
        return result

    return method
