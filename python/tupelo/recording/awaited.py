"""A space of `tupelo.aio`, and a search, whose verbs are recorded."""

from __future__ import annotations

from tupelo.aio.claim import Claim
from tupelo.aio.searching import Search
from tupelo.aio.space import Space
from tupelo.aio.subscription import Subscription
from tupelo.aio.transaction import Transaction, TransactionSpace
from tupelo.recording.in_progress import ClaimHistory, RecordingClaim, Undecided
from tupelo.recording.searches import SearchCall
from tupelo.recording.verbs import (
    IN_SPACES,
    IN_TRANSACTIONS,
    SEARCHING,
    Call,
    awaited,
    named,
    stand_in,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any

    from tupelo import _native
    from tupelo.recording.space import RecordingSpace

__all__ = ["RecordingAioSearch", "RecordingAioSpace"]


class RecordingAioSpace(Space):
    """A space of `tupelo.aio` that records its calls."""

    def __init__(self, space: Any) -> None:
        """Wrap a connection that records; a connection that is not recorded does the verbs."""
        super().__init__(space._plain)
        self._recording: RecordingSpace = space
        self._note = space._note

    @property
    def blocking(self) -> RecordingSpace:
        """As `aio.Space.blocking`."""
        return self._recording

    async def consume(self, *template: Any, **options: Any) -> AsyncIterator[Any]:
        """As `aio.Space.consume`."""
        call = Call(self._note, template, options)
        call.waits()
        async for fields in super().consume(*template, **options):
            call.found("take", fields)
            yield fields

    async def scan(self, *template: Any, **options: Any) -> AsyncIterator[Any]:
        """As `aio.Space.scan`."""
        call = Call(self._note, template, options)
        is_empty = True
        async for fields in super().scan(*template, **options):
            is_empty = False
            call.found("read", fields)
            yield fields
        if is_empty:
            call.found("read", None)

    def claim(self, *template: Any, **options: Any) -> Claim[Any]:
        """As `aio.Space.claim`."""
        call = Call(self._note, template, options)
        call.waits()
        return _RecordingClaim(call, super().claim(*template, **options))

    async def try_claim(self, *template: Any, **options: Any) -> Claim[Any] | None:
        """As `aio.Space.try_claim`."""
        claim = await super().try_claim(*template, **options)
        call = Call(self._note, template, options)
        if claim is None:
            call.found("take", None)
            return None
        return _RecordingClaim(call, claim)

    def subscribe(self, *template: Any, **options: Any) -> Subscription:
        """As `aio.Space.subscribe`."""
        subscription = super().subscribe(*template, **options)
        call = Call(self._note, template, options)
        call.waits()
        return _RecordingSubscription(call, subscription)

    def transaction(self, *others: Any, **options: Any) -> Transaction:
        """As `aio.Space.transaction`."""
        return _RecordingTransaction(self, others, options.pop("ttl", 30), **options)


for _verb in IN_SPACES:
    setattr(RecordingAioSpace, _verb.name, awaited(_verb, getattr(Space, _verb.name)))
stand_in(RecordingAioSpace, Space)


class _RecordingClaim(Claim["Any"]):
    """A claim that is written down when it ends, through either of its faces."""

    def __init__(self, call: Call, claim: Claim[Any]) -> None:
        self._history = ClaimHistory(call)
        super().__init__(claim._begin, claim._with_room)
        self._begun = claim._begun

    @property
    def _begun(self) -> _native.Claim[Any] | None:
        return self._claimed

    @_begun.setter
    def _begun(self, claimed: _native.Claim[Any] | None) -> None:
        self._claimed = claimed
        if claimed is not None:
            self._history.claimed(claimed.tuple)

    @property
    def blocking(self) -> Any:
        return RecordingClaim(self._history, self._held)

    async def put(self, *fields: Any, **terms: Any) -> None:
        with self._history.until_lost():
            await super().put(*fields, **terms)
        self._history.put(fields)

    async def done(self, **options: Any) -> None:
        with self._history.until_lost():
            await super().done(**options)
        self._history.end(is_done=True)

    async def abort(self, reason: str | None = None) -> None:
        with self._history.until_lost():
            await super().abort(reason)
        self._history.end(is_done=False)

    async def __aexit__(self, *exception: Any) -> None:
        try:
            await super().__aexit__(*exception)
        except BaseException:
            self._history.end(is_done=False)
            raise
        self._history.end(is_done=exception[1] is None)


class _RecordingSubscription(Subscription):
    """A subscription that records its events, as reads."""

    def __init__(self, call: Call, subscription: Subscription) -> None:
        super().__init__(subscription._subscription, subscription._notifier)
        self._call = call

    def try_next(self) -> Any:
        return self._told(super().try_next())

    async def _next(self, seconds: float | None) -> Any:
        return self._told(await super()._next(seconds))

    def _told(self, event: Any) -> Any:
        if event is not None:
            self._call.found("read", event.tuple)
        return event


class _RecordingInside(TransactionSpace):
    """A space as a transaction sees it, whose verbs are recorded."""

    _note: Any


for _verb in IN_TRANSACTIONS:
    setattr(_RecordingInside, _verb.name, awaited(_verb, getattr(TransactionSpace, _verb.name)))


class _RecordingTransaction(_RecordingInside, Transaction):
    """A transaction that is written down when it has committed."""

    def __init__(self, space: Space, others: tuple[Space, ...], ttl: Any) -> None:
        Transaction.__init__(self, space, others, ttl)
        self._undecided = Undecided()
        self._note = self._undecided.note_for(space)

    def on(self, space: Space) -> TransactionSpace:
        """As `aio.Transaction.on`."""
        inside = super().on(space)
        recorded = _RecordingInside(inside._space, inside._inside, inside._owner)
        recorded._note = self._undecided.note_for(space)
        return recorded

    async def commit(self) -> None:
        """As `aio.Transaction.commit`."""
        with self._undecided.committing():
            await super().commit()

    async def abort(self) -> None:
        """As `aio.Transaction.abort`."""
        await super().abort()
        self._undecided.end(is_committed=False)

    async def __aexit__(self, *exception: Any) -> None:
        """As `aio.Transaction.__aexit__`."""
        with self._undecided.leaving(exception[1]):
            await super().__aexit__(*exception)


class RecordingAioSearch(Search):
    """A search of `tupelo.aio` that records its finds, with their spaces."""


def _awaited(name: str) -> Callable[..., Any]:
    plain = getattr(Search, name)

    async def method(self: RecordingAioSearch, *template: Any, **options: Any) -> Any:
        call = SearchCall(self.spaces, template, options)
        call.begins(name)
        found = await plain(self, *template, **options)
        call.ended(name, found)
        return found

    return named(method, name)


for _name in SEARCHING:
    setattr(RecordingAioSearch, _name, _awaited(_name))
