"""`put_all(atomic=False)`: more tuples than one step can put, in several."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Literal

    from tupelo._native import Seconds, Space

__all__ = ["STEP", "counting", "put_in_steps", "steps_of"]

STEP = 10_000
"""Tuples that are put at a time: few enough that others do not wait long."""


def put_in_steps(
    space: Space,
    tuples: Iterable[Any],
    progress: Callable[[int], object] | None,
    limits: tuple[Seconds | None, Seconds | None, Seconds | None, Literal["group", "none"] | None],
) -> int:
    """Put tuples, some at a time; return how many.

    Args:
        space: where to.
        tuples: any number of them; an iterator is gone through as they are put.
        progress: called after each step with how many there are by then.
        limits: lease and after, of each tuple, timeout and sync, of each step.
    """
    lease, after, timeout, sync = limits
    done = 0
    for some in steps_of(tuples):
        with counting(done):
            done += space.put_all(some, lease=lease, after=after, timeout=timeout, sync=sync)
        if progress is not None:
            progress(done)
    return done


def steps_of(tuples: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the tuples in lists that one step can put.

    Raises:
        TypeError: it is no iterable.
    """
    if not hasattr(tuples, "__iter__"):
        message = (
            f"the argument of put_all() has the type {type(tuples).__name__}:"
            " give an iterable of tuples"
        )
        raise TypeError(message)
    rest = iter(tuples)
    while some := list(islice(rest, STEP)):
        yield some


@contextmanager
def counting(done: int) -> Iterator[None]:
    """Note on an exception of a step how many tuples were put by the steps before it."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{done} tuples were put by the steps before")
        raise
