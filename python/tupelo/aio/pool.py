"""`Pool` for asyncio: a function over many values, in processes."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import ParamSpec, TypeVar, cast, overload

from tupelo.aio.answers import answer
from tupelo.aio.space import Space
from tupelo.batteries.core.pool import Failure, Failures, Terms
from tupelo.errors import SpaceClosed, SpaceFull
from tupelo.space import connect
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from types import TracebackType
    from typing import Any, Literal, Self

    from tupelo import _native
    from tupelo._native import Seconds
    from tupelo.errors import RemoteError
    from tupelo.tasks.local import LocalPool
    from tupelo.tasks.mailbox import TaskFuture

__all__ = ["Pool"]

P = ParamSpec("P")
R = TypeVar("R")


class Pool:
    """Worker processes for the length of an `async with` block; see `tupelo.batteries.Pool`.

    >>> import asyncio, math
    >>> from tupelo.aio.batteries import Pool
    >>> async def main():
    ...     async with Pool("mem://roots", workers=2) as pool:
    ...         return [root async for root in pool.map(math.isqrt, [4, 9, 16])]
    >>> asyncio.run(main())
    [2, 3, 4]
    """

    @suggests
    def __init__(
        self,
        url: str | None = None,
        *,
        workers: int | None = None,
        retries: int = 0,
        timeout: Seconds | None = None,
        ttl: Seconds = 30,
        progress: bool = False,
        objects: Literal["strict", "pickle"] | None = None,
    ) -> None:
        """Describe a pool; the block starts it."""
        self._terms = Terms.checked(workers, retries, timeout, ttl, progress)
        self._url = url
        self._objects = objects
        self._pool: LocalPool | None = None
        self._is_over = False
        self._space: Space | None = None
        self._failures = Failures()

    async def __aenter__(self) -> Self:
        """Start the workers."""
        if self._pool is not None:
            message = "this pool was started already: make another one"
            raise RuntimeError(message)
        space = connect(self._url, objects=self._objects)
        start = _Start(self._terms, space)
        try:
            self._pool = await asyncio.to_thread(start.run)
        except BaseException:
            start.give_up()
            raise
        self._space = Space(space)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for the tasks that were submitted, and end the workers; an exception kills them."""
        pool, space = self._started()
        try:
            await asyncio.to_thread(self._terms.end, pool, is_well=error is None)
        except BaseException:
            # No task waits any more: the thread that waits for the workers sees that there are none
            # left. If that thread raised this error, it has killed them.
            pool.kill()
            raise
        finally:
            self._is_over = True
            space.close()
        if error is None:
            self._failures.raise_untold()

    @property
    def failures(self) -> list[Failure]:
        """The tasks of `map` that have failed up to now; looking at them changes nothing."""
        return self._failures.all()

    @overload
    def map(
        self,
        function: Callable[..., R],
        *iterables: Iterable[Any],
        as_completed: bool = False,
        return_exceptions: Literal[False] = False,
    ) -> AsyncIterator[R]: ...

    @overload
    def map(
        self,
        function: Callable[..., R],
        *iterables: Iterable[Any],
        as_completed: bool = False,
        return_exceptions: bool,
    ) -> AsyncIterator[R | RemoteError]: ...

    async def map(
        self,
        function: Callable[..., R],
        *iterables: Iterable[Any],
        as_completed: bool = False,
        return_exceptions: bool = False,
    ) -> AsyncIterator[R | RemoteError]:
        """Call a function with the values of `iterables`; the first step gives out the tasks.

        The loop stands still while `iterables` make their next value; other tasks have their turn
        between two that come slowly.
        """
        pool, space = self._started()
        mapping = self._terms.mapping(
            space,
            pool,
            function,
            iterables,
            self._failures,
            as_completed=as_completed,
            return_exceptions=return_exceptions,
        )
        is_over = False
        try:
            while (batch := await mapping.more()) is not None:
                for result in batch:
                    yield result
                # The next ones may be there already: other tasks are to have a turn in any case.
                await asyncio.sleep(0)
            is_over = True
        finally:
            if not is_over:
                mapping.withdraw()

    async def submit(
        self, function: Callable[P, R], /, *arguments: P.args, **keywords: P.kwargs
    ) -> R:
        """Call a function once; return its result. Cancelling withdraws a task that waits.

        Raises:
            NotEncodable: an argument cannot be stored.
            RemoteError: the task has failed; or the space has dropped it.
            RuntimeError: the pool is that of the process that this one was forked from, or has
                ended.
            SpaceFull: there is no room for the task.
            TypeError: a worker could not find the function: it is a lambda, or inside of another.
        """
        pool, space = self._started()

        def put() -> TaskFuture:
            return self._terms.submit(pool, function, arguments, keywords, timeout_s=0)

        return cast("R", await answer(await space._waiting.with_room(put, None)))

    def pids(self) -> list[int]:
        """Return the process ids of the workers; of threads, none."""
        return self._terms.pids(self._started()[0])

    def _started(self) -> tuple[LocalPool, Space]:
        if self._pool is None or self._space is None or self._is_over:
            message = "a pool works inside of its block: async with Pool(...) as pool"
            raise RuntimeError(message)
        return self._pool, self._space


class _Start:
    """The start of a pool in a thread, which goes on if the task that waits for it is cancelled."""

    def __init__(self, terms: Terms, space: _native.Space) -> None:
        """Get ready. `space` is closed if this is given up."""
        self._terms = terms
        self._space = space
        self._lock = threading.RLock()
        self._pool: LocalPool | None = None
        self._has_begun = False
        self._waits_for_room = False
        self._is_over = False
        self._is_given_up = False
        self._is_left_to_thread = False
        """Whether the thread ends what it has begun, since no other code knows of it."""

    def run(self) -> LocalPool:
        """Start the workers; in the thread."""
        with self._lock:
            self._has_begun = True
        try:
            pool = self._open()
            with self._lock:
                self._pool = pool
                is_given_up = self._is_given_up
            if is_given_up:
                with suppress(SpaceClosed):  # it waited for room
                    pool.kill()
            else:
                self._terms.populate(pool)
            return pool
        finally:
            with self._lock:
                self._is_over = True
                is_left_to_thread = self._is_left_to_thread
            if is_left_to_thread:
                self._space.close()

    def give_up(self) -> None:
        """End the processes that have started, and close the space: no more start."""
        with self._lock:
            self._is_given_up = True
            pool = self._pool
            can_wait = self._waits_for_room
            goes_on = self._has_begun and pool is None and not can_wait and not self._is_over
            self._is_left_to_thread = goes_on
        try:
            if pool is not None:
                pool.kill()
        finally:
            if not goes_on:
                self._space.close()

    def _open(self) -> LocalPool:
        with suppress(SpaceFull):
            return self._terms.open(self._space, room_timeout_s=0)
        with self._lock:
            # That may be for ever. It ends when the space is closed.
            self._waits_for_room = True
            if self._is_given_up:
                self._space.close()
        return self._terms.open(self._space)
