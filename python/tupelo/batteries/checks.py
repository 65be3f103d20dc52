"""Arguments of batteries, looked at before anything happens."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["integer", "number_of", "text"]


def text(name: str, value: Any) -> str:
    """Return the text that the argument `name` has to be.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, str):
        return str(value)
    message = f"{name} has the type {type(value).__name__}: give a str"
    raise TypeError(message)


def integer(name: str, value: Any) -> int:
    """Return the int that the argument `name` has to be.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    message = f"{name} has the type {type(value).__name__}: give an int"
    raise TypeError(message)


def number_of(name: str, value: Any, at_most: int, *, at_least: int = 1) -> int:
    """Return the number that the argument `name` has to be, `at_least` to `at_most`.

    Raises:
        TypeError: it is no int.
        ValueError: it is out of bounds.
    """
    number = integer(name, value)
    if at_least <= number <= at_most:
        return number
    message = f"{name} is {number}: give a number from {at_least} to {at_most}"
    raise ValueError(message)
