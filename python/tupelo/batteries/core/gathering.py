"""Waiting for so many results: `gather`.

The tuples are taken in one step when all are in the space. A call that gives up, or whose process
is killed, has taken nothing. So the bar counts tuples that wait in the space. It needs no tuples of
its own.
"""

from __future__ import annotations

from tupelo import _native
from tupelo.batteries.core.rows import Rows
from tupelo.batteries.progress import Bar
from tupelo.batteries.timeouts import Deadline
from tupelo.batteries.verbs import awaited
from tupelo.errors import Timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Seconds
    from tupelo.batteries.verbs import Verbs

__all__ = ["Rows", "gather"]

LOOK_EVERY_S = 0.1
"""How often the bar is drawn."""

PLAIN = (str, bytes, int, float, type(None))


async def gather(
    space: Verbs,
    *template: Any,
    n: int,
    timeout: Seconds | None = None,
    progress: str | bool = False,
    **fields: Any,
) -> Rows[Any]:
    """Wait for `n` matches and take them in one step; see `tupelo.batteries.gather`."""
    # First: the value of a keyword may be meant for a field of the class that goes by its name.
    _native.require_clear(*template)
    verbs = awaited(space)
    deadline = Deadline(timeout)
    if not isinstance(progress, str | bool):
        message = f"progress has the type {type(progress).__name__}: give a label, or True"
        raise TypeError(message)
    sought = _native.like(*template, **fields)
    plain = frozenset(index for index, part in enumerate(template) if isinstance(part, PLAIN))
    if progress is False or type(n) is not int or n < 0:  # which the verb refuses
        taken = await verbs.take_many(sought, n=n, timeout=deadline.timeout_s)
    else:
        label = progress if isinstance(progress, str) else "gathering"
        taken = await _watched(verbs, sought, n, deadline, Bar(label, n))
    return Rows(taken, plain)


async def _watched(
    space: Verbs, sought: _native.Template[Any], n: int, deadline: Deadline, line: Bar
) -> list[Any]:
    """Wait in short turns, and draw the bar between them.

    The count at the beginning of a turn is drawn before the tuples are taken. A terminal may be
    slow, or stopped, and Ctrl-C during that time must leave nothing taken. If results complete the
    number during a turn, they are taken at that moment, and drawn afterwards.
    """
    done = 0
    try:
        while True:
            done = min(n, space.blocking.count(sought))
            if done == n:
                line.end(n)
            else:
                line.show(done)
            left = deadline.left()
            turn = LOOK_EVERY_S if left is None else min(LOOK_EVERY_S, left)
            try:
                taken = await space.take_many(sought, n=n, timeout=turn)
            except Timeout:
                if left is not None and left <= LOOK_EVERY_S:
                    whole_s = deadline.timeout_s or 0.0
                    raise _native.timed_out(
                        space.blocking, "take_many", whole_s, sought, at_least=n
                    ) from None
            else:
                if done < n:  # they came during the turn
                    line.end(n)
                return taken
    except BaseException:
        if done < n:
            line.end(done)
        raise
