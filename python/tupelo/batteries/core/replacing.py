"""One tuple that many processes change: it is replaced if it is unchanged since it was read.

A transaction may hold the tuple if a program uses the documented tuples of a battery by hand. Then
no other change is faster, and nothing changes until the transaction ends. The call waits for that a
moment at a time, so it keeps neither a processor nor an event loop busy.
"""

from __future__ import annotations

from contextlib import suppress

from tupelo.errors import Timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Seconds
    from tupelo.batteries.verbs import Verbs

__all__ = ["put_first", "replaced"]

MOMENT_S = 0.1
"""How long a tuple is waited for before all is looked at again: it may be gone for good by then."""


async def replaced(space: Verbs, *known: Any, to: tuple[Any, ...]) -> bool:
    """Replace the tuple that was read; return False if it has changed, or has not been let go."""
    if await space.try_swap(*known, to=to) is not None:
        return True
    if await space.try_read(*known) is not None:
        with suppress(Timeout):
            await space.swap(*known, to=to, timeout=MOMENT_S)
            return True
    return False


async def put_first(
    space: Verbs, *first: Any, unless: tuple[Any, ...], timeout: Seconds | None = None
) -> bool:
    """Put the first tuple of its kind; return False if there is one, to be read by now perhaps.

    `timeout` is for room, in a full space.
    """
    if await space.put_if_absent(*first, unless=unless, timeout=timeout):
        return True
    with suppress(Timeout):
        await space.read(*unless, timeout=MOMENT_S)
    return False
