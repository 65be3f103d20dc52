"""A space that is kept in a file, for the tasks of an event loop: its verbs wait for the disk.

The loop does not wait: see `tupelo.aio.disk`. A class of its own, so that other spaces do not pay.
"""

from __future__ import annotations

from tupelo import _native
from tupelo.aio.disk import Disk, settling
from tupelo.aio.space import Space
from tupelo.aio.waiting import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

__all__ = ["FiledSpace"]

SETTLING = (
    "discard", "move_to", "put", "put_all", "put_if_absent", "requeue", "swap", "take", "take_all",
    "take_many", "try_swap", "try_take",
)  # fmt: skip
"""The verbs that change this space by themselves."""


class FiledSpace(Space):
    """A connection to a space that is kept in a file."""

    def __init__(self, space: _native.Space) -> None:
        """Wrap a synchronous connection."""
        at_once = _native.at_once(space)
        if at_once is None:
            message = f"{space.url} is kept in no file"
            raise ValueError(message)
        super().__init__(at_once)
        self._blocking = space
        self._waiting = Waiting(at_once, Disk(at_once, space.sync))

    @property
    def blocking(self) -> _native.Space:
        """As `Space.blocking`: its calls wait for the disk themselves."""
        return self._blocking

    @property
    def sync(self) -> _native.Sync | None:
        """As `Space.sync`."""
        return self._blocking.sync

    @property
    def _at_once(self) -> _native.Space:
        """What batteries use for what does not wait: their awaited calls wait for the disk."""
        return self._space

    async def consume(self, *template: Any, **options: Any) -> AsyncIterator[Any]:
        """As `Space.consume`."""
        async for taken in super().consume(*template, **options):
            await self._waiting.settled()
            yield taken


for _name in SETTLING:
    setattr(FiledSpace, _name, settling(getattr(Space, _name)))
FiledSpace.__module__, FiledSpace.__name__ = Space.__module__, Space.__name__
