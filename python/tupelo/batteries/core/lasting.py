"""A space for a battery that begins anew when the space was removed.

A lock, a bounded queue and a barrier build upon tuples that were put before: a unit, room, the
state of a round. If their waits went on in the next space, they would wait there for tuples that
nobody has put. So they work with a connection that ends with its space, and begin anew with the
next one. That is for `connect(..., on_removed="reconnect")` alone.
"""

from __future__ import annotations

from tupelo import _native
from tupelo.batteries.verbs import AtOnce, awaited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo.batteries.verbs import Verbs

__all__ = ["goes_on", "lasting", "pinned"]


class Lasting:
    """The verbs of the space that a connection leads to, until `goes_on` finds another one."""

    def __init__(self, space: Verbs) -> None:
        """Begin with the space of the moment."""
        self._origin = space
        self._pinned = pinned(space)

    def __getattr__(self, name: str) -> Any:
        """Return what the space of the moment has."""
        return getattr(self._pinned, name)

    def goes_on(self) -> bool:
        """Connect to the next space, if this one was removed; return whether there is one."""
        if not _native.renewed(self._origin.blocking, self._pinned.blocking):
            return False
        self._pinned = pinned(self._origin)
        return True


def pinned(space: Verbs) -> Verbs:
    """Return the verbs of the space of the moment, which are refused once that is removed."""
    connection = _native.pinned(space.blocking)
    if connection is space.blocking:
        return space
    if isinstance(space, AtOnce):
        return AtOnce(connection)
    verbs: Verbs = space.pinned()  # type: ignore[attr-defined]  # of tupelo.aio: a RenewingSpace
    return verbs


def lasting(space: Any) -> Verbs:
    """Return the space that a battery is given, after a check of its type.

    Raises:
        TypeError: it is a blocking space for a battery of asyncio, or none at all.
    """
    verbs = awaited(space)
    if verbs.blocking.on_removed == "error":
        return verbs
    lasting_one: Any = Lasting(verbs)
    return lasting_one  # type: ignore[no-any-return]  # it has all of the verbs


def goes_on(space: Verbs) -> bool:
    """Whether a battery that met `SpaceRemoved` begins anew, in another space."""
    return isinstance(space, Lasting) and space.goes_on()
