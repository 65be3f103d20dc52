"""The record of each verb: the one table for spaces, transactions, tasks and searches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tupelo.recording import NOWHERE
from tupelo.recording.calls import Call, note_of
from tupelo.recording.ends import HISTORIES, NOTES, Undecided

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

__all__ = ["IN_SPACES", "IN_TASKS", "IN_TRANSACTIONS", "ON", "PUT", "SEARCHING", "Verb"]


@dataclass(frozen=True)
class Verb:
    """How a verb is recorded."""

    name: str
    note: Callable[[Call, Any], Any] = lambda _, __: None
    """Records the effect of the call, by its result. It may return another object in its place."""
    waits: bool = False
    """Whether it may wait; so a line says it before.

    Rejected: to look first whether it has to. That look is another verb, which refuses in its own
    name what is wrong, and makes an object whose class may refuse it as well.
    """


def _put(call: Call, _: Any) -> None:
    call.put(call.arguments)


def _put_several(call: Call, _: Any) -> None:
    for fields in call.arguments[0]:
        call.put(fields)


def _put_unless(call: Call, put: object) -> None:
    """A refused `put_if_absent` has read: it says that a match exists, but not which."""
    if put:
        call.put(call.arguments)
        return
    unless = call.options.get("unless")
    sought = call.arguments if unless is None else unless
    sought = sought if type(sought) is tuple else (sought,)
    Call(call.note, None, sought, {}).found("read", call.target.try_read(*sought))


def _put_unless_inside(call: Call, put: object) -> None:
    """Nobody looks for the match of a refused one: a transaction would lock what it reads."""
    if put:
        call.put(call.arguments)


def _one(call: Call, found: Any, *, verb: str) -> None:
    call.found(verb, found)


def _each(call: Call, found: list[Any], *, verb: str) -> None:
    for fields in found or [None]:
        call.found(verb, fields)


def _letters(call: Call, letters: list[Any]) -> None:
    for letter in letters:
        call.found("read", letter.tuple)


def _swapped(call: Call, found: Any) -> None:
    call.found("take", found)
    if found is not None:
        call.put(call.options["to"])


def _counted(call: Call, _: int) -> None:
    call.note("count", call.asked())


def _discarded(call: Call, count: int) -> None:
    call.note("move", call.asked(to=NOWHERE, count=count))


def _transferred(call: Call, count: int, *, verb: str) -> None:
    other, *template = call.arguments
    asked = Call(call.note, None, tuple(template), call.options)
    call.note(verb, asked.asked(to=other.url, count=count))


def _claimed(call: Call, claim: Any) -> None:
    if claim is None:
        call.found("take", None)
        return
    history = HISTORIES[claim] = Undecided()
    call.note = NOTES[claim] = history.note_for(call.note)
    call.found("take", claim.tuple)


def _begun(call: Call, transaction: Any) -> None:
    history = HISTORIES[transaction] = Undecided()
    NOTES[transaction] = history.note_for(call.note)


def _inside(call: Call, inside: Any) -> None:
    NOTES[inside] = HISTORIES[call.target].note_for(note_of(call.arguments[0]))


def _subscribed(call: Call, subscription: Any) -> None:
    HISTORIES[subscription] = call


class _Followed:
    """An iterator that records its results; for as many threads as the other is.

    An iterator without results is recorded, too, once; a waiting one is recorded at its beginning.
    """

    def __init__(self, call: Call, found: Any, *, verb: str) -> None:
        self._call = call
        self._verb = verb
        self._found = found
        self._is_to_tell = verb == "read"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._found, name)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        fields = next(self._found, None)
        if fields is not None or self._is_to_tell:
            self._call.found(self._verb, fields)
        self._is_to_tell = False
        if fields is None:
            raise StopIteration
        return fields


_TAKEN, _READ = partial(_one, verb="take"), partial(_one, verb="read")

WAITING = (
    Verb("take", _TAKEN, waits=True),
    Verb("read", _READ, waits=True),
    Verb("take_many", partial(_each, verb="take"), waits=True),
    Verb("swap", _swapped, waits=True),
)
PUT = Verb("put", _put)

IN_TRANSACTIONS = (
    *WAITING,
    PUT,
    Verb("put_all", _put_several),
    Verb("put_if_absent", _put_unless_inside),
    Verb("try_take", _TAKEN),
    Verb("try_read", _READ),
    Verb("take_all", partial(_each, verb="take")),
    Verb("discard", _discarded),
    Verb("read_all", partial(_each, verb="read")),
    Verb("try_swap", _swapped),
    Verb("count", _counted),
)
"""The verbs of a space as a transaction sees it."""

IN_SPACES = (
    *(verb for verb in IN_TRANSACTIONS if verb.name != "put_if_absent"),
    Verb("put_if_absent", _put_unless),
    Verb("move_to", partial(_transferred, verb="move")),
    Verb("copy_to", partial(_transferred, verb="copy")),
    Verb("dead", _letters),
    Verb("claim", _claimed, waits=True),
    Verb("try_claim", _claimed),
    Verb("subscribe", _subscribed, waits=True),
    Verb("transaction", _begun),
    Verb("take_future", waits=True),
    Verb("read_future", waits=True),
    Verb("consume", partial(_Followed, verb="take"), waits=True),
    Verb("scan", partial(_Followed, verb="read")),
)
"""The verbs of a space. What they return may record what goes on: a claim, a future."""

IN_TASKS = (*WAITING, Verb("_claim", _claimed, waits=True), Verb("finish"))
"""The verbs of `tupelo.aio` that are made of several; all others are calls of the blocking ones."""

SEARCHING = (*WAITING[:2], Verb("try_take", _TAKEN), Verb("try_read", _READ))
"""The verbs of a search."""

ON = Verb("on", _inside)
