"""What goes on after the call that made it: claims, subscriptions, transactions.

What happens under a claim or in a transaction is written down when it has happened: a tuple that
went back was only read, and what was put for the end that never came was not put.
"""

from __future__ import annotations

from tupelo.recording.verbs import IN_TRANSACTIONS, Call, blocking

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    """What is written down of a claim when it ends."""

    def __init__(self, call: Call) -> None:
        """Begin, with the call that claimed."""
        self._call = call
        self._puts: list[tuple[Any, ...]] = []
        self._is_told = False

    def put(self, fields: tuple[Any, ...]) -> None:
        """Note a tuple that is put if the claim is done."""
        self._puts.append(fields)

    def discard_puts(self) -> None:
        """Forget them."""
        self._puts.clear()

    def end(self, fields: Any, *, is_done: bool) -> None:
        """Write down how it ended, once."""
        if self._is_told:
            return
        self._is_told = True
        self._call.found("take" if is_done else "read", fields)
        for put in self._puts if is_done else ():
            self._call.put(put)


class RecordingClaim:
    """A claim that is written down as a take, and what it puts, when it is done."""

    def __init__(self, call: Call, claim: _native.Claim[Any]) -> None:
        """Wrap what the call has claimed."""
        self._claim = claim
        self._history = ClaimHistory(call)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the claim's."""
        return getattr(self._claim, name)

    def __repr__(self) -> str:
        """As the claim shows itself."""
        return repr(self._claim)

    def __enter__(self) -> Any:
        """As `Claim.__enter__`."""
        return self._claim.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """As `Claim.__exit__`."""
        self._claim.__exit__(kind, exception, traceback)
        self._history.end(self._claim.tuple, is_done=exception is None)

    def put(self, *fields: Any) -> None:
        """As `Claim.put`."""
        self._claim.put(*fields)
        self._history.put(fields)

    def done(self, **options: Any) -> None:
        """As `Claim.done`."""
        self._claim.done(**options)
        self._history.end(self._claim.tuple, is_done=True)

    def abort(self, reason: str | None = None) -> None:
        """As `Claim.abort`."""
        self._claim.abort(reason)
        self._history.end(self._claim.tuple, is_done=False)

    def _discard_puts(self) -> int:
        self._history.discard_puts()
        return self._claim._discard_puts()


class RecordingSubscription:
    """A subscription that writes down what it tells, as read."""

    def __init__(self, call: Call, subscription: _native.Subscription[Any]) -> None:
        """Wrap what the call has subscribed to."""
        self._call = call
        self._subscription = subscription

    def __getattr__(self, name: str) -> Any:
        """Everything else is the subscription's."""
        return getattr(self._subscription, name)

    def __repr__(self) -> str:
        """As the subscription shows itself."""
        return repr(self._subscription)

    def __enter__(self) -> Self:
        """As `Subscription.__enter__`."""
        self._subscription.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        """As `Subscription.__exit__`."""
        self._subscription.__exit__(*exception)

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> Any:
        """As `Subscription.__next__`."""
        return self._told(next(self._subscription))

    def next(self, timeout: Any = None) -> Any:
        """As `Subscription.next`."""
        return self._told(self._subscription.next(timeout))

    def try_next(self) -> Any:
        """As `Subscription.try_next`."""
        return self._told(self._subscription.try_next())

    def _told(self, event: Any) -> Any:
        if event is not None:
            self._call.found("read", event.tuple)
        return event


class Undecided:
    """The lines of a transaction that has not ended."""

    def __init__(self) -> None:
        """Begin without any."""
        self._lines: list[tuple[Any, str, dict[str, Any]]] = []

    def note_for(self, space: Any) -> Any:
        """Return what writes down an operation of the transaction in `space`."""

        def note(verb: str, **told: Any) -> None:
            if verb == "waits":  # which may be the last that is heard of it
                space._note(verb, **told)
            else:
                self._lines.append((space, verb, told))

        return note

    def end(self, *, is_committed: bool) -> None:
        """Write down what has happened: after an abort, that tuples were there."""
        lines, self._lines = self._lines, []
        for space, verb, told in lines:
            if is_committed or verb != "put":
                space._note(verb if is_committed or verb != "take" else "read", **told)


class RecordingInside:
    """A space as a transaction sees it, whose verbs are recorded."""

    def __init__(self, space: Any, inside: _native.TransactionSpace, undecided: Undecided) -> None:
        """Wrap what a transaction sees of `space`."""
        self._plain = inside
        self._undecided = undecided
        self._note = undecided.note_for(space)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the transaction's."""
        return getattr(self._plain, name)

    def __repr__(self) -> str:
        """As the transaction shows itself."""
        return repr(self._plain)


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
        self._plain.commit()
        self._undecided.end(is_committed=True)

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
        try:
            self._plain.__exit__(kind, exception, traceback)
        except BaseException:
            self._undecided.end(is_committed=False)
            raise
        self._undecided.end(is_committed=exception is None)
