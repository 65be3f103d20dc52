"""Transactions of tasks: operations that take effect together, or not at all (rules X1 to X7).

All that happens is the synchronous transaction's; here is how its verbs wait. A transaction belongs
to the task that began it, as a synchronous one belongs to its thread. Otherwise two tasks in one
transaction would see each other's changes, and one could commit the other's unfinished work.
"""

from __future__ import annotations

import asyncio

from tupelo import _native
from tupelo.aio import arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Any, NoReturn, Self, TypeVar

    from tupelo._native import Order, Seconds, Sync, Template
    from tupelo.aio.space import Space

    R = TypeVar("R")

__all__ = ["Transaction", "TransactionSpace"]


class Owner:
    """The task that a transaction belongs to.

    A transaction that was begun outside of all tasks belongs to the first task that uses it.
    """

    def __init__(self) -> None:
        """Note the task that runs, if one does."""
        try:
            self._task = asyncio.current_task()
        except RuntimeError:  # no event loop
            self._task = None

    def require(self) -> None:
        """Refuse every other task.

        Raises:
            ValueError: this is another task, as another thread is refused.
        """
        task = asyncio.current_task()
        if self._task is None:
            self._task = task
        elif self._task is not task:
            message = (
                "TUP-019: this transaction belongs to the task that began it\n  begin one in each "
                "task: each of them is atomic on its own; for a limit of time give timeout=, or "
                "use asyncio.timeout: wait_for makes a task in Python 3.11"
            )
            raise ValueError(message)


class TransactionSpace:
    """A space as a transaction sees it (rule X6). The verbs are those of `tupelo.TransactionSpace`.

    They have the same arguments, results and errors, and are awaited. If the task of a waiting verb
    is cancelled, the verb has taken and changed nothing.

    Raises:
        ValueError: at any call: it comes from another task than began the transaction, or the
            transaction was committed or aborted before.
        Aborted: at any call: the transaction's ttl has passed.
    """

    def __init__(self, space: Space, inside: _native.TransactionSpace, owner: Owner) -> None:
        """Wrap the view of a synchronous transaction."""
        self._space = space
        self._plain = inside
        self._owner = owner

    @property
    def _inside(self) -> _native.TransactionSpace:
        """The view of the synchronous transaction, for the task that began it."""
        self._owner.require()
        return self._plain

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        message = (
            "a transaction stays with the process that made it: begin one in the other process"
        )
        raise TypeError(message)

    def __repr__(self) -> str:
        """Show where it is; of a transaction also whether it is open."""
        return f"<aio.{repr(self._plain)[1:]}"

    async def put(self, *fields: Any, **terms: Any) -> None:
        """Store a tuple when the transaction commits, on terms that count from then."""
        self._inside.put(*fields, **terms)

    async def put_all(self, tuples: Iterable[Any], /, **terms: Any) -> int:
        """Store several tuples when the transaction commits, on terms that count from then."""
        return self._inside.put_all(tuples, **terms)

    async def put_if_absent(self, *fields: Any, unless: Any = None, **terms: Any) -> bool:
        """Store a tuple when the transaction commits, unless something matches."""
        return self._inside.put_if_absent(*fields, unless=unless, **terms)

    async def try_take(self, *template: Any, order: Order = "fifo", **fields: Any) -> Any:
        """Take a match, or return None at once."""
        return self._inside.try_take(*template, order=order, **fields)

    async def try_read(self, *template: Any, order: Order = "fifo", **fields: Any) -> Any:
        """Copy a match, or return None at once."""
        return self._inside.try_read(*template, order=order, **fields)

    async def take_all(self, *template: Any, limit: int | None = None, **fields: Any) -> list[Any]:
        """Take the matches of one moment."""
        return self._inside.take_all(*template, limit=limit, **fields)

    async def discard(self, *template: Any, limit: int | None = None, **fields: Any) -> int:
        """Take the matches of one moment, and return how many there were."""
        return self._inside.discard(*template, limit=limit, **fields)

    async def read_all(self, *template: Any, limit: int | None = None, **fields: Any) -> list[Any]:
        """Copy the matches of one moment."""
        return self._inside.read_all(*template, limit=limit, **fields)

    async def try_swap(self, *template: Any, to: Any, **fields: Any) -> Any:
        """Replace a match when the transaction commits, or return None at once."""
        return self._inside.try_swap(*template, to=to, **fields)

    async def count(self, *template: Any, **fields: Any) -> int:
        """Count the matches of one moment."""
        return self._inside.count(*template, **fields)

    async def take(
        self,
        *template: Any,
        timeout: Seconds | None = None,
        order: Order = "fifo",
        **fields: Any,
    ) -> Any:
        """Take a match, waiting for one."""
        _native.require_clear(*template)
        _native.seconds("timeout", timeout)  # a wrong one is refused before anything is taken

        def attempt() -> Any:
            return self._inside.try_take(*template, order=order, **fields)

        found = attempt()
        if found is not None:
            return found
        if self._inside._has_read():
            return await self._retry(attempt, ("take", template, fields), timeout)
        sought = _native.like(*template, **fields)
        if _native.seconds("timeout", timeout) == 0:
            verb = "take"
            raise self._inside._timed_out(verb, timeout, sought)
        place = self._inside._waiter("take", sought)

        def pick_up() -> Any:
            return self._inside._finish_take(place)

        return await self._until(pick_up, place, ("take", sought), timeout)

    async def read(
        self,
        *template: Any,
        timeout: Seconds | None = None,
        order: Order = "fifo",
        **fields: Any,
    ) -> Any:
        """Copy a match, waiting for one."""

        def attempt() -> Any:
            return self._inside.try_read(*template, order=order, **fields)

        return await self._retry(attempt, ("read", template, fields), timeout)

    async def take_many(
        self,
        *template: Any,
        n: int,
        at_least: int | None = None,
        timeout: Seconds | None = None,
        **fields: Any,
    ) -> list[Any]:
        """Take `n` matches together, or at least `at_least`, waiting for them."""

        def attempt() -> list[Any] | None:
            return self._inside._try_take_many(*template, n=n, at_least=at_least, **fields)

        return await self._retry(attempt, ("take_many", template, fields), timeout)

    async def swap(
        self, *template: Any, to: Any, timeout: Seconds | None = None, **fields: Any
    ) -> Any:
        """Replace a match when the transaction commits, waiting for one; return the old one."""

        def attempt() -> Any:
            return self._inside.try_swap(*template, to=to, **fields)

        return await self._retry(attempt, ("swap", template, fields), timeout)

    async def _retry(
        self,
        attempt: Callable[[], R | None],
        what: tuple[str, tuple[Any, ...], dict[str, Any]],
        timeout: Seconds | None,
    ) -> R:
        """Try again whenever a match was put or given back."""
        verb, template, fields = what
        _native.require_clear(*template)
        _native.seconds("timeout", timeout)
        done = attempt()
        if done is not None:
            return done
        # Not before the first attempt, which knows the keywords of the verb.
        sought = _native.like(*template, **fields)
        # Watching begins before the next attempt, so that nothing in between is missed.
        puts = self._inside._waiter("put", sought)
        return await self._until(attempt, puts, (verb, sought), timeout)

    async def _until(
        self,
        attempt: Callable[[], R | None],
        place: _native.Waiter,
        what: tuple[str, Template[Any]],
        timeout: Seconds | None,
    ) -> R:
        """Try whenever something happens to `place`, until it succeeds or the time runs out."""
        loop = asyncio.get_running_loop()
        # First the length: a wait that ends with the transaction must not end before it.
        length = self._inside._wait_at_most(timeout)
        deadline = loop.time() + length
        try:
            while True:
                done = None if self._inside._is_over() else attempt()
                left = deadline - loop.time()
                if done is None and left <= 0 and place.end_wait() and not self._inside._is_over():
                    # It came between the two looks.
                    done = attempt()
                if done is not None or left <= 0:
                    break
                await self._space._waiting.notifier(loop).wait(place, seconds=left)
        finally:
            # A tuple that was handed over in the meantime goes back to its place (rule T5).
            place.cancel()
        if done is None:
            verb, template = what
            raise self._inside._timed_out(verb, timeout, template)
        return done


class Transaction(TransactionSpace):
    """Operations on one or several spaces that take effect together, or not at all.

    Made by `Space.transaction`. As an asynchronous context manager it commits at the end of its
    block; an exception or a cancellation aborts it. It belongs to the task that began it: calls of
    any other raise `ValueError`, and change nothing.
    """

    def __init__(
        self, space: Space, others: tuple[Space, ...], ttl: Seconds, sync: Sync | None = None
    ) -> None:
        """Begin."""
        for other in others:
            arguments.blocking("transaction", other)
        space._waiting.require_sync(sync)
        self._transaction = space._space.transaction(*(one._space for one in others), ttl=ttl)
        self._spaces = (space, *others)
        self._sync = sync
        self._is_committed = False
        super().__init__(space, self._transaction, Owner())

    def on(self, space: Space) -> TransactionSpace:
        """Return another space of the transaction, as the transaction sees it.

        Raises:
            TypeError: it is no space of `tupelo.aio`.
            ValueError: the transaction was not begun over it, or by another task.
        """
        self._owner.require()
        asked = arguments.blocking("on", space)
        inside = self._transaction.on(asked)
        # That of the transaction, which waits there: the name may be another space's in a moment.
        own = (one for one in self._spaces if _native.is_same(one.blocking, asked))
        return TransactionSpace(next(own, space), inside, self._owner)

    async def commit(self, *, sync: Sync | None = None) -> None:
        """Make everything happen at one moment (rule X1); `sync` is as for `put`.

        Raises:
            Aborted: the ttl has passed, and everything is as it was.
            SpaceFull: there is no room. Nothing happened, and the transaction goes on.
            ValueError: this is another task, or it was committed or aborted before.
        """
        self._owner.require()
        self._space._waiting.require_sync(sync)
        self._transaction.commit()
        self._is_committed = True
        await self._settled(sync)

    async def _settled(self, sync: Sync | None = None) -> None:
        """Wait until what has changed is on disk."""
        for space in self._spaces:
            await space._waiting.settled(sync or self._sync)

    async def abort(self) -> None:
        """Undo everything: the taken tuples are back with identity, age and place (rule X5).

        Raises:
            ValueError: this is another task, or it was committed or aborted before.
        """
        self._owner.require()
        self._transaction.abort()

    async def __aenter__(self) -> Self:
        """Return this, to the task that began it."""
        self._owner.require()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Commit, unless the block has committed or aborted; abort if it raised."""
        if exception is None:
            # A failed transaction may be aborted in any task. The loop makes a task of its own to
            # end an asynchronous generator that is abandoned.
            self._owner.require()
        self._transaction.__exit__(kind, exception, traceback)
        if exception is None and not self._is_committed:
            await self._settled()
