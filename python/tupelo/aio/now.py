"""The verbs of an awaited space that do not wait: those of the synchronous space."""

from __future__ import annotations

from tupelo.aio import arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo import _native
    from tupelo._native import Explanation, Order, Sync
    from tupelo.aio.space import Space
    from tupelo.dead_letters import DeadLetter

__all__ = ["Now"]


class Now:
    """What `Space` has of verbs that do not wait."""

    _space: _native.Space

    async def try_take(
        self,
        *template: Any,
        order: Order = "fifo",
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> Any:
        """Take a match, or return None at once; see `tupelo.Space.try_take`."""
        return self._space.try_take(*template, order=order, sync=sync, where=where, **fields)

    async def try_read(
        self, *template: Any, order: Order = "fifo", where: str | None = None, **fields: Any
    ) -> Any:
        """Copy a match, or return None at once; see `tupelo.Space.try_read`."""
        return self._space.try_read(*template, order=order, where=where, **fields)

    async def discard(
        self,
        *template: Any,
        limit: int | None = None,
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> int:
        """Remove the matches of one moment; see `tupelo.Space.discard`."""
        return self._space.discard(*template, limit=limit, sync=sync, where=where, **fields)

    async def take_all(
        self,
        *template: Any,
        limit: int | None = None,
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> list[Any]:
        """Take the matches of one moment; see `tupelo.Space.take_all`."""
        return self._space.take_all(*template, limit=limit, sync=sync, where=where, **fields)

    async def read_all(
        self, *template: Any, limit: int | None = None, where: str | None = None, **fields: Any
    ) -> list[Any]:
        """Copy the matches of one moment; see `tupelo.Space.read_all`."""
        return self._space.read_all(*template, limit=limit, where=where, **fields)

    async def try_swap(
        self,
        *template: Any,
        to: Any,
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> Any:
        """Replace a match and return it, or return None at once; see `tupelo.Space.try_swap`."""
        return self._space.try_swap(*template, to=to, sync=sync, where=where, **fields)

    async def count(self, *template: Any, where: str | None = None, **fields: Any) -> int:
        """Count the matches of one moment; see `tupelo.Space.count`."""
        return self._space.count(*template, where=where, **fields)

    async def dead(
        self, *template: Any, where: str | None = None, **fields: Any
    ) -> list[DeadLetter[Any]]:
        """Return the matches whose last attempt has failed; see `tupelo.Space.dead`."""
        return self._space.dead(*template, where=where, **fields)

    async def requeue(
        self, *template: Any, sync: Sync | None = None, where: str | None = None, **fields: Any
    ) -> int:
        """Put the dead matches back; return how many; see `tupelo.Space.requeue`."""
        return self._space.requeue(*template, sync=sync, where=where, **fields)

    async def move_to(
        self,
        other: Space,
        /,
        *template: Any,
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> int:
        """Move all matches into another space; return how many; see `tupelo.Space.move_to`.

        The other one is a space of `tupelo.aio`, too.
        """

        def move(to: _native.Space) -> int:
            return self._space.move_to(to, *template, sync=sync, where=where, **fields)

        count, settled = arguments.beside("move_to", other, move)
        await settled(sync)
        return count

    async def copy_to(
        self,
        other: Space,
        /,
        *template: Any,
        sync: Sync | None = None,
        where: str | None = None,
        **fields: Any,
    ) -> int:
        """Copy all matches into another space; return how many; see `tupelo.Space.copy_to`.

        The other one is a space of `tupelo.aio`, too.
        """

        def copy(to: _native.Space) -> int:
            return self._space.copy_to(to, *template, sync=sync, where=where, **fields)

        count, settled = arguments.beside("copy_to", other, copy)
        await settled(sync)
        return count

    async def stat(self) -> dict[str, Any]:
        """Return the figures of the space; see `tupelo.Space.stat`."""
        return self._space.stat()

    async def explain(self, *template: Any, where: str | None = None, **fields: Any) -> Explanation:
        """Return why nothing matches; see `tupelo.Space.explain`."""
        return self._space.explain(*template, where=where, **fields)
