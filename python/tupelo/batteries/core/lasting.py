"""A call of a battery that begins anew when the space was removed.

A lock, a bounded queue and a barrier build upon tuples that were put before: a unit, room, the
state of a round. If their waits went on in the next space, they would wait there for tuples that
nobody has put. So each attempt works with one connection, which ends with its space, and the next
attempt begins with another one. That is for `connect(..., on_removed="reconnect")` alone.
"""

from __future__ import annotations

from typing import TypeVar

from tupelo import _native
from tupelo.batteries.verbs import AtOnce
from tupelo.errors import SpaceRemoved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from tupelo.batteries.verbs import Verbs

__all__ = ["begun_anew", "goes_on", "pinned"]

R = TypeVar("R")


async def begun_anew(space: Verbs, attempt: Callable[[Verbs], Awaitable[R]]) -> R:
    """Return the result of an attempt in the space of the moment.

    An attempt in a space that was removed has had no effect that anybody can see. Then there is
    another one in the next space, if there is one.
    """
    while True:
        used = pinned(space)
        try:
            return await attempt(used)
        except SpaceRemoved:
            if not goes_on(space, used):
                raise


def pinned(space: Verbs) -> Verbs:
    """Return the verbs of the space of the moment, which are refused once that is removed."""
    connection = _native.pinned(space.blocking)
    if connection is space.blocking:
        return space
    if isinstance(space, AtOnce):
        return AtOnce(connection)
    of_loop: Any = space  # of tupelo.aio
    verbs: Verbs = of_loop._pinned()  # noqa: SLF001 - a part of the same package
    return verbs


def goes_on(space: Verbs, used: Verbs) -> bool:
    """Connect to the next space, if the one of `used` was removed; return whether there is one.

    Another thread or task may have done so: what counts is the connection that was used.
    """
    return _native.renewed(space.blocking, used.blocking)
