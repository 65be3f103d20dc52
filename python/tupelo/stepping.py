"""`put_all(atomic=False)`: more tuples than one step can put, in several."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from time import monotonic

from tupelo._native import pinned, renewed, seconds
from tupelo.errors import SpaceRemoved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from typing import Any, Literal

    from tupelo._native import Seconds, Space

__all__ = ["STEP", "counting", "put_in_steps", "put_steps", "steps_of"]

STEP = 10_000
"""Tuples that are put at a time: few enough that others do not wait long."""


def put_in_steps(
    space: Space,
    tuples: Iterable[Any],
    progress: Callable[[int], object] | None,
    limits: tuple[Seconds | None, Seconds | None, Seconds | None, Literal["group", "none"] | None],
) -> int:
    """Put tuples, some at a time; return how many.

    All are put in one space: if that is removed behind the first step, it is told.

    Args:
        space: where to.
        tuples: any number of them; an iterator is gone through as they are put.
        progress: called after each step with how many there are by then.
        limits: lease and after, of each tuple, timeout and sync, of each step.
    """
    lease, after, timeout, sync = limits
    connection, done = space, 0
    for some in steps_of(tuples):

        def put(connection: Space, left: Seconds | None, some: list[Any] = some) -> int:
            return connection.put_all(some, lease=lease, after=after, timeout=left, sync=sync)

        with counting(done):
            if done == 0:
                connection, done = _first_step(space, put, timeout)
            else:
                done += put(connection, timeout)
        if progress is not None:
            progress(done)
    return done


def _first_step(
    space: Space, put: Callable[[Space, Seconds | None], int], timeout: Seconds | None
) -> tuple[Space, int]:
    """Put in the space of the moment, whichever that is; return the connection and the number."""
    end = None if (left := seconds("timeout", timeout)) is None else monotonic() + left
    while True:
        connection = pinned(space)
        try:
            return connection, put(connection, left)
        except SpaceRemoved:
            if not renewed(space, connection):
                raise
        left = None if end is None else max(0.0, end - monotonic())


async def put_steps(
    tuples: Iterable[Any],
    put: Callable[[list[Any]], Awaitable[int]],
    progress: Callable[[int], object] | None,
) -> int:
    """Put tuples, some at a time, by calls that are awaited; return how many."""
    done = 0
    for some in steps_of(tuples):
        with counting(done):
            done += await put(some)
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
