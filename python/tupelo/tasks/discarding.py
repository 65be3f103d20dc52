"""Removes tuples without a look at their values.

A queue is removed with all its tuples. Some may not be readable in this process, and reading an
object of another program would run its code.
"""

from __future__ import annotations

from contextlib import suppress

from tupelo.errors import SpaceRemoved
from tupelo.tasks import protocol
from tupelo.tasks.failures import is_of_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Space, Template

__all__ = ["discard_queue", "withdrawn"]


def withdrawn(space: Space, template: Template[Any]) -> bool:
    """Take a match back, if there is one; return whether there was.

    If its class raises when an instance is made, the tuple is removed unseen, and the error
    ignored.
    """
    try:
        return space.try_take(template) is not None
    except Exception as error:
        if not is_of_value(error):
            raise
    return space.discard(template) > 0


def discard_queue(space: Space, queue: str) -> None:
    """Remove the tuples of a queue, except its dead letters."""
    of_it = protocol.task_of(queue) | protocol.end_of(queue)
    with suppress(SpaceRemoved):  # there is nothing left of it
        space.discard(of_it | protocol.answers_under(f"{queue}/"))
