"""Waiting for the answer to a task that a worker does."""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Any

__all__ = ["answer"]


async def answer(future: Future[Any]) -> Any:
    """Return the result of a task, or raise its error; a cancelled wait withdraws the task."""
    try:
        return await asyncio.wrap_future(future)
    except BaseException:
        # Not left to the loop, which may be at its end. Of a task that is done this is nothing.
        future.cancel()
        raise
