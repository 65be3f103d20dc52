"""A claim of a task: a tuple that is held until the task completes or aborts it (rules K1 to K4).

One object is the call and its result: you await it, or enter it as a block. The call is a
coroutine, like that of any verb, so you can make tasks of it.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType
    from typing import NoReturn, Self

    from tupelo import _native
    from tupelo._native import Seconds, Sync
    from tupelo.aio.waiting import Waiting

__all__ = ["Claim"]

T = TypeVar("T")


class Claim(Coroutine[Any, Any, "Claim[T]"], Generic[T]):
    """A tuple in the hands of this process, until it is done with or goes back to the space.

    Made by `Space.claim`. Awaited, it claims, and returns itself. As an asynchronous context
    manager it claims, unless it has already, and gives the tuple. It renews itself as long as the
    block runs, whatever the event loop is busy with. The end of the block completes the claim; an
    exception or a cancellation aborts it. A forgotten claim is aborted.
    """

    def __init__(
        self,
        begin: Coroutine[Any, Any, _native.Claim[T]],
        waiting: Waiting,
        sync: Sync | None = None,
    ) -> None:
        """Wrap a call that claims; `waiting` is how its end waits, for room and for the disk."""
        self._begin = begin
        self._waiting = waiting
        self._sync = sync
        self._begun: _native.Claim[T] | None = None

    @property
    def _held(self) -> _native.Claim[T]:
        if self._begun is None:
            message = (
                "nothing was claimed yet: await the claim first, or enter it with `async with`"
            )
            raise RuntimeError(message)
        return self._begun

    @property
    def blocking(self) -> _native.Claim[T]:
        """The same claim, whose verbs are not awaited: none of them waits."""
        return self._held

    @property
    def tuple(self) -> T:
        """The tuple."""
        return self._held.tuple

    @property
    def fence(self) -> int:
        """The number of the claim, greater than that of every earlier one (rule K1)."""
        return self._held.fence

    @property
    def attempt(self) -> int:
        """Which attempt at the tuple this is; the first is 1."""
        return self._held.attempt

    @property
    def settled(self) -> bool:
        """Whether it was done or aborted here. A claim that was lost is found out at its end."""
        return self._held.settled

    async def done(self, *, timeout: Seconds | None = None, sync: Sync | None = None) -> None:
        """Consume the tuple; the puts under the claim appear at the same moment (K2, K4).

        It waits for room for that as `put` does; `sync` is as for `put`.
        """
        held = self._held
        self._waiting.require_sync(sync)
        await self._waiting.with_room(lambda: held.done(timeout=0), timeout)
        await self._waiting.settled(sync or self._sync)

    async def abort(self, reason: str | None = None, *, sync: Sync | None = None) -> None:
        """Put the tuple back at its old place; the puts under the claim are discarded (K2).

        `sync` is as for `put`.
        """
        self._waiting.require_sync(sync)
        self._held.abort(reason)
        await self._waiting.settled(sync or self._sync)

    async def extend(self, ttl: Seconds | None = None) -> None:
        """Let the claim run for `ttl` seconds from now; by default for as long as at first."""
        self._held.extend(ttl)

    async def put(
        self, *fields: Any, lease: Seconds | None = None, after: Seconds | None = None
    ) -> None:
        """Add a tuple at the moment when the claim is done, or never (rule K4).

        `lease` and `after` count from that moment, as `tupelo.Claim.put` has it.
        """
        self._held.put(*fields, lease=lease, after=after)

    async def __aenter__(self) -> T:
        """Claim, and begin to renew the claim; return the tuple."""
        if self._begun is None:
            await self
        return self._held.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """End the claim, unless the block did: done, or aborted if it raised."""
        held = self._held
        if exception is None and not held.settled:
            try:
                await self.done()
            except BaseException as failure:
                # No caller is left to try again: the tuple goes back, with the raised error as the
                # reason.
                held.__exit__(type(failure), failure, failure.__traceback__)
                raise
        held.__exit__(kind, exception, traceback)
        await self._waiting.settled(self._sync)

    # What makes it a coroutine.

    def __await__(self) -> Generator[Any, Any, Self]:
        """Claim, and return this."""
        self._begun = yield from self._begin.__await__()
        return self

    def send(self, value: Any, /) -> Any:
        """Go on, as the coroutine that claims."""
        try:
            return self._begin.send(value)
        except StopIteration as end:
            self._begun = end.value
            raise StopIteration(self) from None

    def throw(self, *exception: Any) -> Any:
        """Raise an exception in the coroutine that claims."""
        try:
            return self._begin.throw(*exception)
        except StopIteration as end:
            self._begun = end.value
            raise StopIteration(self) from None

    def close(self) -> None:
        """End the coroutine that claims."""
        self._begin.close()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        message = (
            "a claim stays with the process that made it: send its tuple, or claim in the other"
            " process"
        )
        raise TypeError(message)

    def __repr__(self) -> str:
        """Show the tuple, the attempt and the fence."""
        return "<aio.Claim, not begun>" if self._begun is None else f"<aio.{repr(self._begun)[1:]}"
