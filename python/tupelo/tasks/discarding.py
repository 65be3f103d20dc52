"""Removes tuples without a look at what is in them.

A queue is removed with all that is in it: also what can not be read in this process, and objects of
another program, which to read is to run its code. No verb takes such tuples; but they can be moved.
So they are moved into a space that nobody else finds, and that is gone when it is closed.
"""

from __future__ import annotations

from contextlib import suppress

from tupelo._native import remove
from tupelo.errors import SpaceNotFound
from tupelo.space import connect
from tupelo.tasks import protocol
from tupelo.tasks.failures import is_of_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Space, Template

__all__ = ["discard", "discard_queue", "withdrawn"]

NAME = "tupelo.discarded"
"""Always the same: if a process is killed before it has taken the name away, the next one does."""


def discard(space: Space, template: Template[Any]) -> int:
    """Remove all matches of one moment; return how many.

    Raises:
        SpaceFull: there is no memory to move them to. They are still there.
    """
    if space.count(template) == 0:
        return 0
    with _nameless(space) as nowhere:
        return space.move_to(nowhere, template)


def withdrawn(space: Space, template: Template[Any]) -> bool:
    """Take a match back, if there is one; return whether there was.

    What its class raises when it is made is nobody's news here: then it is moved away unseen.
    """
    try:
        return space.try_take(template) is not None
    except Exception as error:
        if not is_of_value(error):
            raise
    return discard(space, template) > 0


def discard_queue(space: Space, queue: str) -> None:
    """Remove the tuples of a queue, except its dead letters."""
    discard(
        space,
        protocol.task_of(queue) | protocol.end_of(queue) | protocol.answers_under(f"{queue}/"),
    )


def _nameless(space: Space) -> Space:
    """Make a space of the same kind that can hold as much, and that is gone when it is closed."""
    scheme = space.url.partition("://")[0]
    url = f"{scheme}://{NAME}"
    nameless = connect(url, fresh=True, size=space.stat()["bytes_max"])
    with suppress(SpaceNotFound):  # somebody who does the same was faster
        remove(url)
    return nameless
