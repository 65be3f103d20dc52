"""The call that gives a delivery: to be awaited, or to be entered as a block at once.

As a claim of `tupelo.aio` it is a coroutine, so that tasks can be made of it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from tupelo.batteries.core.queue import Delivery

__all__ = ["Getting"]

T = TypeVar("T")


class Getting(Coroutine[Any, Any, "Delivery[T]"], Generic[T]):
    """A call of `Queue.get`. Awaited it gives the delivery, which `async with` can enter as well.

    As an asynchronous context manager it gets an item and behaves as the delivery does. It gives
    the item, and completes the delivery at the end of the block. If the block raises, the item goes
    back.
    """

    def __init__(self, get: Coroutine[Any, Any, Delivery[T]]) -> None:
        """Wrap the coroutine that gets."""
        self._get = get
        self._delivery: Delivery[T] | None = None

    async def __aenter__(self) -> T:
        """Get the next item; return it."""
        self._delivery = await self._get
        return await self._delivery.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Be done with the item, unless the block was; give it back if the block raised."""
        if self._delivery is not None:
            await self._delivery.__aexit__(kind, exception, traceback)

    # What makes it a coroutine.

    def __await__(self) -> Generator[Any, Any, Delivery[T]]:
        """Get the next item."""
        return self._get.__await__()

    def send(self, value: Any, /) -> Any:
        """Go on, as the coroutine that gets."""
        return self._get.send(value)

    def throw(self, *exception: Any) -> Any:
        """Raise an exception in the coroutine that gets."""
        return self._get.throw(*exception)

    def close(self) -> None:
        """End the coroutine that gets."""
        self._get.close()

    def __repr__(self) -> str:
        """Show the delivery, once there is one."""
        return "<Delivery, not begun>" if self._delivery is None else repr(self._delivery)
