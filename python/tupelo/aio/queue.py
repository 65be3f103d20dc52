"""Work for others, for asyncio: `Queue`."""

from __future__ import annotations

from typing import TypeVar

from tupelo.aio.claim import Claim
from tupelo.batteries.core import queue as core
from tupelo.batteries.core.queue import DeadItem, DeadItems, Delivery

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo import _native
    from tupelo.aio.space import Space
    from tupelo.batteries.timeouts import Deadline
    from tupelo.batteries.verbs import Held

__all__ = ["DeadItem", "DeadItems", "Delivery", "Queue"]

T = TypeVar("T")


class Queue(core.Queue[T]):
    """Items that workers get, each item once; see `tupelo.batteries.Queue`.

    >>> import asyncio
    >>> from tupelo import aio
    >>> from tupelo.aio.batteries import Queue
    >>> async def main():
    ...     async with aio.connect("mem://mailed") as space:
    ...         mail = Queue[str](space, "mail")
    ...         await mail.put("hello")
    ...         async with mail.get(timeout=5) as letter:
    ...             return letter
    >>> asyncio.run(main())
    'hello'
    """

    async def _claim_partly_queued(self, deadline: Deadline) -> _native.Claim[Any]:
        space: Space = self._space  # type: ignore[assignment] # of asyncio: see `awaited`
        place = self._place(self._any)
        return await space._waiting.queued(
            "claim", place, (self._any, deadline.left()), self._pick_up
        )

    async def _held(self, claim: _native.Claim[Any]) -> Held:
        async def claimed() -> _native.Claim[Any]:
            return claim

        space: Space = self._space  # type: ignore[assignment] # as above
        return await Claim(claimed(), space._waiting)
