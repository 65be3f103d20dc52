"""Many puts or takes: cut into messages, and timed as a program of the system's language does it.

A system of another language is driven in that language: the way there and back is the suite's own
doing, and no part of what a put costs. Its handle is `SelfTimed` and runs the loop over there; for
all others the loop is here.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import islice
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, TypeVar

from tupelo_bench.backends.base import Fields, Handle
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Item = TypeVar("Item")


def in_batches(items: Iterable[Item], count: int) -> Iterator[list[Item]]:
    """Lists of so many of them; the last has the rest."""
    rest = iter(items)
    while batch := list(islice(rest, count)):
        yield batch


class SelfTimed(Handle):
    """A space whose batches are timed where they run."""

    @abstractmethod
    def put_each(self, tuples: Sequence[Fields]) -> int:
        """Put them one by one; how many nanoseconds that took."""

    @abstractmethod
    def take_each(self, templates: Sequence[Fields]) -> tuple[int, list[Fields]]:
        """Take a match of each, one by one; how many nanoseconds that took, and the matches."""


def put_each(space: Any, tuples: Sequence[Fields]) -> int:
    """Put tuples one by one; how many nanoseconds that took."""
    if isinstance(space, SelfTimed):
        return space.put_each(tuples)
    put = space.put
    begin = perf_counter_ns()
    for fields in tuples:
        put(*fields)
    return perf_counter_ns() - begin


def take_each(space: Any, templates: Sequence[Fields]) -> tuple[int, list[Fields]]:
    """Take a match of each, one by one; how many nanoseconds that took, and the matches.

    Raises:
        WrongResultError: a system that runs the loop itself did not come back with one for each:
            the fastest of all would be who does nothing.
    """
    if isinstance(space, SelfTimed):
        took_ns, taken = space.take_each(templates)
        if len(taken) != len(templates):
            message = f"{len(templates)} takes were asked for, {len(taken)} tuples came"
            raise WrongResultError(message)
        return took_ns, taken
    take = space.take
    begin = perf_counter_ns()
    taken = [take(*template) for template in templates]
    return perf_counter_ns() - begin, taken
