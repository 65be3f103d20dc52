"""Arguments of the verbs of `tupelo.aio`, looked at before anything happens."""

from __future__ import annotations

from tupelo import _native
from tupelo.errors import SpaceRemoved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    from tupelo.aio.space import Space

    R = TypeVar("R")

__all__ = ["beside", "blocking", "conditioned", "require_keywords", "there"]

KEYWORDS = {
    "take": ("timeout", "order", "sync"),
    "read": ("timeout", "order"),
    "claim": ("ttl", "timeout", "max_attempts", "order", "sync"),
    "take_many": ("n", "at_least", "timeout", "sync"),
    "swap": ("to", "timeout", "sync"),
    "update": ("to", "timeout", "sync"),
    "wait_none": ("timeout",),
    "consume": ("idle",),
    "finish": (),
}
"""The keywords of the verbs that wait, as the synchronous ones have them; all have `where`, too."""


def require_keywords(verb: str, template: tuple[Any, ...], fields: dict[str, Any]) -> None:
    """Refuse keywords that are neither the verb's nor fields of a class of entries.

    First of all: of a class whose field goes by the name of a keyword, the value of that may be
    meant for the field.

    Raises:
        TypeError: there is such a keyword, or such a class.
        UnknownField: the class has no such field.
    """
    if fields:
        _native.require_keywords(verb, KEYWORDS[verb], template, fields)
    elif len(template) == 1:
        _native.require_clear(*template)


def conditioned(fields: dict[str, Any], where: str | None) -> dict[str, Any]:
    """Return the fields that came by name, with the condition among them, as `like` takes both."""
    return fields if where is None else {"where": where, **fields}


def beside(
    verb: str, other: Space, step: Callable[[_native.Space], R]
) -> tuple[R, Callable[..., Awaitable[None]]]:
    """Do a step that changes another space, too, by its connection that does not wait for the disk.

    If that space was removed, and goes on in the next one of its name, do it there. Return the
    result, and what then waits for the disk.

    Raises:
        TypeError: it is no space of `tupelo.aio`.
    """
    connection = blocking(verb, other)
    while True:
        used = other._pinned()
        try:
            return step(used._space), used._waiting.settled
        except SpaceRemoved:
            if not _native.renewed(connection, used.blocking):
                raise


def there(space: Space) -> Space:
    """Return the space of this moment, after a look whether the one so far was removed.

    For what does not look itself, and ends with its space. All but a space of `tupelo.aio` is
    returned as it is.
    """
    if isinstance(getattr(space, "blocking", None), _native.Space):
        _native.renewed(space.blocking, space._pinned().blocking)
        return space._pinned()
    return space


def blocking(verb: str, space: Any) -> _native.Space:
    """Return the blocking connection of a space of `tupelo.aio` that `verb` was given.

    Raises:
        TypeError: it is none.
    """
    connection = getattr(space, "blocking", None)
    if isinstance(connection, _native.Space):
        return connection
    kind = f"{type(space).__module__}.{type(space).__name__}".removeprefix("builtins.")
    message = f"{verb}() is given a {kind}: give a space of tupelo.aio.connect"
    raise TypeError(message)
