"""A space that goes on in the next one of its name: `connect(..., on_removed="reconnect")`.

The work is done by a connection to the space of the moment. If a verb meets `SpaceRemoved` it has
had no effect that anybody could still see. Then the space of the name is opened anew, and the verb
begins anew in the time that is left. Claims, transactions and subscriptions end with their space.
"""

from __future__ import annotations

import functools
from time import monotonic

from tupelo import _native, stepping, updating
from tupelo.aio.arguments import there
from tupelo.aio.claim import Claim
from tupelo.aio.space import Space, wrapped
from tupelo.errors import SpaceRemoved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from concurrent.futures import Future
    from typing import Any

    from tupelo._native import Seconds, Sync, Template
    from tupelo.aio.subscription import Subscription
    from tupelo.aio.transaction import Transaction
    from tupelo.aio.waiting import Waiting
    from tupelo.updating import Told

__all__ = ["RenewingSpace"]

REPEATED = (
    "copy_to", "count", "dead", "discard", "explain", "finish", "flush", "move_to", "put",
    "put_if_absent", "read", "read_all", "requeue", "stat", "swap", "take", "take_all", "take_many",
    "try_claim", "try_read", "try_swap", "try_take", "unsubscribe", "wait_none",
)  # fmt: skip
"""The verbs that have had no effect in a space that anybody can see, if they meet its removal."""


class RenewingSpace(Space):
    """A connection to the space of a name, whichever that is."""

    def __init__(self, space: _native.Space) -> None:
        """Wrap a synchronous connection."""
        self._space = space
        self._current: Space | None = None

    def _pinned(self) -> Space:
        """Return the connection to the space of this moment, which ends with that space."""
        connection = _native.pinned(self._space)
        current = self._current
        if current is None or current.blocking is not connection:
            # Tasks that wait with the one before keep that until they were told.
            current = self._current = wrapped(connection)
        return current

    @property
    def _waiting(self) -> Waiting:  # type: ignore[override]  # an attribute of other spaces
        return self._pinned()._waiting

    def close(self) -> None:
        """End the connection; see `Space.close`."""
        current = self._pinned()
        self._space.close()
        current._waiting.close()

    async def again(
        self,
        verb: Callable[[Space, dict[str, Any]], Awaitable[Any]],
        keywords: dict[str, Any],
        told: Told | None = None,
    ) -> Any:
        """Run a verb in the space of the moment, until that is not removed meanwhile.

        What the function of an `update` raises, `told`, is not repeated.
        """
        timeout, begin = keywords.get("timeout"), monotonic()
        while True:
            current = self._pinned()
            try:
                return await verb(current, keywords)
            except SpaceRemoved:
                is_told = told is not None and told.has_raised
                if is_told or not _native.renewed(self._space, current.blocking):
                    raise
            if (seconds := _native.seconds("timeout", timeout)) is not None:
                keywords["timeout"] = max(0.0, seconds - (monotonic() - begin))

    async def put_all(self, tuples: Any, /, **options: Any) -> int:
        """As `Space.put_all`. All steps are in one space: what was put before ends with that."""
        if options.get("atomic", True) is False:
            del options["atomic"]
            return await self._put_in_steps(tuples, options.pop("progress", None), options)
        every = list(tuples) if hasattr(tuples, "__next__") else tuples
        put: int = await self.again(lambda space, terms: space.put_all(every, **terms), options)
        return put

    async def _put_in_steps(self, tuples: Any, progress: Any, options: dict[str, Any]) -> int:
        used: Space | None = None

        async def put(some: list[Any]) -> int:
            if used is not None:
                return await used.put_all(some, **options)

            async def first(space: Space, terms: dict[str, Any]) -> int:
                nonlocal used
                count = await space.put_all(some, **terms)
                used = space
                return count

            count: int = await self.again(first, dict(options))
            return count

        return await stepping.put_steps(tuples, put, progress)

    async def update(self, *template: Any, to: Callable[[Any], Any], **options: Any) -> Any:
        """As `Space.update`; what the function raises is not repeated."""
        updating.require_function(to)
        told = updating.Told(to)

        async def update(space: Space, terms: dict[str, Any]) -> Any:
            return await space.update(*template, to=told, **terms)

        return await self.again(update, options, told)

    async def _put_task(self, fields: tuple[Any, ...], on: Any) -> Future[Any]:
        # The work ends with the space that it was begun in.
        future: Future[Any] = await self.again(lambda space, _: space._put_task(fields, on), {})
        return future

    def claim(self, *template: Any, sync: Sync | None = None, **terms: Any) -> Claim[Any]:
        """As `Space.claim`."""

        async def claim_in(space: Space, terms: dict[str, Any]) -> _native.Claim[Any]:
            held = await space._claim(*template, sync=sync, **{**DEFAULTS, **terms})
            claimed._waiting = space._waiting  # it ends in the same space
            return held

        claimed: Claim[Any] = Claim(self.again(claim_in, terms), self._waiting, sync)
        return claimed

    async def _claim_partly(
        self, match: Template[Any], *, ttl: Seconds, timeout: float | None
    ) -> _native.Claim[Any]:
        return await self._pinned()._claim_partly(match, ttl=ttl, timeout=timeout)

    def transaction(
        self, *others: Space, ttl: Seconds = 30, sync: Sync | None = None
    ) -> Transaction:
        """As `Space.transaction`: it ends with the spaces of this moment."""
        return there(self).transaction(*others, ttl=ttl, sync=sync)

    def subscribe(self, *template: Any, **options: Any) -> Subscription:
        """As `Space.subscribe`: the subscription ends with the space of this moment."""
        while True:
            current = self._pinned()
            try:
                return current.subscribe(*template, **options)
            except SpaceRemoved:
                if not _native.renewed(self._space, current.blocking):
                    raise

    async def consume(self, *template: Any, **options: Any) -> AsyncIterator[Any]:
        """As `Space.consume`; `idle` counts anew in the next space."""
        while True:
            current = self._pinned()
            try:
                async for taken in current.consume(*template, **options):
                    yield taken
            except SpaceRemoved:
                if not _native.renewed(self._space, current.blocking):
                    raise
            else:
                return


DEFAULTS = {"ttl": 30, "max_attempts": None, "timeout": None, "order": "fifo"}
"""The terms of a claim that a call does not give."""


def _repeated(name: str) -> Any:
    @functools.wraps(getattr(Space, name))
    async def method(self: RenewingSpace, *arguments: Any, **keywords: Any) -> Any:
        return await self.again(
            lambda space, terms: getattr(space, name)(*arguments, **terms), keywords
        )

    return method


for _name in REPEATED:
    setattr(RenewingSpace, _name, _repeated(_name))
RenewingSpace.__module__, RenewingSpace.__name__ = Space.__module__, Space.__name__
