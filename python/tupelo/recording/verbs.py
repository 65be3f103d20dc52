"""What each verb tells: the one table for spaces, transactions, and those that are awaited.

A verb is recorded where the program calls it. What it is composed of is done by a connection that
nobody records, so that a `consume` is not also its many looks.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from tupelo import _native
from tupelo.recording.lines import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tupelo.recording.lines import Note

__all__ = [
    "FUTURES",
    "IN_SPACES",
    "IN_TRANSACTIONS",
    "Call",
    "Verb",
    "awaited",
    "blocking",
    "stand_in",
]

# fmt: off
OWN = frozenset({
    "after", "at_least", "buffer", "buffer_bytes", "idle", "lease", "limit", "max_attempts", "n",
    "on", "order", "timeout", "to", "ttl", "unless",
})
# fmt: on
"""Keywords that are the verb's own. The others belong to the template."""


@dataclass(frozen=True)
class Call:
    """One call of a verb, and who writes it down."""

    note: Note
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def asked(self) -> dict[str, Any]:
        """What stands in a line for the template of the call."""
        fields = {
            name: value
            for name, value in self.options.items()
            if name not in OWN and value is not None
        }
        template = words(self.arguments, fields)
        return {"kinds": template["kinds"], "template": template["words"]}

    def waits(self) -> None:
        """Write down that it waits: one that never ends can be seen so."""
        try:
            asked = self.asked()
        except (TypeError, ValueError):
            return  # arguments that make no sense: the verb says so better
        self.note("waits", **asked)

    def found(self, verb: str, fields: Any) -> None:
        """Write down what it has found; None for nothing."""
        if fields is None:
            self.note(verb, **self.asked(), tuple=None)
        else:
            tupled = _told(fields)
            self.note(verb, **(self.asked() | {"kinds": tupled["kinds"], "tuple": tupled["words"]}))

    def put(self, fields: Any) -> None:
        """Write down a tuple that it has put."""
        tupled = _told(fields)
        self.note("put", kinds=tupled["kinds"], tuple=tupled["words"])


def _told(fields: Any) -> dict[str, list[str]]:
    """A tuple's words; an entry stands alone."""
    return words(fields if type(fields) is tuple else (fields,))


def _as_it_is(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return arguments


@dataclass(frozen=True)
class Verb:
    """How a verb is recorded."""

    name: str
    tell: Callable[[Call, Any], None]
    """Writes down what the call did, by what it returned."""
    first: str | None = None
    """The verb that does the same and does not wait: asked before the call is said to wait."""
    waits: bool = False
    """Whether it may wait; so a line says it before."""
    prepared: Callable[[tuple[Any, ...]], tuple[Any, ...]] = _as_it_is
    """Makes of the arguments such that can be looked at afterwards."""


def blocking(verb: Verb) -> Callable[..., Any]:
    """Return a method that records `verb`: of a class with `_note`, and `_plain` to do it."""

    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        call = Call(self._note, verb.prepared(arguments), options)
        if verb.first is not None:
            _native.seconds("timeout", options.get("timeout"))
            now = {name: one for name, one in options.items() if name != "timeout"}
            found = None
            with suppress(TypeError):  # wrong arguments, which the verb itself refuses
                found = getattr(self._plain, verb.first)(*call.arguments, **now)
            if found is not None:
                verb.tell(call, found)
                return found
        if verb.first is not None or verb.waits:
            call.waits()
        result = getattr(self._plain, verb.name)(*call.arguments, **options)
        verb.tell(call, result)
        return result

    return _named(method, verb)


def awaited(verb: Verb, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine method that records `plain`, the one that does it."""

    async def method(self: Any, *arguments: Any, **options: Any) -> Any:
        call = Call(self._note, verb.prepared(arguments), options)
        if verb.first is not None or verb.waits:
            call.waits()
        result = await plain(self, *call.arguments, **options)
        verb.tell(call, result)
        return result

    return _named(method, verb)


def stand_in(recording: type, plain: type) -> None:
    """Let a class that records go by the name of the other, in messages and to who looks at it."""
    recording.__module__, recording.__name__ = plain.__module__, plain.__name__


def _named(method: Callable[..., Any], verb: Verb) -> Callable[..., Any]:
    method.__name__ = verb.name
    method.__doc__ = f"As `Space.{verb.name}`."
    return method


# --- what they tell ---


def _put(call: Call, _: Any) -> None:
    call.put(call.arguments)


def _put_several(call: Call, _: Any) -> None:
    for fields in call.arguments[0]:
        call.put(fields)


def _put_unless(call: Call, done: bool) -> None:  # noqa: FBT001 - what the verb returns
    if done:
        _put(call, None)


def _listed(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tuples of a `put_all`, to be gone through twice. What is none is refused by the verb."""
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
    call.note("count", **call.asked())


def _transferred(call: Call, count: int, *, verb: str) -> None:
    other, *template = call.arguments
    asked = Call(call.note, tuple(template), call.options).asked()
    call.note(verb, **asked, to=other.url, count=count)


def _letters(call: Call, letters: list[Any]) -> None:
    for letter in letters:
        call.found("read", letter.tuple)


def _coming(call: Call, future: Any, *, verb: str) -> None:
    def arrived(future: Any) -> None:
        if not future.cancelled() and future.exception() is None:
            call.found(verb, future.result())

    future.add_done_callback(arrived)


_TAKEN, _READ = partial(_one, verb="take"), partial(_one, verb="read")

IN_TRANSACTIONS = (
    Verb("put", _put),
    Verb("put_all", _put_several, prepared=_listed),
    Verb("take", _TAKEN, first="try_take"),
    Verb("read", _READ, first="try_read"),
    Verb("try_take", _TAKEN),
    Verb("try_read", _READ),
    Verb("take_all", partial(_each, verb="take")),
    Verb("read_all", partial(_each, verb="read")),
    Verb("take_many", partial(_each, verb="take"), waits=True),
    Verb("swap", _swapped, waits=True),
    Verb("try_swap", _swapped),
    Verb("count", _counted),
)
"""The verbs of a space as a transaction sees it."""

IN_SPACES = (
    *IN_TRANSACTIONS,
    Verb("put_if_absent", _put_unless),
    Verb("move_to", partial(_transferred, verb="move")),
    Verb("copy_to", partial(_transferred, verb="copy")),
    Verb("dead", _letters),
)
"""Those of a space that return what they found; what goes on afterwards is its host's."""

FUTURES = (
    Verb("take_future", partial(_coming, verb="take"), waits=True),
    Verb("read_future", partial(_coming, verb="read"), waits=True),
)
