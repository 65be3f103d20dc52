"""Removes tuples without a look at what is in them.

A queue is removed with all that is in it: also what can not be read in this process, and objects of
another program, which to read is to run its code.
"""

from __future__ import annotations

from tupelo.tasks import protocol
from tupelo.tasks.failures import is_of_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Space, Template

__all__ = ["discard_queue", "withdrawn"]


def withdrawn(space: Space, template: Template[Any]) -> bool:
    """Take a match back, if there is one; return whether there was.

    What its class raises when it is made is nobody's news here: then it is removed unseen.
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
    space.discard(of_it | protocol.answers_under(f"{queue}/"))
