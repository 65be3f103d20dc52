"""Dead letters: tuples whose last attempt has failed, as `Space.dead` lists them (rule K5)."""

from typing import Generic, NamedTuple, TypeVar

__all__ = ["DeadLetter"]

T_co = TypeVar("T_co", covariant=True)


class DeadLetter(NamedTuple, Generic[T_co]):
    """A tuple whose attempts have all failed.

    >>> space.put("order", 7)
    >>> space.claim("order", int, max_attempts=1).abort("no such customer")
    >>> for (_, order), attempts, reasons in space.dead("order", int):
    ...     print(order, attempts, reasons[-1])
    7 1 no such customer
    """

    tuple: T_co
    attempts: int
    """How many failed."""
    reasons: list[str]
    """Why, the oldest first. Of many long reasons the newest are kept."""
