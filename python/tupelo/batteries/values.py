"""Values that many change, for blocking programs: `Counter` and `Register`."""

from __future__ import annotations

from typing import Generic, TypeVar

from tupelo.batteries import checks
from tupelo.batteries.core import values as core
from tupelo.batteries.verbs import AtOnce, run
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from tupelo._native import Space

__all__ = ["Counter", "Register"]

T = TypeVar("T")


class Counter:
    """A number that many threads and processes add to. It begins with 0.

    Each change happens in one step, or not at all. So it cannot be lost, and no process that dies
    can hold it (C1). Its tuple is `("tupelo.counter", name, value)`.

    >>> from tupelo.batteries import Counter
    >>> hits = Counter(space, "hits")
    >>> hits += 1
    >>> hits.add(10)
    11
    >>> hits.value
    11
    """

    @suggests
    def __init__(self, space: Space, name: str) -> None:
        """Make an object of the counter; nothing happens in the space.

        Args:
            space: where the counter is.
            name: all objects with the same name are the same counter.

        Raises:
            TypeError: an argument of another type.
        """
        self._core = core.Counter(AtOnce(space), name)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return repr(self._core)

    @property
    def name(self) -> str:
        """The name, the same in every process."""
        return self._core.name

    @property
    def value(self) -> int:
        """What has been counted up to now."""
        return run(self._core.get())

    def add(self, amount: int = 1) -> int:
        """Add to the value, in one step (O8).

        Args:
            amount: what to add. May be negative.

        Returns:
            The new value.

        Raises:
            TypeError: the amount is no int. Nothing was added.
            SpaceFull: there was no room for the tuple. Nothing was added.

        >>> from tupelo.batteries import Counter
        >>> Counter(space, "stock").add(-3)
        -3
        """
        return run(self._core.add(amount))

    def reset(self, value: int = 0) -> int:
        """Set the value, in one step (O8).

        Returns:
            The old value. Concurrent additions apply either before or after the reset; none is
            lost.

        >>> from tupelo.batteries import Counter
        >>> hits = Counter(space, "hits of this hour")
        >>> hits += 5
        >>> hits.reset(), hits.value
        (5, 0)
        """
        return run(self._core.reset(value))

    def __iadd__(self, amount: int) -> Self:
        """Add to the value: `hits += 1`."""
        self.add(amount)
        return self

    def __isub__(self, amount: int) -> Self:
        """Subtract from the value: `stock -= 1`."""
        # Checked before: `-True` is an int, and what has no `-` would say so and name no argument.
        self.add(-checks.integer("amount", amount))
        return self


class Register(Generic[T]):
    """A value that many threads and processes read and change.

    Each change happens in one step, or not at all. So it cannot be lost, and no process that dies
    can hold it (C1). Its tuple is `("tupelo.register", name, version, value)`.

    >>> from tupelo.batteries import Register
    >>> best = Register(space, "best", default=float("inf"))
    >>> for loss in (0.7, 0.2, 0.5):
    ...     best.update(lambda old: min(old, loss))
    0.7
    0.2
    0.2
    >>> best.value
    0.2
    """

    @suggests
    def __init__(self, space: Space, name: str, *, default: T) -> None:
        """Make an object of the register; nothing happens in the space.

        Args:
            space: where the register is.
            name: all objects with the same name are the same register.
            default: its value as long as it was never set; it is not stored.

        Raises:
            TypeError: an argument of another type.
        """
        self._core = core.Register(AtOnce(space), name, default=default)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return repr(self._core)

    @property
    def name(self) -> str:
        """The name, the same in every process."""
        return self._core.name

    @property
    def value(self) -> T:
        """The value: a copy, like every value that a space returns (V2)."""
        return run(self._core.get())

    def set(self, value: T) -> None:
        """Replace the value.

        Raises:
            NotEncodable: no field can hold it. The old one is still there.
            SpaceFull: there was no room for it. The old one is still there.

        >>> from tupelo.batteries import Register
        >>> mode = Register(space, "mode", default="fast")
        >>> mode.set("careful")
        >>> mode.value
        'careful'
        """
        run(self._core.set(value))

    def update(self, change: Callable[[T], T]) -> T:
        """Replace the value by `change` of it, in one step (O8).

        Args:
            change: gives the new value for an old one, which it must not change itself. It is
                called again if another process was faster, so it should be short, and have no side
                effects.

        Returns:
            The new value.

        Raises:
            NotEncodable: no field can hold the new value. The old one is still there, as it is if
                `change` raises.
            SpaceFull: there was no room for the new value. The old one is still there.

        >>> from tupelo.batteries import Register
        >>> seen = Register(space, "seen", default=list[str]())
        >>> seen.update(lambda names: [*names, "ada"])
        ['ada']
        """
        return run(self._core.update(change))
