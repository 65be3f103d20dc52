"""Spaces as arguments of the verbs of `tupelo.aio`, looked at before anything happens."""

from __future__ import annotations

from tupelo import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["blocking"]


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
