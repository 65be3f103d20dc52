"""The event of a subscription: `Event`, as `Space.subscribe` gives it (rules N1, N2)."""

from typing import Generic, Literal, NamedTuple, TypeVar

__all__ = ["Event"]

T_co = TypeVar("T_co", covariant=True)


class Event(NamedTuple, Generic[T_co]):
    """Something that happened to a tuple.

    >>> alarms = space.subscribe("alarm", str, buffer=2)
    >>> for what in ("smoke", "fire", "flood"):
    ...     space.put("alarm", what)
    >>> alarms.try_next()
    Event(kind='put', tuple=('alarm', 'fire'), seq=2, missed=1)
    """

    kind: Literal["put", "take", "expire", "return"]
    tuple: T_co
    """A copy of the tuple."""
    seq: int
    """Its number among the events of the subscription, from 1; dropped events count."""
    missed: int
    """How many events were dropped between the previous one and this one. You were too slow, or the
    tuples need more than the `buffer_bytes` of `subscribe`. Or making the event raised an error (a
    class that refuses its values, or does not fit)."""
