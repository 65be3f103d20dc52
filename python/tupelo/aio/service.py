"""Asking and answering, for asyncio: a service whose requests are answered in tasks."""

from __future__ import annotations

import asyncio

from tupelo.batteries.core import service as core
from tupelo.batteries.core.runs import LOOK_S
from tupelo.batteries.core.service import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Claim, Template
    from tupelo.aio.space import Space

__all__ = ["Service", "call"]


class Service(core.Service):
    """Answers the requests under a name; see `tupelo.batteries.Service`.

    The handler may be a coroutine function. A plain function holds the event loop up.

    >>> from tupelo import aio
    >>> from tupelo.aio.batteries import Service, call
    >>> async def main():
    ...     async with aio.connect("mem://asked") as space:
    ...         service = Service(space, "square", lambda number: number * number, concurrency=2)
    ...         running = asyncio.create_task(service.run())
    ...         answer = await call(space, "square", 7, timeout=60)
    ...         await service.stop()
    ...         await running
    ...         return answer
    >>> asyncio.run(main())
    49
    """

    async def run(self) -> None:
        """Answer until `stop` is called, or something is raised: then requests are given back."""
        with self.runs.begun() as begun:
            tasks = [asyncio.create_task(self.serve(begun)) for _ in range(self.concurrency)]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _claim_partly(self, work: Template[Any]) -> Claim[Any]:
        space: Space = self._space  # type: ignore[assignment] # of asyncio: see `awaited`
        return await space._claim_partly(work, ttl=self._ttl_s, timeout=LOOK_S)

    async def stop(self) -> None:
        """End `run`, of this object alone, when all is answered that was begun.

        Called before the first `run`, it ends that run as soon as it begins. Called later, it does
        nothing if nothing runs.
        """
        await self.runs.stop()
