"""A space, and a search, whose verbs are recorded."""

from __future__ import annotations

from functools import cache, cached_property

from tupelo import _native
from tupelo.recording.in_progress import (
    ClaimHistory,
    RecordingClaim,
    RecordingSubscription,
    RecordingTransaction,
)
from tupelo.recording.lines import write
from tupelo.recording.pending import FUTURES, future
from tupelo.recording.searches import SearchCall
from tupelo.recording.verbs import IN_SPACES, SEARCHING, Call, blocking, named, stand_in
from tupelo.searching import Search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

__all__ = ["RecordingSearch", "RecordingSpace", "recording"]


class RecordingSpace(_native.Space):
    """A space that records its calls."""

    _stands_for: type[_native.Space] = _native.Space

    @cached_property
    def _plain(self) -> _native.Space:
        """The same connection, without recording."""
        plain = _native.plain(self)
        if self.url.startswith("mem://"):
            _native.stays_behind(plain)
        return plain

    def _note(self, verb: str, text: str, **arguments: Any) -> None:
        write(self.url, verb, text, **arguments)

    def __reduce__(self) -> Any:
        """As a `Space`: `reconnect` makes one of these of it while a program is recorded."""
        reduced: Any = super().__reduce__()
        reconnect, (_, *rest) = reduced
        return reconnect, (self._stands_for, *rest)

    def consume(self, *template: Any, **options: Any) -> Iterator[Any]:
        """As `Space.consume`."""
        call = Call(self._note, template, options)
        call.waits()
        found = self._plain.consume(*template, **options)
        return _Followed(call, "take", found, has_waited=True)

    def finish(self, *template: Any, **options: Any) -> None:
        """As `Space.finish`, whose mark is not recorded as a tuple."""
        self._plain.finish(*template, **options)

    def scan(self, *template: Any, **options: Any) -> Iterator[Any]:
        """As `Space.scan`."""
        call = Call(self._note, template, options)
        return _Followed(call, "read", self._plain.scan(*template, **options))

    def claim(self, *template: Any, **options: Any) -> Any:
        """As `Space.claim`."""
        call = Call(self._note, template, options)
        call.waits()
        return _claimed(call, self._plain.claim(*template, **options))

    def try_claim(self, *template: Any, **options: Any) -> Any:
        """As `Space.try_claim`."""
        claim = self._plain.try_claim(*template, **options)
        call = Call(self._note, template, options)
        if claim is None:
            call.found("take", None)
            return None
        return _claimed(call, claim)

    def subscribe(self, *template: Any, **options: Any) -> Any:
        """As `Space.subscribe`."""
        subscription = self._plain.subscribe(*template, **options)
        call = Call(self._note, template, options)
        call.waits()
        return RecordingSubscription(call, subscription)

    def transaction(self, *others: Any, **options: Any) -> Any:
        """As `Space.transaction`."""
        return RecordingTransaction(self, self._plain.transaction(*others, **options))


for _verb in IN_SPACES:
    setattr(RecordingSpace, _verb.name, blocking(_verb))
for _name, _told in FUTURES.items():
    setattr(RecordingSpace, _name, future(_name, _told))
stand_in(RecordingSpace, _native.Space)


def _claimed(call: Call, claim: _native.Claim[Any]) -> RecordingClaim:
    history = ClaimHistory(call)
    history.claimed(claim.tuple)
    return RecordingClaim(history, claim)


@cache
def recording(plain: type[_native.Space]) -> type[RecordingSpace]:
    """Return the class that records what `plain` does, which may have other names for the verbs."""
    if issubclass(plain, RecordingSpace):
        return plain
    if plain is _native.Space:
        return RecordingSpace
    verbs = {verb: name for name, verb in vars(_native.Space).items() if hasattr(verb, "__name__")}
    names = {
        name: getattr(RecordingSpace, verbs[verb])
        for name, verb in vars(plain).items()
        if hasattr(verb, "__name__") and verb in verbs
    }
    made = type(plain.__name__, (plain, RecordingSpace), {**names, "_stands_for": plain})
    made.__module__ = plain.__module__
    return made


class _Followed:
    """An iterator that records its results; for as many threads as the other is.

    An iterator without results is recorded, too, once; a waiting one is recorded at its beginning.
    """

    def __init__(
        self, call: Call, verb: str, found: Iterator[Any], *, has_waited: bool = False
    ) -> None:
        self._call = call
        self._verb = verb
        self._found = found
        self._is_to_tell = not has_waited

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            fields = next(self._found)
        except StopIteration:
            if self._is_to_tell:
                self._call.found(self._verb, None)
            self._is_to_tell = False
            raise
        self._is_to_tell = False
        self._call.found(self._verb, fields)
        return fields


class RecordingSearch(Search):
    """A search that records its finds, with their spaces."""


def _blocking(name: str) -> Callable[..., Any]:
    plain = getattr(Search, name)

    def method(self: RecordingSearch, *template: Any, **options: Any) -> Any:
        call = SearchCall(self.spaces, template, options)
        call.begins(name)
        found = plain(self, *template, **options)
        call.ended(name, found)
        return found

    return named(method, name)


for _name in SEARCHING:
    setattr(RecordingSearch, _name, _blocking(_name))
