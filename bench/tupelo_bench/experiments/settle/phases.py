"""The two phases of a client: it writes all its objects, and it takes as many.

In batches, so that a system of another language runs them over there (`backends/batches.py`): the
way there and back is made once for each, and not for each object.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.batches import put_each, take_each
from tupelo_bench.experiments.warming import warm_until_steady
from tupelo_bench.experiments.workload import is_whole
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tupelo_bench.backends.base import Backend, Fields
    from tupelo_bench.experiments.workload import Entry
    from tupelo_bench.harness.workers import Bench

BATCH = 100
LOOKED_AT = 1_000  # entries that are checked of those that a client took: the last ones


def write(space: Any, fields: Fields, objects: int) -> None:
    """Put so many entries, all alike."""
    batch = [fields] * BATCH
    for count in _counts(objects):
        put_each(space, batch[:count])


def fetch(
    space: Any, template: Fields, objects: int, keep: Callable[[list[Fields]], object] = len
) -> None:
    """Take so many entries, and give them to `keep`, some at a time."""
    batch = [template] * BATCH
    for count in _counts(objects):
        keep(take_each(space, batch[:count])[1])


def _counts(objects: int) -> Iterator[int]:
    """How many each batch has."""
    for begin in range(0, objects, BATCH):
        yield min(BATCH, objects - begin)


def warm_in_cycles(bench: Bench, space: Any, fields: Fields, template: Fields) -> None:
    """Put and take, a hundred at a time, until the times differ no more."""

    def cycle() -> None:
        write(space, fields, BATCH)
        fetch(space, template, BATCH)

    warm_until_steady(bench.profiler, cycle)


class Taken:
    """What a client has taken: how many entries, and the last of them, or all."""

    def __init__(self, kept: int | None = None) -> None:
        self.count = 0
        self.last: deque[Fields] = deque(maxlen=kept)

    def keep(self, some: Sequence[Fields]) -> None:
        """Count these, too. Their seeds would be in the time of the phase: those come later."""
        self.count += len(some)
        self.last.extend(some)


def check_whole(backend: Backend, entry: Entry, taken: Iterable[Fields]) -> None:
    """See that entries are such as were put: the same in all of their bytes."""
    wrong = next((each for each in taken if not is_whole(backend, entry, each)), None)
    if wrong is not None:
        message = f"{wrong!r:.300} was taken, but never put"
        raise WrongResultError(message)
