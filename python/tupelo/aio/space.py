"""A space whose waiting verbs are awaited.

What does not wait takes about a microsecond, and is the verb of the synchronous space. How the
others wait is told in `tupelo.aio.waiting`.
"""

from __future__ import annotations

import asyncio

from tupelo import _native, stepping, updating
from tupelo.aio import arguments
from tupelo.aio.answers import answer
from tupelo.aio.claim import Claim
from tupelo.aio.lease import Lease
from tupelo.aio.now import Now
from tupelo.aio.subscription import Subscription
from tupelo.aio.transaction import Transaction
from tupelo.aio.waiting import Waiting
from tupelo.consuming import Mark, new_mark, those_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from concurrent.futures import Future
    from typing import Any, Literal, Self, TypedDict

    from tupelo._native import EventKind, Order, Seconds, Sync, Template

    class Terms(TypedDict):
        """The terms of a claim."""

        ttl: Seconds
        max_attempts: int | None


__all__ = ["Space"]

FUTURES = {"take_future": "take", "read_future": "read"}
"""Verbs of the synchronous space that are none here: a task of the verb is such a future."""

SCAN_BATCH = 256
"""Tuples that a scan returns before other tasks get their turn."""


class Space(Now):
    """A connection to a space, for the tasks of event loops. Made by `tupelo.aio.connect`.

    The verbs are those of `tupelo.Space`, with the same arguments, units, defaults, results and
    errors. Only what is different is told here. All are awaited but those that say so. One that
    waits does so for ever unless `timeout` says how many seconds. Its task may be cancelled.

    As an asynchronous context manager it closes itself; the tuples stay in the space. A forgotten
    connection gives back the places and notifiers of its event loops.
    """

    def __init__(self, space: _native.Space) -> None:
        """Wrap a synchronous connection."""
        self._space = space
        self._waiting = Waiting(space)

    @property
    def blocking(self) -> _native.Space:
        """The same connection, blocking: for what does not wait, and for threads."""
        return self._space

    @property
    def url(self) -> str:
        """Where the space is, as given to `connect`."""
        return self._space.url

    @property
    def objects(self) -> Literal["strict", "pickle"]:
        """What becomes of objects of no kind of field, as given to `connect`."""
        return self._space.objects

    @property
    def sync(self) -> Sync | None:
        """When calls that change the space return; None for a space that is kept in no file."""
        return self._space.sync

    @property
    def on_removed(self) -> Literal["error", "reconnect"]:
        """What a call does when the space was removed, as given to `connect`."""
        return self._space.on_removed

    @property
    def name(self) -> str:
        """The name of the space, without the scheme and the options of its URL."""
        return self._space.name

    def __repr__(self) -> str:
        """Show where it is."""
        return f"<aio.Space {self.url}>"

    def _pinned(self) -> Space:
        """Return the connection to the space of this moment: this one, unless it reconnects."""
        return self

    def __reduce__(self) -> tuple[Callable[[_native.Space], Space], tuple[_native.Space]]:
        """The state for a pickle: the connection, as a pickle of that keeps it."""
        return wrapped, (self.blocking,)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what there is instead of a future."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in FUTURES:
                message += f": use asyncio.create_task(space.{FUTURES[name]}(...))"
            raise AttributeError(message, name=name, obj=self)

    async def __aenter__(self) -> Self:
        """Do nothing more: the space is open."""
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """End the connection; see `tupelo.Space.close`.

        Tasks that wait in it, of any loop, raise `SpaceClosed`, and so do later calls; the tuples
        stay. It may be called in any thread.
        """
        self._space.close()
        self._waiting.close()

    async def flush(self) -> None:
        """Wait until all that was changed by now is on disk; see `tupelo.Space.flush`."""
        await asyncio.to_thread(self._space.flush)

    async def unsubscribe(self, name: str) -> bool:
        """End a subscription that could be resumed; see `tupelo.Space.unsubscribe`."""
        return await asyncio.to_thread(self._space.unsubscribe, name)

    async def try_claim(
        self,
        *template: Any,
        ttl: Seconds = 30,
        max_attempts: int | None = None,
        order: Order = "fifo",
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> Claim[Any] | None:
        """Claim a match, or return None at once; see `tupelo.Space.try_claim`.

        The claim is one of `tupelo.aio`, whose verbs are awaited.
        """
        if sync is not None:
            _native.require_sync(self._space, sync)
        claimed = self._space.try_claim(
            *template, ttl=ttl, max_attempts=max_attempts, order=order, where=where, **fields
        )
        return None if claimed is None else await Claim(_at_once(claimed), self._waiting, sync)

    async def finish(self, *template: Any, where: str | None = None, **fields: Any) -> None:
        """End every `consume` of an equal template; see `tupelo.Space.finish`.

        It ends the `consume` calls of any process, with asyncio or without, once nothing matches
        any more.
        """
        arguments.require_keywords("finish", template, fields)
        ended = _native.like(*template, where=where, **fields)
        mark = new_mark(ended)
        over, said = those_of(ended)
        if await self.try_swap(*over, to=mark) is None:
            await self.put_if_absent(*mark, unless=said)

    async def eval(
        self, *fields: Any, on: Literal["processes", "threads", "workers"] | None = None
    ) -> tuple[Any, ...]:
        """Have others compute a tuple and put it; see `tupelo.Space.eval`.

        Awaited, it returns the tuple as soon as the tuple has been computed. It raises
        `RemoteError` if a call failed. For a future, make a task of it. A cancelled task withdraws
        the work if no worker has begun; otherwise the tuple appears all the same.
        """
        computed: tuple[Any, ...] = await answer(await self._put_task(fields, on))
        return computed

    async def _put_task(self, fields: tuple[Any, ...], on: Any) -> Future[Any]:
        """Put the task of an `eval`; return its future."""
        from tupelo.tasks import evaluation  # noqa: PLC0415 - only who evaluates needs it

        def put() -> Future[Any]:
            sync = self._waiting.deferred
            return evaluation.evaluate(self.blocking, fields, on, timeout_s=0, sync=sync)

        future = await self._waiting.with_room(put, None)
        await self._waiting.settled()
        return future

    def transaction(
        self, *others: Space, ttl: Seconds = 30, sync: Sync | None = None
    ) -> Transaction:
        """Begin operations that take effect together; see `tupelo.Space.transaction`.

        Not awaited, but entered: `async with space.transaction() as t`. It belongs to the task that
        began it, and the others are spaces of `tupelo.aio`, too.
        """
        return Transaction(self, tuple(map(arguments.there, others)), ttl, sync)

    # What waits.

    async def put(
        self,
        *fields: Any,
        lease: Seconds | None = None,
        after: Seconds | None = None,
        timeout: Seconds | None = None,
        sync: Sync | None = None,
        **unknown: Any,
    ) -> Lease | None:
        """Store a tuple, waiting for room, if need be; see `tupelo.Space.put`.

        A task that is cancelled while it waits for room has put nothing. The lease, if any, is one
        of `tupelo.aio`, whose verbs are awaited.
        """

        def put() -> _native.Lease | None:
            return self._space.put(
                *fields, lease=lease, after=after, timeout=0, sync=sync, **unknown
            )

        plain = await self._waiting.with_room(put, timeout)
        return None if plain is None else Lease(plain, self._waiting)

    async def put_all(
        self,
        tuples: Iterable[Any],
        /,
        *,
        lease: Seconds | None = None,
        after: Seconds | None = None,
        timeout: Seconds | None = None,
        atomic: bool = True,
        progress: Callable[[int], object] | None = None,
        sync: Sync | None = None,
        **unknown: Any,
    ) -> int:
        """Store all tuples together, or none; return how many; see `tupelo.Space.put_all`.

        An iterator is gone through at once, before it waits for room. A task that is cancelled
        meanwhile has put nothing.
        """
        if atomic is False:
            terms = {"lease": lease, "after": after, "timeout": timeout, "sync": sync, **unknown}
            return await stepping.put_steps(
                tuples, lambda some: self.put_all(some, **terms), progress
            )
        if atomic is not True or progress is not None:
            unknown |= {"atomic": atomic, "progress": progress}  # which is refused
        # Each attempt needs all of them again.
        every = list(tuples) if hasattr(tuples, "__next__") else tuples

        def put() -> int:
            return self._space.put_all(
                every, lease=lease, after=after, timeout=0, sync=sync, **unknown
            )

        return await self._waiting.with_room(put, timeout)

    async def put_if_absent(
        self,
        *fields: Any,
        unless: Any = None,
        lease: Seconds | None = None,
        after: Seconds | None = None,
        timeout: Seconds | None = None,
        sync: Sync | None = None,
        **unknown: Any,
    ) -> bool | Lease | None:
        """Store a tuple unless something matches; see `tupelo.Space.put_if_absent`.

        A cancelled task has put nothing. The lease, if any, is one of `tupelo.aio`, as of `put`.
        """
        terms: dict[str, Any] = {"lease": lease, "after": after, "sync": sync, **unknown}

        def put() -> Any:
            return self._space.put_if_absent(*fields, unless=unless, timeout=0, **terms)

        done: bool | _native.Lease | None = await self._waiting.with_room(put, timeout)
        return Lease(done, self._waiting) if isinstance(done, _native.Lease) else done

    async def take(
        self,
        *template: Any,
        timeout: Seconds | None = None,
        order: Order = "fifo",
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> Any:
        """Take a match, waiting for one; see `tupelo.Space.take`.

        A cancelled task has taken nothing. A tuple on its way to the task goes back to its place,
        and from there to the next in the wait queue.
        """
        arguments.require_keywords("take", template, fields)
        seconds = _native.seconds("timeout", timeout)
        taken = self._space.try_take(*template, order=order, sync=sync, where=where, **fields)
        if taken is not None:
            return taken
        sought = _native.like(*template, where=where, **fields)
        place = _native.waiter(self._space, "take", sought)
        return await self._waiting.queued(
            "take", place, (sought, seconds), _native.Waiter.finish_now
        )

    async def read(
        self,
        *template: Any,
        timeout: Seconds | None = None,
        order: Order = "fifo",
        where: str | None = None,
        **fields: Any,
    ) -> Any:
        """Copy a match, waiting for one; see `tupelo.Space.read`.

        A cancelled task has changed nothing.
        """
        arguments.require_keywords("read", template, fields)
        seconds = _native.seconds("timeout", timeout)
        found = self._space.try_read(*template, order=order, where=where, **fields)
        if found is not None:
            return found
        sought = _native.like(*template, where=where, **fields)
        place = _native.waiter(self._space, "read", sought)
        return await self._waiting.queued(
            "read", place, (sought, seconds), _native.Waiter.finish_now
        )

    def claim(
        self,
        *template: Any,
        ttl: Seconds = 30,
        timeout: Seconds | None = None,
        max_attempts: int | None = None,
        order: Order = "fifo",
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> Claim[Any]:
        """Claim a match, waiting for one; see `tupelo.Space.claim`.

        To be awaited, or entered: `async with space.claim(...) as fields`. Nothing happens before,
        so a mistake in the arguments shows there. A task that is cancelled has claimed nothing,
        and a block that is cancelled aborts the claim.
        """
        terms: Terms = {"ttl": ttl, "max_attempts": max_attempts}
        options = {"timeout": timeout, "order": order, "where": where, **fields}
        claimed = self._claim(*template, sync=sync, **terms, **options)
        return Claim(claimed, self._waiting, sync)

    async def _claim(
        self,
        *template: Any,
        ttl: Seconds,
        max_attempts: int | None,
        timeout: Seconds | None,
        order: Order,
        sync: Sync | None = None,
        **fields: Any,
    ) -> _native.Claim[Any]:
        self._waiting.require_sync(sync)
        terms: Terms = {"ttl": ttl, "max_attempts": max_attempts}
        arguments.require_keywords("claim", template, fields)
        seconds = _native.seconds("timeout", timeout)
        claimed = self._space.try_claim(*template, order=order, **terms, **fields)
        if claimed is not None:
            return claimed

        def pick_up(place: _native.Waiter) -> _native.Claim[Any] | None:
            return place.claim_now(**terms)

        match = _native.like(*template, **fields)
        place = _native.claimant(self._space, match, **terms)
        return await self._waiting.queued("claim", place, (match, seconds), pick_up)

    async def _claim_partly(
        self, match: Template[Any], *, ttl: Seconds, timeout: float | None
    ) -> _native.Claim[Any]:
        """Claim a match as far as it can be read; see `_native.claim_partly`."""

        def pick_up(place: _native.Waiter) -> _native.Claim[Any] | None:
            return place.claim_now(ttl=ttl, max_attempts=None, partly=True)

        place = _native.claimant(self._space, match, ttl=ttl)
        return await self._waiting.queued("claim", place, (match, timeout), pick_up)

    async def take_many(
        self,
        *template: Any,
        n: int,
        at_least: int | None = None,
        timeout: Seconds | None = None,
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> list[Any]:
        """Take `n` matches together, waiting for them; see `tupelo.Space.take_many`.

        A task that is cancelled has taken nothing.
        """
        arguments.require_keywords("take_many", template, fields)
        if sync is not None:
            _native.require_sync(self._space, sync)
        seconds = _native.seconds("timeout", timeout)
        fields = arguments.conditioned(fields, where)

        def attempt() -> list[Any] | None:
            return _native.try_take_many(self._space, template, fields, n=n, at_least=at_least)

        taken = await self._waiting.until(attempt, "put", (template, fields), seconds)
        if taken is None:
            sought = _native.like(*template, **fields)
            least = n if at_least is None else at_least
            raise _native.timed_out(
                self._space, "take_many", seconds or 0.0, sought, at_least=least
            )
        return taken

    async def update(
        self,
        *template: Any,
        to: Callable[[Any], Any],
        timeout: Seconds | None = None,
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> Any:
        """Replace a match by the result of a function; see `tupelo.Space.update`.

        The function is called in the event loop, and is no coroutine. A cancelled task has changed
        nothing: the tuple is back at its place.
        """
        arguments.require_keywords("update", template, fields)
        updating.require_function(to)
        fields = arguments.conditioned(fields, where)
        async with self.transaction(sync=sync) as t:
            new = to(await t.take(*template, timeout=timeout, **fields))
            await t.put(*updating.fields_of(new))
        return new

    async def swap(
        self,
        *template: Any,
        to: Any,
        timeout: Seconds | None = None,
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> Any:
        """Replace a match and return it, waiting for one; see `tupelo.Space.swap`.

        A task that is cancelled has changed nothing.
        """
        arguments.require_keywords("swap", template, fields)
        seconds = _native.seconds("timeout", timeout)
        fields = arguments.conditioned(fields, where)

        def attempt() -> Any:
            return self._space.try_swap(*template, to=to, sync=sync, **fields)

        old = await self._waiting.until(attempt, "put", (template, fields), seconds)
        if old is None:
            sought = _native.like(*template, **fields)
            raise _native.timed_out(self._space, "swap", seconds or 0.0, sought)
        return old

    async def wait_none(
        self,
        *template: Any,
        timeout: Seconds | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> None:
        """Wait until nothing matches, and no claim holds a match; see `tupelo.Space.wait_none`.

        A cancelled task has changed nothing.
        """
        arguments.require_keywords("wait_none", template, fields)
        seconds = _native.seconds("timeout", timeout)
        fields = arguments.conditioned(fields, where)

        def attempt() -> bool | None:
            return None if _native.present(self._space, template, fields) else True

        if await self._waiting.until(attempt, "removal", (template, fields), seconds) is None:
            sought = _native.like(*template, **fields)
            raise _native.timed_out(self._space, "wait_none", seconds or 0.0, sought)

    async def scan(
        self, *template: Any, where: str | None = None, **fields: Any
    ) -> AsyncIterator[Any]:
        """Go through all matches, for `async for`; see `tupelo.Space.scan`.

        Other tasks get their turn every 256 tuples. A mistake in the arguments shows at the first
        step.
        """
        for number, found in enumerate(self._space.scan(*template, where=where, **fields), start=1):
            yield found
            if number % SCAN_BATCH == 0:
                await asyncio.sleep(0)

    async def consume(
        self, *template: Any, idle: Seconds | None = None, where: str | None = None, **fields: Any
    ) -> AsyncIterator[Any]:
        """Take one match after the other, for `async for`; see `tupelo.Space.consume`.

        A mistake in the arguments shows at the first step. A step that is cancelled has taken
        nothing.
        """
        arguments.require_keywords("consume", template, fields)
        idle_s = _native.seconds("idle", idle)
        sought = _native.like(*template, where=where, **fields)
        mark = Mark(self._space, sought)
        while True:
            over = mark.over()
            taken = self._space.try_take(*template, where=where, **fields)
            if taken is None:
                taken = await self._waiting.next_of(sought, mark, idle_s)
                if taken is None:
                    return
            else:
                mark.begin_anew(over)
            yield taken

    def subscribe(
        self,
        *template: Any,
        on: EventKind | Iterable[EventKind] = "put",
        buffer: int = 1024,
        buffer_bytes: int | None = None,
        resume: str | None = None,
        keep: int | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> Subscription:
        """Be told of what happens to matches; see `tupelo.Space.subscribe`.

        Not awaited: from its return on everything is heard, for `async for` or `await
        events.next()`.
        """
        bounds: dict[str, Any] = {"buffer": buffer, "buffer_bytes": buffer_bytes, "keep": keep}
        subscription = self._space.subscribe(
            *template, on=on, resume=resume, where=where, **bounds, **fields
        )
        return Subscription(subscription, self._waiting.notifier)


def wrapped(connection: _native.Space) -> Space:
    """Return a connection for tasks."""
    if connection.on_removed == "reconnect":
        from tupelo.aio.renewing import RenewingSpace  # noqa: PLC0415 - it is a Space

        return RenewingSpace(connection)
    if connection.sync is not None:
        from tupelo.aio.filed import FiledSpace  # noqa: PLC0415 - it is a Space

        return FiledSpace(connection)
    return Space(connection)


async def _at_once(claimed: _native.Claim[Any]) -> _native.Claim[Any]:
    return claimed
