"""The two phases of a client: it writes all its objects, and it takes as many.

In batches, so that a system of another language runs them over there (`backends/batches.py`): the
way there and back is made once for each, and not for each object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.batches import put_each, take_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tupelo_bench.backends.base import Fields

BATCH = 100


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
