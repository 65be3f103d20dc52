"""The lease of a tuple that was put on terms (rules L1 to L4), to be awaited."""

from __future__ import annotations

from contextlib import asynccontextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import NoReturn

    from tupelo import _native
    from tupelo._native import Seconds, Sync
    from tupelo.aio.waiting import Waiting

__all__ = ["Lease"]


class Lease:
    """The time that the space keeps a tuple. The tuple stays when this is forgotten.

    Made by `put` with `lease=` or `after=`.
    """

    def __init__(self, lease: _native.Lease, waiting: Waiting) -> None:
        """Wrap the synchronous lease; `waiting` is how its changes wait for the disk."""
        self._lease = lease
        self._waiting = waiting

    @property
    def expires_in_s(self) -> float | None:
        """How long the tuple will stay, in seconds; None for ever.

        Raises:
            LeaseExpired: it is not there any more.
        """
        return self._lease.expires_in_s

    async def renew(self, seconds: Seconds | None = None, *, sync: Sync | None = None) -> None:
        """Let the tuple stay for so many seconds from now; by default for as long as at first.

        `sync` is as for `put`.

        Raises:
            LeaseExpired: the lease has ended, or the tuple was taken.
        """
        self._waiting.require_sync(sync)
        self._lease.renew(seconds)
        await self._waiting.settled(sync)

    async def cancel(self, *, sync: Sync | None = None) -> None:
        """Remove the tuple (rule L2); `sync` is as for `put`.

        Raises:
            LeaseExpired: the tuple is gone; or another process or task holds it, and nothing has
                changed.
        """
        self._waiting.require_sync(sync)
        self._lease.cancel()
        await self._waiting.settled(sync)

    @asynccontextmanager
    async def keep_alive(self) -> AsyncIterator[None]:
        """Renew the lease as long as the block runs, whatever the event loop is busy with.

        Raises:
            LeaseExpired: at the begin of the block: the lease has ended already, or the tuple was
                taken. At its end: that happened meanwhile. If the block raised something else, or
                was cancelled, that goes on, and a note says so. A block that cancels the lease has
                not lost it.
            ValueError: at the begin of the block: the lease never ends.
        """
        with self._lease.keep_alive():
            yield

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        message = "a lease stays with the process that made it: renew and cancel it here"
        raise TypeError(message)

    def __repr__(self) -> str:
        """Show how long is left."""
        return repr(self._lease)
