"""`worker` for asyncio: a function that others call, and that processes of their own compute."""

from __future__ import annotations

import asyncio
import functools
from typing import Any, Generic, ParamSpec, TypeVar, cast

from tupelo.aio.answers import answer
from tupelo.aio.space import Space
from tupelo.batteries.core.remote import Address, Terms
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from tupelo._native import Seconds
    from tupelo.tasks.mailbox import TaskFuture

__all__ = ["RemoteFunction", "worker"]

P = ParamSpec("P")
R = TypeVar("R")


@suggests
def worker(
    url: str | None = None,
    *,
    retries: int = 0,
    ttl: Seconds = 30,
    timeout: Seconds | None = None,
    concurrency: int = 1,
    objects: Literal["strict", "pickle"] | None = None,
    ignore_result: bool = False,
    result_ttl: Seconds | None = 3600,
) -> Callable[[Callable[P, R]], RemoteFunction[P, R]]:
    """Have a function computed by worker processes; see `tupelo.batteries.worker`.

    >>> from tupelo.aio.batteries import worker
    >>> @worker("shm://film", retries=3)
    ... def render(frame: int) -> str:
    ...     return f"frame {frame}"
    >>> render(7)
    'frame 7'
    """
    terms = Terms.checked(
        retries=retries,
        ttl=ttl,
        timeout=timeout,
        concurrency=concurrency,
        objects=objects,
        ignore_result=ignore_result,
        result_ttl=result_ttl,
    )

    def decorate(function: Callable[P, R]) -> RemoteFunction[P, R]:
        return RemoteFunction(function, Address(url, function, terms))

    return decorate


class RemoteFunction(Generic[P, R]):
    """A function with a queue of its own. Made by `worker`."""

    def __init__(self, function: Callable[P, R], address: Address) -> None:
        """Take the place of the function."""
        functools.update_wrapper(self, function)
        self._function = function
        self.address = address
        """The queue of its tasks, and their terms."""
        self._connected: Space | None = None

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Call the function here."""
        return self._function(*arguments, **keywords)

    def __repr__(self) -> str:
        """Show its name, and where it is served."""
        return f"<worker {self.address.queue} in {self.address.url}>"

    async def submit(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Call the function where `tupelo worker` serves it; return its result.

        Cancelling withdraws a task that no worker has begun.

        Raises:
            NotEncodable: an argument cannot be stored.
            RemoteError: the task has failed; or the space has dropped it.
            SpaceFull: there is no room for the task.
            ValueError: the space is a `mem://` one, which no worker sees.
        """

        def put() -> TaskFuture:
            return self.address.submit(arguments, keywords, timeout_s=0)

        return cast("R", await answer(await self._space()._waiting.with_room(put, None)))

    def _space(self) -> Space:
        """Return the connection by which this process puts tasks, for calls that wait for room."""
        connection = self.address.connection()
        if self._connected is None or self._connected.blocking is not connection:
            self._connected = Space(connection)
        return self._connected

    async def dead(self) -> list[dict[str, Any]]:
        """Return the tasks that have failed, the oldest first, and leave them where they are."""
        return self.address.dead()

    async def retry(self) -> list[asyncio.Future[R]]:
        """Have all tasks that have failed done again; return their futures.

        It waits for room as `Space.put` does. If there is not enough room for all, the tasks
        without room stay in `dead`. If it is cancelled, the tasks that it has put already are done
        all the same.

        Raises:
            SpaceFull: there is no room for a single one. All are still in `dead`.
        """
        futures = await self.address.retry(self._space())
        return [asyncio.wrap_future(cast("Any", future)) for future in futures]
