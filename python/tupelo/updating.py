"""`update`: a tuple replaced by the result of a function."""

from __future__ import annotations

from time import monotonic

from tupelo._native import pinned, renewed, seconds
from tupelo.errors import SpaceRemoved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from tupelo._native import Seconds, Space, Template

__all__ = ["Told", "fields_of", "require_function", "update"]


def update(
    space: Space,
    template: Template[Any],
    function: Callable[[Any], Any],
    timeout: Seconds | None,
    sync: Literal["group", "none"] | None,
) -> Any:
    """Replace a match in a transaction; the arguments are as in `Space.update`."""
    require_function(function)
    to = Told(function)
    end = None if (left := seconds("timeout", timeout)) is None else monotonic() + left
    while True:
        connection = pinned(space)
        try:
            with connection.transaction(sync=sync) as t:
                new = to(t.take(template, timeout=left))
                t.put(*fields_of(new))
        except SpaceRemoved:
            if to.has_raised or not renewed(space, connection):
                raise
        else:
            return new
        left = None if end is None else max(0.0, end - monotonic())


class Told:
    """The function of an `update`: whether it was that which raised, and not the space."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        """Note the function."""
        self._function = function
        self.has_raised = False

    def __call__(self, old: Any) -> Any:
        """Call it."""
        self.has_raised = True
        new = self._function(old)
        self.has_raised = False
        return new


def require_function(function: object) -> None:
    """Refuse a value that cannot be called, before a tuple is taken.

    Raises:
        TypeError: it cannot be called.
    """
    if not callable(function):
        message = f"to has the type {type(function).__name__}: give a function of the old tuple"
        raise TypeError(message)


def fields_of(new: Any) -> tuple[Any, ...]:
    """Return the arguments of `put` for a tuple or an entry.

    Raises:
        TypeError: it is neither.
    """
    if type(new) is tuple:
        return new
    from tupelo import entries  # noqa: PLC0415 - not as light as the rest

    if entries.describe(type(new)) is None:
        message = (
            f"to returned a {type(new).__name__}: return the new tuple, or an instance of a class"
            " of entries"
        )
        raise TypeError(message)
    return (new,)
