"""What goes on after the call that made it: claims, subscriptions, transactions.

Operations under a claim or in a transaction are recorded when they have happened. A tuple that went
back was only read. A put is not recorded if the claim or transaction never completed.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from tupelo.errors import ClaimLost, SpaceFull
from tupelo.recording.verbs import IN_TRANSACTIONS, Call, blocking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Self

    from tupelo import _native

__all__ = [
    "ClaimHistory",
    "RecordingClaim",
    "RecordingSubscription",
    "RecordingTransaction",
    "Undecided",
]


class ClaimHistory:
    """The record of a claim at its end, however it ends."""

    def __init__(self, call: Call) -> None:
        """Begin, with the call that claims."""
        self._call = call
        self._fields: Any = None
        self._puts: list[tuple[Any, ...]] = []
        self._pid = os.getpid()

    def claimed(self, fields: Any) -> None:
        """Note the claimed tuple: from now on there is an end to be recorded."""
        self._fields = fields

    def put(self, fields: tuple[Any, ...]) -> None:
        """Note a tuple that is put if the claim is done."""
        self._puts.append(fields)

    def discard_puts(self) -> None:
        """Forget them."""
        self._puts.clear()

    @contextmanager
    def until_lost(self) -> Iterator[None]:
        """Write down that there is nothing left to end if the claim was lost."""
        try:
            yield
        except ClaimLost:
            self.end(is_done=False)
            raise

    def end(self, *, is_done: bool) -> None:
        """Write down how it ended, once."""
        fields, self._fields = self._fields, None
        if fields is None:
            return
        self._call.found("take" if is_done else "read", fields)
        for put in self._puts if is_done else ():
            self._call.put(put)

    def __del__(self) -> None:
        """A forgotten claim is aborted. The copy of a fork is not this process's."""
        if self._pid == os.getpid():
            self.end(is_done=False)


class _StandsIn:
    """An object that records, in the place of another, whose everything else is."""

    _plain: Any

    # For `isinstance`: a program that asks takes the same path as in a run that is not recorded.
    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        return type(self._plain)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def __repr__(self) -> str:
        return repr(self._plain)


class RecordingClaim(_StandsIn):
    """A claim that is recorded as a take, with its puts, when it is done."""

    _plain: _native.Claim[Any]

    def __init__(self, history: ClaimHistory, claim: _native.Claim[Any]) -> None:
        """Wrap the claim."""
        self._plain = claim
        self._history = history

    def __enter__(self) -> Any:
        """As `Claim.__enter__`."""
        return self._plain.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """As `Claim.__exit__`."""
        try:
            self._plain.__exit__(kind, exception, traceback)
        except BaseException:
            self._history.end(is_done=False)
            raise
        self._history.end(is_done=exception is None)

    def put(self, *fields: Any, **terms: Any) -> None:
        """As `Claim.put`."""
        with self._history.until_lost():
            self._plain.put(*fields, **terms)
        self._history.put(fields)

    def done(self, **options: Any) -> None:
        """As `Claim.done`."""
        with self._history.until_lost():
            self._plain.done(**options)
        self._history.end(is_done=True)

    def abort(self, reason: str | None = None) -> None:
        """As `Claim.abort`."""
        with self._history.until_lost():
            self._plain.abort() if reason is None else self._plain.abort(reason)
        self._history.end(is_done=False)

    def _discard_puts(self) -> int:
        self._history.discard_puts()
        return self._plain._discard_puts()


class RecordingSubscription(_StandsIn):
    """A subscription that records its events, as reads."""

    _plain: _native.Subscription[Any]

    def __init__(self, call: Call, subscription: _native.Subscription[Any]) -> None:
        """Wrap the subscription of the call."""
        self._call = call
        self._plain = subscription

    def __enter__(self) -> Self:
        """As `Subscription.__enter__`."""
        self._plain.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        """As `Subscription.__exit__`."""
        self._plain.__exit__(*exception)

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> Any:
        """As `Subscription.__next__`."""
        return self._told(next(self._plain))

    def next(self, timeout: Any = None) -> Any:
        """As `Subscription.next`."""
        return self._told(self._plain.next(timeout))

    def try_next(self) -> Any:
        """As `Subscription.try_next`."""
        return self._told(self._plain.try_next())

    def _told(self, event: Any) -> Any:
        if event is not None:
            self._call.found("read", event.tuple)
        return event


class Undecided:
    """The lines of a transaction that has not ended."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lines: list[tuple[Any, str, str, dict[str, Any]]] = []
        self._pid = os.getpid()

    def note_for(self, space: Any) -> Any:
        """Return what writes down an operation of the transaction in `space`."""

        def note(verb: str, text: str, **arguments: Any) -> None:
            if verb == "waits":  # which may be the last that is heard of it
                space._note(verb, text, **arguments)
            else:
                self._lines.append((space, verb, text, arguments))

        return note

    def end(self, *, is_committed: bool) -> None:
        """Record the operations; after an abort, takes count as reads."""
        lines, self._lines = self._lines, []
        for space, verb, text, arguments in lines:
            if is_committed or verb != "put":
                happened = verb if is_committed or verb != "take" else "read"
                space._note(happened, text, **arguments)

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Record the effects of a commit; a commit without room leaves all undecided."""
        try:
            yield
        except SpaceFull:
            raise
        except BaseException:
            self.end(is_committed=False)
            raise
        self.end(is_committed=True)

    @contextmanager
    def leaving(self, exception: BaseException | None) -> Iterator[None]:
        """Record how the block of a transaction ended; after it no call can try again."""
        try:
            yield
        except BaseException:
            self.end(is_committed=False)
            raise
        self.end(is_committed=exception is None)

    def __del__(self) -> None:
        """A transaction that is forgotten is aborted. A fork's copy is not this process's."""
        if self._pid == os.getpid():
            self.end(is_committed=False)


class RecordingInside(_StandsIn):
    """A space as a transaction sees it, whose verbs are recorded."""

    _plain: _native.TransactionSpace

    def __init__(self, space: Any, inside: _native.TransactionSpace, undecided: Undecided) -> None:
        """Wrap a transaction's view of `space`."""
        self._plain = inside
        self._undecided = undecided
        self._note = undecided.note_for(space)


for _verb in IN_TRANSACTIONS:
    setattr(RecordingInside, _verb.name, blocking(_verb))


class RecordingTransaction(RecordingInside):
    """A transaction that is written down when it has committed."""

    _plain: _native.Transaction

    def __init__(self, space: Any, transaction: _native.Transaction) -> None:
        """Wrap a transaction that was begun over `space`."""
        super().__init__(space, transaction, Undecided())

    def on(self, space: Any) -> RecordingInside:
        """As `Transaction.on`."""
        return RecordingInside(space, self._plain.on(space), self._undecided)

    def commit(self) -> None:
        """As `Transaction.commit`."""
        with self._undecided.committing():
            self._plain.commit()

    def abort(self) -> None:
        """As `Transaction.abort`."""
        self._plain.abort()
        self._undecided.end(is_committed=False)

    def __enter__(self) -> Self:
        """As `Transaction.__enter__`."""
        self._plain.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """As `Transaction.__exit__`."""
        with self._undecided.leaving(exception):
            self._plain.__exit__(kind, exception, traceback)
