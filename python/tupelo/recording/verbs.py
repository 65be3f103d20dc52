"""The record of each verb: the one table for spaces, transactions, and awaited verbs.

A verb is recorded where the program calls it. Its parts are done by a connection that is not
recorded, so that a `consume` is not also its many looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from tupelo.recording.lines import without_harm, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tupelo._native import Space
    from tupelo.recording.lines import Note

__all__ = [
    "IN_SPACES",
    "IN_TRANSACTIONS",
    "NOWHERE",
    "SEARCHING",
    "Call",
    "Verb",
    "awaited",
    "blocking",
    "named",
    "stand_in",
]

NOWHERE = "mem://tupelo.discarded"
"""Where a record says that tuples went that were removed unread."""

# fmt: off
OF_THE_VERB = frozenset({
    "after", "at_least", "buffer", "buffer_bytes", "idle", "lease", "limit", "max_attempts", "n",
    "on", "order", "timeout", "to", "ttl", "unless",
})
# fmt: on
"""Keywords that are the verb's own. The others belong to the template."""


@dataclass(slots=True)  # not frozen, which would cost as much as the rest of a put
class Call:
    """One call of a verb, and its recorder: recording never harms the program."""

    note: Note
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    plain: Space | None = None
    """The connection that did it, where it may have to be asked once more."""
    _template: tuple[str, str] | None = field(default=None, init=False)

    def template(self) -> tuple[str, str]:
        """The kinds and the words of the template: the same in all lines of the call."""
        if self._template is None:
            fields = {
                name: value
                for name, value in self.options.items()
                if name not in OF_THE_VERB and not (name == "where" and value is None)
            }
            self._template = words(self.arguments, fields)
        return self._template

    def asked(self) -> str:
        """What stands in a line for the template of the call."""
        kinds, template = self.template()
        return f'"kinds": {kinds}, "template": {template}'

    def waits(self, **arguments: Any) -> None:
        """Record that the call may wait: a call that never ends can be seen so."""
        with without_harm():
            try:
                asked = self.asked()
            except (TypeError, ValueError):
                return  # arguments that make no sense: the verb says so better
            self.note("waits", asked, **arguments)

    def found(self, verb: str, fields: Any, **arguments: Any) -> None:
        """Record the find; None for nothing."""
        with without_harm():
            if fields is None:
                self.note(verb, f'{self.asked()}, "tuple": null', **arguments)
                return
            _, template = self.template()
            kinds, found = _told(fields)
            self.note(
                verb, f'"kinds": {kinds}, "template": {template}, "tuple": {found}', **arguments
            )

    def put(self, fields: Any) -> None:
        """Write down a tuple that it has put."""
        with without_harm():
            kinds, put = _told(fields)
            lease = self.options.get("lease")
            terms = {} if lease is None else {"lease": lease}
            self.note("put", f'"kinds": {kinds}, "tuple": {put}', **terms)


def _told(fields: Any) -> tuple[str, str]:
    """A tuple's kinds and words; an entry stands alone."""
    return words(fields if type(fields) is tuple else (fields,))


def _as_it_is(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return arguments


@dataclass(frozen=True)
class Verb:
    """How a verb is recorded."""

    name: str
    note: Callable[[Call, Any], None]
    """Records the effect of the call, by its result."""
    waits: bool = False
    """Whether it may wait; so a line says it before.

    Rejected: to look first whether it has to. That look is another verb, which refuses in its own
    name what is wrong, and makes an object whose class may refuse it as well.
    """
    prepared: Callable[[tuple[Any, ...]], tuple[Any, ...]] = _as_it_is
    """Makes of the arguments such that can be looked at afterwards."""


def blocking(verb: Verb) -> Callable[..., Any]:
    """Return a method that records `verb`: of a class with `_note`, and `_plain` to do it."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        call = Call(self._note, verb.prepared(arguments), options, self._plain)
        if verb.waits:
            call.waits()
        result = getattr(self._plain, verb.name)(*call.arguments, **options)
        with without_harm():
            verb.note(call, result)
        return result

    return named(method, verb.name)


def awaited(verb: Verb, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine method that calls `plain` and records it."""

    async def method(self: Any, *arguments: Any, **options: Any) -> Any:
        call = Call(self._note, verb.prepared(arguments), options, self._space)
        if verb.waits:
            call.waits()
        result = await plain(self, *call.arguments, **options)
        with without_harm():
            verb.note(call, result)
        return result

    return named(method, verb.name)


def stand_in(recording: type, plain: type) -> None:
    """Let a class that records have the name of the other, in messages and for inspection."""
    recording.__module__, recording.__name__ = plain.__module__, plain.__name__
    for name, method in vars(recording).items():
        if hasattr(method, "__code__") and not name.startswith("_") and hasattr(plain, name):
            method.__wrapped__ = getattr(plain, name)  # whose signature is shown


def named(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Name a method after the verb that it records, for tracebacks and `help`."""
    method.__name__ = name
    method.__doc__ = f"As `{name}` where nobody records."
    return method


# --- what they tell ---


def _put(call: Call, _: Any) -> None:
    call.put(call.arguments)


def _put_several(call: Call, _: Any) -> None:
    for fields in call.arguments[0]:
        call.put(fields)


def _put_unless(call: Call, put: object) -> None:
    if put:
        _put(call, None)
    else:
        _was_there(call)


def _put_unless_inside(call: Call, put: object) -> None:
    """Nobody looks for the match of a refused one: a transaction would lock what it reads."""
    if put:
        _put(call, None)


def _was_there(call: Call) -> None:
    """A refused `put_if_absent` has read: it says that a match exists, but not which."""
    unless = call.options.get("unless")
    sought = call.arguments if unless is None else unless
    sought = sought if type(sought) is tuple else (sought,)
    there = None if call.plain is None else call.plain.try_read(*sought)
    Call(call.note, sought, {}).found("read", there)


def _listed(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tuples of a `put_all`, to be gone through twice. The verb refuses wrong ones."""
    if len(arguments) == 1 and hasattr(arguments[0], "__iter__"):
        return (list(arguments[0]),)
    return arguments


def _one(call: Call, found: Any, *, verb: str) -> None:
    call.found(verb, found)


def _each(call: Call, found: list[Any], *, verb: str) -> None:
    if not found:
        call.found(verb, None)
    for fields in found:
        call.found(verb, fields)


def _swapped(call: Call, found: Any) -> None:
    call.found("take", found)
    if found is not None:
        call.put(call.options["to"])


def _counted(call: Call, _: int) -> None:
    call.note("count", call.asked())


def _transferred(call: Call, count: int, *, verb: str) -> None:
    other, *template = call.arguments
    asked = Call(call.note, tuple(template), call.options).asked()
    call.note(verb, asked, to=other.url, count=count)


def _discarded(call: Call, count: int) -> None:
    call.note("move", call.asked(), to=NOWHERE, count=count)


def _letters(call: Call, letters: list[Any]) -> None:
    for letter in letters:
        call.found("read", letter.tuple)


_TAKEN, _READ = partial(_one, verb="take"), partial(_one, verb="read")

IN_TRANSACTIONS = (
    Verb("put", _put),
    Verb("put_all", _put_several, prepared=_listed),
    Verb("put_if_absent", _put_unless_inside),
    Verb("take", _TAKEN, waits=True),
    Verb("read", _READ, waits=True),
    Verb("try_take", _TAKEN),
    Verb("try_read", _READ),
    Verb("take_all", partial(_each, verb="take")),
    Verb("discard", _discarded),
    Verb("read_all", partial(_each, verb="read")),
    Verb("take_many", partial(_each, verb="take"), waits=True),
    Verb("swap", _swapped, waits=True),
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
)
"""The verbs of a space that return their finds; later operations on a find are its own."""

SEARCHING = {"take": "take", "read": "read", "try_take": "take", "try_read": "read"}
"""The verbs of a search, and the lines that record their finds. The first two wait."""
