"""Work for others: `Queue`, with priorities, delays, a bound, and dead letters.

An item is a tuple that its worker claims. The claim makes the queue safe. The item comes back if
its worker fails, dies or is stopped. Puts that belong to the end of the work appear at the same
moment as the claim ends.

The tuples:

* `("tupelo.queue", name, room, [item])`: an item of priority 0, in a list of its own.
* `("tupelo.queue", name, room, priority, [item])`: an item of priority 1 to 9.
* `("tupelo.queue.size", name, maxsize)`: the bound, if there is one; 0 while it is being made.
* `("tupelo.queue.room", name)`: room for one more item, if there is a bound. A put swaps such a
  tuple for the item, and sets `room` of the item to 1. The end of the work on such an item puts a
  room tuple under its claim. An item whose `room` is 0 took no room, and gives none.

Items stand in lists so that all have the same shape. A space keeps FIFO order among the tuples of
one shape (T2), and items may be of any kind. Urgent items have a shape of their own, so a queue
without them pays one look that finds nothing. Each priority is then asked for by value, which an
index answers. `order=F.max(…)` looks at every item that waits: 65 us among 1 000 items, where nine
looks are 5 us.
"""

from __future__ import annotations

import threading
from typing import Generic, NamedTuple, TypedDict, TypeVar

from tupelo import _native
from tupelo.batteries import checks
from tupelo.batteries.core.getting import Getting
from tupelo.batteries.core.lasting import begun_anew
from tupelo.batteries.timeouts import Deadline, timed_out
from tupelo.batteries.verbs import HeldAtOnce, awaited
from tupelo.errors import (
    NotEncodable,
    SchemaMismatch,
    SpaceFull,
    Timeout,
    TupeloError,
)
from tupelo.suggesting import suggests
from tupelo.tasks.failures import is_of_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType
    from typing import Any

    from tupelo._native import Claim, Seconds, Space
    from tupelo.batteries.verbs import Held, Verbs

__all__ = ["DeadItem", "DeadItems", "Delivery", "Queue"]

T = TypeVar("T")

QUEUE = "tupelo.queue"
SIZE = "tupelo.queue.size"
ROOM = "tupelo.queue.room"
STATES = (SIZE, ROOM)
"""Tags of tuples that stay for later users: `tupelo check` does not ask who took them."""

PRIORITY_MAX = 9
"""Each priority that is in use costs a look, as long as there are urgent items."""

MAXSIZE_MAX = 500_000
"""Room is made of tuples, which appear in one step: it has no room for a million."""

ATTEMPTS_MAX = (1 << 32) - 1

MOST_URGENT = _native.FieldProxy().max(3)


class Terms(TypedDict):
    """Of all claims of a queue."""

    ttl: float
    max_attempts: int | None


class DeadItem(NamedTuple, Generic[T]):
    """An item whose attempts have all failed."""

    item: T
    attempts: int
    """How many failed."""
    error: str
    """Why the last one failed."""


class Work(Generic[T]):
    """The common part of a delivery on both faces: only its end may wait, for room for its puts."""

    __slots__ = ("_claim", "_room", "item")

    def __init__(self, claim: Claim[Any]) -> None:
        """Note the claim."""
        fields = claim.tuple
        self._claim = claim
        self._room: int = fields[2]
        self.item: T = fields[-1][0]
        """The item."""

    def __repr__(self) -> str:
        """Show the item and the attempt."""
        return f"<Delivery {self.item!r}, attempt {self.attempt}>"

    @property
    def attempt(self) -> int:
        """Which attempt at the item this is; the first is 1."""
        return self._claim.attempt

    def _abort(self, reason: str | None) -> None:
        try:
            self._claim.abort() if reason is None else self._claim.abort(reason)
        finally:
            if self._claim.settled:  # else it was refused, and the item has its room still
                self._room = 0

    def _put(self, *fields: Any) -> None:
        self._claim.put(*fields)

    def _make_room(self) -> None:
        """Give the room of the item back with the end of the claim, if it took any."""
        if self._room:
            self._claim.put(ROOM, self._claim.tuple[1])
            self._room = 0  # not before: an interruption leaves it to be given


class Delivery(Work[T]):
    """An item in the hands of its worker; see `tupelo.batteries.Delivery`."""

    __slots__ = ("_held",)

    def __init__(self, held: Held) -> None:
        """Note the claim."""
        super().__init__(held.blocking)
        self._held = held

    async def done(self) -> None:
        """Be done with the item: it is gone."""
        self._make_room()
        await self._held.done()

    async def abort(self, reason: str | None = None) -> None:
        """Give the item back to its place."""
        try:
            await (self._held.abort() if reason is None else self._held.abort(reason))
        finally:
            if self._claim.settled:  # else it was refused, and the item has its room still
                self._room = 0

    async def put(self, *fields: Any) -> None:
        """Add a tuple to the space at the moment when the item is done, or never."""
        self._put(*fields)

    async def __aenter__(self) -> T:
        """Begin to renew the claim; return the item."""
        await self._held.__aenter__()
        return self.item

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Be done with the item, unless the block was; give it back if the block raised."""
        if self._room and exception is None:
            try:
                self._make_room()
            except BaseException as error:
                await self._held.__aexit__(type(error), error, error.__traceback__)
                raise
        await self._held.__aexit__(kind, exception, traceback)


class Queue(Generic[T]):
    """Items that workers get, each item once; see `tupelo.batteries.Queue`."""

    @suggests
    def __init__(
        self,
        space: Verbs,
        name: str,
        *,
        maxsize: int | None = None,
        max_attempts: int | None = None,
        ttl: Seconds = 30,
    ) -> None:
        """Make an object of the queue; nothing happens in the space."""
        self._space = awaited(space)
        # In a file the awaited ends wait for the disk, and not what is done at once.
        self._now: Space = getattr(self._space, "_at_once", self._space.blocking)
        self.name = checks.text("name", name)
        self.maxsize = None
        if maxsize is not None:
            self.maxsize = checks.number_of("maxsize", maxsize, MAXSIZE_MAX)
        if max_attempts is not None:
            max_attempts = checks.number_of("max_attempts", max_attempts, ATTEMPTS_MAX)
        self._terms: Terms = {"ttl": checks.time_to_live(ttl), "max_attempts": max_attempts}
        self._room_in: Space | None = None
        """The connection to the space that has the room, as far as is known here."""
        some = (QUEUE, self.name, int, list)
        priorities = range(PRIORITY_MAX, 0, -1)
        self._by_urgency = (*((QUEUE, self.name, int, each, list) for each in priorities), some)
        self._any = _native.like(*some) | _native.like(QUEUE, self.name, int, int, list)
        self.dead: DeadItems[T] = DeadItems(self._space, self._any)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return f"<Queue {self.name!r} in {self._space.url}>"

    async def put(
        self,
        item: T,
        *,
        priority: int = 0,
        after: Seconds | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """Add an item; if there is a bound, wait for room."""
        if self.maxsize is None or after is not None:
            free = self._item(item, priority, room=0)
            await self._space.put(*free, after=after, timeout=timeout)
            return
        maxsize, deadline = self.maxsize, Deadline(timeout)
        bounded = self._item(item, priority, room=1)

        async def put_in(space: Verbs) -> None:
            if self._room_in is not space.blocking:
                await self._provide_room(space, maxsize, deadline)
            await self._put_bounded(space, bounded, deadline)

        try:
            await begun_anew(self._space, put_in)
        except Timeout:
            message = f"queue {self.name!r} had no room{deadline}, its maxsize is {self.maxsize}"
            raise timed_out(message, self._space.url) from None

    async def _put_bounded(
        self, space: Verbs, bounded: tuple[Any, ...], deadline: Deadline
    ) -> None:
        """Put an item in the place of room for one, waiting for that, and then for memory."""
        try:
            if await space.try_swap(ROOM, self.name, to=bounded) is None:
                await space.swap(ROOM, self.name, to=bounded, timeout=deadline.left())
        except SpaceFull as full:
            if not full.may_pass:
                raise
        else:
            return
        # A swap does not wait for memory. The end of a claim does, as a put (B1).
        held = await space.claim(ROOM, self.name, timeout=deadline.left())
        async with held:
            await held.put(*bounded)
            await held.done(timeout=deadline.left())

    def put_blocking(
        self, item: T, priority: int, after: Seconds | None, timeout: Seconds | None
    ) -> None:
        """Add an item, without a bound: `put` without a detour. For the blocking `Queue` alone.

        Args:
            item: the value to add.
            priority: how urgent it is, as for `put`.
            after: the delay in seconds until the item can be got, or None.
            timeout: longest wait for room in the space, in seconds, as for `Space.put`.

        Raises:
            SpaceFull: the space has no room for it. Nothing was added.
            NotEncodable: the item cannot be stored.
        """
        if priority == 0:  # as `_item`, without a tuple to be unpacked
            self._now.put(QUEUE, self.name, 0, [item], after=after, timeout=timeout)
            return
        self._now.put(*self._item(item, priority, room=0), after=after, timeout=timeout)

    def _item(self, item: T, priority: int, *, room: int) -> tuple[Any, ...]:
        """Return the tuple of an item."""
        if priority == 0:
            return (QUEUE, self.name, room, [item])
        level = checks.number_of("priority", priority, PRIORITY_MAX, at_least=0)
        return (QUEUE, self.name, room, level, [item])

    def get(self, timeout: Seconds | None = None) -> Getting[T]:
        """Claim the next item, waiting for one: to be awaited, or entered with `async with`."""
        return Getting(self._get(timeout))

    async def _get(self, timeout: Seconds | None) -> Delivery[T]:
        # First: a wrong time is refused, whether or not it is needed.
        deadline = Deadline(timeout)
        return await self.try_get() or Delivery(await self.claim(deadline))

    async def try_get(self) -> Delivery[T] | None:
        """Claim the next item, or return None at once."""
        claim = self.claim_now()
        return None if claim is None else Delivery(await self._held(claim))

    def claim_now(self) -> Claim[Any] | None:
        """Claim the next item that is due, if there is one: `try_get` without a detour.

        For the blocking `Queue` alone, as it is a claim of the native module: `try_get` gives a
        claim that can be awaited.

        Raises:
            Exception: why the next item cannot be read here. The item has had an attempt then.
        """
        while True:
            try:
                return self._claim_next()
            except Exception as error:
                is_of_space = isinstance(error, TupeloError)
                # Raised by the class of an item, or by what handles a signal: that is for others.
                # Signals are handled in the main thread.
                is_main = threading.current_thread() is threading.main_thread()
                if not is_of_space and is_main and self._can_read_all():
                    raise
                claim = self._claim_partly(error)
                if claim is not None:
                    return claim
                if not is_of_space:  # it cannot be claimed now, and would be met again
                    raise
                # Another worker has it by now, and is told: perhaps there are others behind it.

    def _can_read_all(self) -> bool:
        """Whether every possible next item can be read here, as far as the space tells."""
        try:
            for template in self._by_urgency:
                self._now.try_read(*template)
        except Exception as error:  # noqa: BLE001 - raised by what looks at it
            return not is_of_value(error)
        return True

    def _claim_next(self) -> Claim[Any] | None:
        """Claim the next item.

        Nearly always nothing is urgent. Then the call is written out: to unpack a template and
        terms makes put, claim and done together take an eighth longer.
        """
        now, terms = self._now, self._terms
        ttl, max_attempts = terms["ttl"], terms["max_attempts"]
        try:
            is_urgent = now.try_read(QUEUE, self.name, int, int, list) is not None
        except (NotEncodable, SchemaMismatch):
            # There is one, but perhaps none to be claimed: a transaction has read it, or it has a
            # priority that is none. To raise that here would have it met again and again.
            is_urgent = True
        if not is_urgent:
            return now.try_claim(QUEUE, self.name, int, list, ttl=ttl, max_attempts=max_attempts)
        for template in self._by_urgency:
            claim = now.try_claim(*template, ttl=ttl, max_attempts=max_attempts)
            if claim is not None:
                return claim
        return None

    async def claim(self, deadline: Deadline) -> Held:
        """Wait for an item, and claim it: what `get` awaits, and the blocking `Queue` runs.

        Raises:
            Timeout: there was none until the deadline.
            Exception: why the next item cannot be read here. The item has had an attempt then.
        """
        try:
            try:
                return await self._space.claim(
                    self._any,
                    timeout=deadline.left(),
                    order=MOST_URGENT,  # of the items that came since the look
                    **self._terms,
                )
            except (NotEncodable, SchemaMismatch) as error:
                # Another exception may be meant for the caller of the wait. If it is one of the
                # item's class, the next call meets that as well, and at once.
                claim = self._claim_partly(error)
                # Other waiting workers may hand it round: so this, too, is a wait.
                claim = claim or self._readable(await self._claim_partly_queued(deadline))
            return await self._held(claim)
        except Timeout:
            message = f"queue {self.name!r} had no item{deadline}"
            raise timed_out(message, self._space.url) from None

    def _claim_partly(self, error: Exception) -> Claim[Any] | None:
        """Claim the next item after this error: an unreadable item has had an attempt then.

        Else no worker would ever see the items behind it. Returns None if there is no item any
        more. Returns an item if another worker has the unreadable one by now.

        Raises:
            Exception: why the item cannot be read here; or the error, if it is of another kind.
        """
        if not is_of_value(error):
            raise error
        for template in self._by_urgency:
            place = self._place(_native.like(*template))
            try:
                claim = self._pick_up(place)
            finally:
                place.cancel()
            if claim is not None:
                return self._readable(claim)
        return None

    def _place(self, template: _native.Template[Any]) -> _native.Waiter:
        return _native.claimant(self._now, template, **self._terms)

    def _pick_up(self, place: _native.Waiter) -> Claim[Any] | None:
        """Claim the tuple that was handed over, if it can be read; None if nothing was."""
        return place.claim_now(**self._terms, partly=True)

    def _readable(self, claim: Claim[Any]) -> Claim[Any]:
        """Return the claim of an item that can be read; give back another one, and raise why."""
        item = claim.tuple[-1]
        if isinstance(item, Exception):  # it stands where the item could not
            with claim:
                raise item
        return claim

    async def _claim_partly_queued(self, deadline: Deadline) -> Claim[Any]:
        """Wait for an item, and claim it as far as it can be read; for `AtOnce`."""
        place = self._place(self._any)
        try:
            while (claim := self._pick_up(place)) is None:
                if not place.wait(deadline.left()) and not place.end_wait():
                    raise Timeout
        finally:
            place.cancel()
        return claim

    async def _held(self, claim: Claim[Any]) -> Held:
        """Return a claim as the claims that `Verbs` make; for `AtOnce`."""
        return HeldAtOnce(claim)

    async def waiting(self) -> int:
        """Return how many items wait: they are due, and no worker has them."""
        return await self._space.count(self._any)

    async def join(self, timeout: Seconds | None = None) -> None:
        """Wait until no item waits, and no worker has one."""
        deadline = Deadline(timeout)
        try:
            await self._space.wait_none(self._any, timeout=deadline.left())
        except Timeout:
            left = await self.waiting()
            message = f"queue {self.name!r} was not done{deadline}, {left} items wait"
            raise timed_out(message, self._space.url) from None

    async def _provide_room(self, space: Verbs, maxsize: int, deadline: Deadline) -> None:
        """Put as many tuples as there is room for, unless they are in the space: all, or none.

        Raises:
            SpaceFull: there was no room for them.
            Timeout: another process is at it, and was not ready in time.
            ValueError: there is another number of them, or they may be dropped.
        """
        name = self.name
        if space.blocking.stat()["when_full"] == "drop-oldest":
            message = (
                f"queue {name!r} has maxsize={maxsize}, and {space.url} drops its oldest tuples, "
                "items and room alike: leave maxsize out, or take a space that does not drop"
            )
            raise ValueError(message)
        same = (SIZE, name, int)
        await space.put_if_absent(SIZE, name, 0, unless=same, timeout=deadline.left())
        held = await space.claim(*same, timeout=deadline.left())
        async with held as (_, _, there):
            put = held.blocking.put
            if there == 0:
                for _ in range(maxsize):
                    put(ROOM, name)
            put(SIZE, name, there or maxsize)
            await held.done(timeout=deadline.left())
        if there not in (0, maxsize):
            message = (
                f"queue {name!r} has maxsize={there} in {space.url}, and {maxsize} here: give the "
                "same everywhere, or another name"
            )
            raise ValueError(message)
        self._room_in = space.blocking


class DeadItems(Generic[T]):
    """The items whose attempts have all failed; see `tupelo.batteries.Queue.dead`."""

    def __init__(self, space: Verbs, template: _native.Template[Any]) -> None:
        """Note the queue and the form of its items."""
        self._space = space
        self._template = template

    async def all(self) -> list[DeadItem[T]]:
        """Return them, as they are at this moment."""
        letters = await self._space.dead(self._template)
        return [
            DeadItem(letter.tuple[-1][0], letter.attempts, "".join(letter.reasons[-1:]))
            for letter in letters
        ]

    async def retry(self) -> int:
        """Put them all back, with all attempts before them; return how many."""
        return await self._space.requeue(self._template)

    async def __aiter__(self) -> AsyncIterator[DeadItem[T]]:
        """Iterate over them, as they are at this moment."""
        for item in await self.all():
            yield item
