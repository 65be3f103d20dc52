"""Finding a tuple that is in one of several spaces, without knowing which (rule O10).

`search` does it once. A `Search` keeps its statistics and its places in the wait queue, for a
program that searches again and again. The native module does the work. It asks each space once,
then it gets in line in all of them and sleeps. Of the tuples that are handed over it picks up one.
"""

from __future__ import annotations

from tupelo import _native
from tupelo._native import Found

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal, Self

    from tupelo._native import Seconds, Space, VisitOrder

__all__ = ["Found", "Search", "search"]


class Search(_native.Search):
    """Several spaces, to find tuples that are in one of them.

    Args:
        spaces: where to look: connections by `connect`, of any kinds, at most 256.
        order: which space is asked first. "round robin": the first of the list, then the others in
            turn. "success factor": the space in which most searches for such a tuple have ended so
            far, once the difference is statistically significant. That is after five searches, if
            all ended in one space. Such a tuple has the same first field, if that is a text, and
            the same types of the other fields. Each object learns for itself.

    Raises:
        ValueError: there is no space, or one twice; there is no such order.
        TypeError: something in the list is no space of `tupelo.connect`.
        LimitExceeded: more than 256 spaces.

    Threads may share it, and after a fork the child may use it.

    >>> near, far = ts.connect("mem://near"), ts.connect("mem://far")
    >>> search = ts.Search([near, far], order="success factor")
    >>> far.put_all([("border", number) for number in range(7)])
    7
    >>> found = search.take("border", int)
    >>> found.tuple, found.space.name, found.visited
    (('border', 0), 'far', 2)
    >>> [search.take("border", int).visited for _ in range(6)]
    [2, 2, 2, 2, 1, 1]
    """

    def __new__(cls, spaces: Iterable[Space], *, order: VisitOrder = "round robin") -> Self:
        """Prepare to search; nothing happens in the spaces."""
        return super().__new__(cls, checked(spaces), order)


def checked(spaces: Iterable[Any], kind: type = _native.Space) -> list[Any]:
    """Return the spaces as a list.

    Raises:
        TypeError: that is no list of spaces.
    """
    where = "tupelo.connect" if kind is _native.Space else "tupelo.aio.connect"
    if not hasattr(spaces, "__iter__"):
        what = (
            f"is {spaces!r}"
            if isinstance(spaces, kind)
            else f"has the type {type(spaces).__name__}"
        )
        message = f"spaces {what}: give a list, as in [space]"
        raise TypeError(message)
    listed = list(spaces)
    for place, space in enumerate(listed):
        if not isinstance(space, kind):
            name = type(space).__name__
            message = f"spaces[{place}] has the type {name}: give one of {where}"
            raise TypeError(message)
    return listed


def search(
    spaces: Iterable[Space],
    *template: Any,
    timeout: Seconds | None = None,
    want: Literal["take", "read"] = "take",
    **fields: Any,
) -> Found[Any]:
    """Take a match from one of several spaces, waiting for one in all of them.

    Exactly one tuple is taken. A tuple that another space had handed over meanwhile goes back to
    its place, with its age (rules O10, T5). If the call times out or is interrupted, every tuple
    goes back.

    Args:
        spaces: where to look, in this order: connections by `connect`, of any kinds, at most 256.
        template: as for `take`.
        timeout: longest wait, in seconds. None waits for ever; 0 does not wait.
        want: "take" removes the tuple, "read" leaves it where it is and returns a copy.
        fields: `where=`, and fields of a class of entries by name, as for `take`.

    Returns:
        The find: `tuple`; `space`, one of the given spaces; `visited`, how many looks it took;
        `waited_s`, how long it waited.

    Raises:
        Timeout: nothing matched in any space in time. No space has changed.
        SpaceClosed: one of the spaces was closed. No space has changed.
        ValueError: there is no space, or one twice.
        TypeError: something in the list is no space of `tupelo.connect`.

    To search again and again, keep a `Search`.

    >>> near, far = ts.connect("mem://near"), ts.connect("mem://far")
    >>> far.put("border", 7)
    >>> found = ts.search([near, far], "border", int, timeout=1)
    >>> found.tuple, found.space.name
    (('border', 7), 'far')
    """
    # First: the value of a keyword may be meant for a field of the class that goes by its name.
    _native.require_clear(*template)
    if want not in ("take", "read"):
        message = f"want is {want!r}: give 'take' or 'read'"
        raise ValueError(message)
    searcher = Search(spaces)
    find = searcher.take if want == "take" else searcher.read
    found: Found[Any] = find(*template, timeout=timeout, **fields)
    return found
