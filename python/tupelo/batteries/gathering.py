"""Waiting for so many results, for blocking programs: `gather`."""

from __future__ import annotations

from tupelo.batteries.core import gathering as core
from tupelo.batteries.core.gathering import Rows
from tupelo.batteries.verbs import AtOnce, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Seconds, Space

__all__ = ["Rows", "gather"]


def gather(
    space: Space,
    *template: Any,
    n: int,
    timeout: Seconds | None = None,
    progress: str | bool = False,
    **fields: Any,
) -> Rows[Any]:
    """Wait until the space has `n` matches, and take them in one step.

    Args:
        space: where they come.
        template: describes the tuples, as for `take`.
        n: how many.
        timeout: the longest wait, in seconds. None waits for ever, 0 not at all.
        progress: whether to show on a terminal how many tuples the space has; or under which name.
        fields: of a class of entries, as of `take`.

    Returns:
        The tuples, a list that knows its columns. They are of one moment. A worker that has put a
        result twice has put two tuples.

    Raises:
        Timeout: there were not as many in time. None was taken, as if the call is interrupted,
            cancelled, or its process killed (T5).

    >>> from tupelo.batteries import gather
    >>> space.put_all(("result", number, number / 2) for number in range(3))
    3
    >>> rows = gather(space, "result", int, float, n=3, timeout=60, progress="simulating")
    >>> sum(half for _, _, half in rows)
    1.5
    """
    return run(
        core.gather(AtOnce(space), *template, n=n, timeout=timeout, progress=progress, **fields)
    )
