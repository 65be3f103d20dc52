"""Arguments of batteries, looked at before anything happens."""

from __future__ import annotations

from tupelo import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Seconds

__all__ = ["integer", "number_of", "result_ttl", "text", "time_to_live", "times_of_work"]


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


def time_to_live(value: Any) -> float:
    """Return the seconds that the argument `ttl` has to be, more than 0.

    Raises:
        TypeError: it is no number of seconds.
        ValueError: it is not positive, or no number.
    """
    ttl_s = _native.seconds("ttl", value)
    if ttl_s is None:
        message = "ttl has the type NoneType: give seconds, as a number or a timedelta"
        raise TypeError(message)
    if ttl_s == 0:
        message = "ttl is 0: give seconds from which on a silent holder has lost what it holds"
        raise ValueError(message)
    return ttl_s


def result_ttl(value: Any) -> float | None:
    """Return the seconds that the argument `result_ttl` has to be, more than 0, or None.

    Raises:
        TypeError: it is no number of seconds.
        ValueError: it is not positive, or no number.
    """
    ttl_s = _native.seconds("result_ttl", value)
    if ttl_s == 0:
        message = "result_ttl is 0: give seconds, None for ever, or ignore_result=True for none"
        raise ValueError(message)
    return ttl_s


def times_of_work(ttl: Seconds, timeout: Seconds | None) -> tuple[float, float | None]:
    """Return how long a worker may be silent and how long a task may take, in seconds.

    Raises:
        TypeError: one is no number of seconds.
        ValueError: one is out of bounds.
    """
    timeout_s = _native.seconds("timeout", timeout)
    if timeout_s == 0:
        message = "timeout is 0: give the seconds that a task may take, or None"
        raise ValueError(message)
    return time_to_live(ttl), timeout_s
