"""The time that a call of a battery may take, where it consists of several waits."""

from __future__ import annotations

from time import monotonic

from tupelo import _native
from tupelo.errors import Timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tupelo._native import Seconds

__all__ = ["FOR_EVER", "Deadline", "timed_out"]


class Deadline:
    """The end of a `timeout=`, from the moment when this was made."""

    __slots__ = ("_end", "timeout_s")

    def __init__(self, timeout: Seconds | None) -> None:
        """Begin to count.

        Raises:
            TypeError: it is no number of seconds.
            ValueError: it is negative, or no number.
        """
        self.timeout_s = _native.seconds("timeout", timeout)
        self._end = None if self.timeout_s is None else monotonic() + self.timeout_s

    def left(self) -> float | None:
        """Return the seconds that are left, not below 0; None for ever."""
        return None if self._end is None else max(0.0, self._end - monotonic())

    def __str__(self) -> str:
        """Show the whole time, as messages have it: ` within 5 s`."""
        return "" if self.timeout_s is None else f" within {self.timeout_s:g} s"


FOR_EVER = Deadline(None)


def timed_out(message: str, url: str) -> Timeout:
    """Return the exception of a battery that waited in vain."""
    error = Timeout(message)
    error.space = url
    return error
