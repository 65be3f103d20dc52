"""One logic, two faces: the verbs that batteries are written in.

A battery is written once, as `async def` over `Verbs`: the verbs of a space, to be awaited. For
asyncio they are those of `tupelo.aio.Space`, and the battery is used as it is. A blocking program
has the same battery over `AtOnce`, whose verbs block and have their result by the time they are
awaited: `run` then drives a coroutine to its end without a loop, as one call.

Verbs that do not wait are the same for both faces. They are too fast to deserve a detour:
`blocking` of a face is the connection itself, and `blocking` of a claim the claim itself.

Rejected: blocking code that is translated, or a loop in a thread behind the blocking face, which
costs two changes of thread for each call.
"""

from __future__ import annotations

from typing import TypeVar

from tupelo import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterable
    from types import TracebackType
    from typing import Any, Protocol

    from tupelo._native import Order, Seconds, Space
    from tupelo.dead_letters import DeadLetter

    class Held(Protocol):
        """A claim: of `tupelo.aio`, or `HeldAtOnce`."""

        @property
        def blocking(self) -> _native.Claim[Any]: ...
        @property
        def tuple(self) -> Any: ...
        @property
        def fence(self) -> int: ...
        @property
        def attempt(self) -> int: ...
        async def done(self, *, timeout: Seconds | None = None) -> None: ...
        async def abort(self, reason: str | None = None) -> None: ...
        async def extend(self, ttl: Seconds | None = None) -> None: ...
        async def put(self, *fields: Any) -> None: ...
        async def __aenter__(self) -> Any: ...
        async def __aexit__(
            self,
            kind: type[BaseException] | None,
            exception: BaseException | None,
            traceback: TracebackType | None,
            /,
        ) -> None: ...

    class Verbs(Protocol):
        """The verbs that batteries are made of: of `tupelo.aio.Space`, or `AtOnce`."""

        @property
        def blocking(self) -> Space: ...
        @property
        def url(self) -> str: ...
        async def put(
            self,
            *fields: Any,
            lease: Seconds | None = None,
            after: Seconds | None = None,
            timeout: Seconds | None = None,
        ) -> object: ...
        async def put_all(
            self, tuples: Iterable[tuple[Any, ...]], /, *, timeout: Seconds | None = None
        ) -> int: ...
        async def put_if_absent(
            self, *fields: Any, unless: tuple[Any, ...], timeout: Seconds | None = None
        ) -> object: ...
        async def take(
            self, *template: Any, timeout: Seconds | None = None, order: Order = "fifo"
        ) -> tuple[Any, ...]: ...
        async def read(
            self, *template: Any, timeout: Seconds | None = None, order: Order = "fifo"
        ) -> tuple[Any, ...]: ...
        async def try_take(
            self, *template: Any, order: Order = "fifo"
        ) -> tuple[Any, ...] | None: ...
        async def try_read(
            self, *template: Any, order: Order = "fifo"
        ) -> tuple[Any, ...] | None: ...
        async def take_all(self, *template: Any, limit: int | None = None) -> list[Any]: ...
        async def take_many(
            self,
            *template: Any,
            n: int,
            at_least: int | None = None,
            timeout: Seconds | None = None,
        ) -> list[Any]: ...
        async def swap(
            self, *template: Any, to: tuple[Any, ...], timeout: Seconds | None = None
        ) -> tuple[Any, ...]: ...
        async def try_swap(self, *template: Any, to: tuple[Any, ...]) -> tuple[Any, ...] | None: ...
        async def try_claim(
            self, *template: Any, ttl: Seconds = 30, max_attempts: int | None = None
        ) -> Held | None: ...
        def claim(
            self,
            *template: Any,
            ttl: Seconds = 30,
            timeout: Seconds | None = None,
            max_attempts: int | None = None,
            order: Order = "fifo",
        ) -> Awaitable[Held]: ...
        async def dead(self, *template: Any) -> list[DeadLetter[Any]]: ...
        async def requeue(self, *template: Any) -> int: ...
        async def count(self, *template: Any) -> int: ...
        async def wait_none(self, *template: Any, timeout: Seconds | None = None) -> None: ...


__all__ = ["AtOnce", "HeldAtOnce", "awaited", "run"]

R = TypeVar("R")


def run(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine over `AtOnce` to its end; return its result, or raise its exception."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    coroutine.close()
    message = "this coroutine waits for an event loop: it awaits something else than a space"
    raise RuntimeError(message)


def awaited(space: Any) -> Verbs:
    """Return the space that a battery for asyncio is given, after a check of its type.

    Raises:
        TypeError: it is a blocking space, or none at all.
    """
    if isinstance(space, AtOnce):
        return space
    if isinstance(space, _native.Space):
        message = (
            f"{space!r} blocks: give a space of tupelo.aio.connect, or use the battery of "
            "the same name in tupelo.batteries"
        )
        raise TypeError(message)
    if not hasattr(space, "try_swap"):
        message = f"space has the type {type(space).__name__}: give one of tupelo.aio.connect"
        raise TypeError(message)
    verbs: Verbs = space
    return verbs


class HeldAtOnce:
    """A blocking claim as one whose verbs are awaited."""

    __slots__ = ("_claim", "attempt", "blocking", "fence", "tuple")

    def __init__(self, claim: _native.Claim[Any]) -> None:
        """Wrap a claim."""
        self._claim = self.blocking = claim
        self.tuple: Any = claim.tuple
        self.fence = claim.fence
        self.attempt = claim.attempt

    async def done(self, *, timeout: Seconds | None = None) -> None:
        """Consume the tuple; wait for room for the puts under the claim, as `put` does."""
        self._claim.done(timeout=timeout)

    async def abort(self, reason: str | None = None) -> None:
        """Put the tuple back."""
        self._claim.abort() if reason is None else self._claim.abort(reason)

    async def extend(self, ttl: Seconds | None = None) -> None:
        """Let the claim run for `ttl` seconds from now."""
        self._claim.extend(ttl)

    async def put(self, *fields: Any) -> None:
        """Add a tuple at the moment when the claim is done."""
        self._claim.put(*fields)

    async def __aenter__(self) -> Any:
        """Begin to renew the claim."""
        return self._claim.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """End the claim."""
        self._claim.__exit__(kind, exception, traceback)


class AtOnce:
    """A blocking space whose verbs can be awaited: they have happened when they return."""

    __slots__ = ("_space", "blocking")

    def __init__(self, space: Space) -> None:
        """Wrap a blocking space.

        Raises:
            TypeError: it is none.
        """
        if not isinstance(space, _native.Space):
            kind = type(space).__name__
            message = f"space has the type {kind}: give one of tupelo.connect"
            if type(space).__module__.startswith("tupelo.aio"):
                message = (
                    f"{space!r} is awaited: give a space of tupelo.connect, or use the battery of "
                    "the same name in tupelo.aio.batteries"
                )
            raise TypeError(message)
        self._space = self.blocking = space

    @property
    def url(self) -> str:
        """Where the space is."""
        return self._space.url

    async def put(
        self,
        *fields: Any,
        lease: Seconds | None = None,
        after: Seconds | None = None,
        timeout: Seconds | None = None,
    ) -> object:
        """Store a tuple; return its lease if it is put on terms. With a timeout, wait for room."""
        return self._space.put(*fields, lease=lease, after=after, timeout=timeout)

    async def put_all(
        self, tuples: Iterable[tuple[Any, ...]], /, *, timeout: Seconds | None = None
    ) -> int:
        """Store all tuples together, or none. With a timeout, wait for room."""
        return self._space.put_all(tuples, timeout=timeout)

    async def put_if_absent(
        self, *fields: Any, unless: tuple[Any, ...], timeout: Seconds | None = None
    ) -> bool:
        """Store a tuple unless something matches `unless`; return whether it did."""
        return self._space.put_if_absent(*fields, unless=unless, timeout=timeout)

    async def take(
        self, *template: Any, timeout: Seconds | None = None, order: Order = "fifo"
    ) -> tuple[Any, ...]:
        """Take a match, waiting for one."""
        taken: tuple[Any, ...] = self._space.take(*template, timeout=timeout, order=order)
        return taken

    async def read(
        self, *template: Any, timeout: Seconds | None = None, order: Order = "fifo"
    ) -> tuple[Any, ...]:
        """Copy a match, waiting for one."""
        found: tuple[Any, ...] = self._space.read(*template, timeout=timeout, order=order)
        return found

    async def try_take(self, *template: Any, order: Order = "fifo") -> tuple[Any, ...] | None:
        """Take a match, or return None at once."""
        taken: tuple[Any, ...] | None = self._space.try_take(*template, order=order)
        return taken

    async def try_read(self, *template: Any, order: Order = "fifo") -> tuple[Any, ...] | None:
        """Copy a match, or return None at once."""
        found: tuple[Any, ...] | None = self._space.try_read(*template, order=order)
        return found

    async def take_all(self, *template: Any, limit: int | None = None) -> list[Any]:
        """Take the matches of one moment."""
        return self._space.take_all(*template, limit=limit)

    async def take_many(
        self,
        *template: Any,
        n: int,
        at_least: int | None = None,
        timeout: Seconds | None = None,
    ) -> list[Any]:
        """Take `n` matches together, or at least `at_least`, waiting for them."""
        return self._space.take_many(*template, n=n, at_least=at_least, timeout=timeout)

    async def swap(
        self, *template: Any, to: tuple[Any, ...], timeout: Seconds | None = None
    ) -> tuple[Any, ...]:
        """Replace a match and return it, waiting for one."""
        swapped: tuple[Any, ...] = self._space.swap(*template, to=to, timeout=timeout)
        return swapped

    async def try_swap(self, *template: Any, to: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Replace a match and return it, or return None at once."""
        swapped: tuple[Any, ...] | None = self._space.try_swap(*template, to=to)
        return swapped

    async def count(self, *template: Any) -> int:
        """Count the matches of one moment."""
        return self._space.count(*template)

    async def wait_none(self, *template: Any, timeout: Seconds | None = None) -> None:
        """Wait until nothing matches, and no claim holds a match."""
        self._space.wait_none(*template, timeout=timeout)

    async def try_claim(
        self, *template: Any, ttl: Seconds = 30, max_attempts: int | None = None
    ) -> HeldAtOnce | None:
        """Claim a match, or return None at once."""
        claim = self._space.try_claim(*template, ttl=ttl, max_attempts=max_attempts)
        if claim is None:
            return None
        try:
            return HeldAtOnce(claim)
        except BaseException:
            claim.abort()  # as in `claim`
            raise

    async def claim(
        self,
        *template: Any,
        ttl: Seconds = 30,
        timeout: Seconds | None = None,
        max_attempts: int | None = None,
        order: Order = "fifo",
    ) -> HeldAtOnce:
        """Claim a match, waiting for one."""
        claim = self._space.claim(
            *template, ttl=ttl, timeout=timeout, max_attempts=max_attempts, order=order
        )
        try:
            return HeldAtOnce(claim)
        except BaseException:
            # Ctrl-C: back now, and not when the traceback is forgotten, whose frames know it.
            claim.abort()
            raise

    async def dead(self, *template: Any) -> list[DeadLetter[Any]]:
        """List the matches whose last attempt has failed."""
        return self._space.dead(*template)

    async def requeue(self, *template: Any) -> int:
        """Put the dead matches back; return how many."""
        return self._space.requeue(*template)
