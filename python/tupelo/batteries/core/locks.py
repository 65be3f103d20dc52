"""What one holder, or a few, may have at a time: `Lock`, `Semaphore`, `RWLock`.

To hold a lock is to have claimed a tuple, so every guarantee of claims holds here. Blocked
acquirers are served in FIFO order (T3). If the holder dies the next in the wait queue has the lock
at once; if the holder is stopped, when its ttl ends (K2). The number of the claim is the fencing
token: it is greater than that of every earlier holder (K1). A release puts the tuple anew under the
claim, at the same moment as the claim ends (K4). So there is no moment in which the tuple could be
lost.

The tuples, each put once, by the first caller:

* `("tupelo.lock", name)`: to be claimed.
* `("tupelo.semaphore", name, n)`: how many units there are, and
  `("tupelo.semaphore.unit", name, unit)` for each from 0 to n - 1: one of them is to be claimed.
* `("tupelo.rwlock", name, readers)`: how many may read at a time.
* `("tupelo.rwlock.unit", name, unit)` for each unit from 0 to readers - 1.
* `("tupelo.rwlock.gate", name)`: all claim the gate first, so that they pass in FIFO order. A
  reader then claims any unit and gives the gate back. A writer keeps the gate and claims all units:
  it waits for the current readers, and no reader passes behind it.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from abc import ABC, abstractmethod
from contextlib import suppress

from tupelo.batteries import checks
from tupelo.batteries.core.holdings import Holdings
from tupelo.batteries.core.lasting import begun_anew
from tupelo.batteries.timeouts import Deadline, timed_out
from tupelo.batteries.verbs import awaited
from tupelo.errors import ClaimLost, SpaceFull, SpaceRemoved, Timeout, TupeloError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Self

    from tupelo._native import Seconds, Space
    from tupelo.batteries.verbs import Held, Verbs

__all__ = ["Acquirable", "Lock", "Permit", "RWLock", "Semaphore"]

LOCK = "tupelo.lock"
SEMAPHORE = "tupelo.semaphore"
RWLOCK = "tupelo.rwlock"
STATES = (LOCK, SEMAPHORE, f"{SEMAPHORE}.unit", RWLOCK, f"{RWLOCK}.gate", f"{RWLOCK}.unit")
"""Tags of tuples that stay for later users: `tupelo check` does not ask who took them."""

UNITS_MAX = 4096
"""Each unit is a tuple, and a writer claims them all."""

READERS = 32
"""How many may read at a time, if nothing else is said: more than most machines have cores to."""


class Permit:
    """A held lock, until it is given back; see `tupelo.batteries.Permit`."""

    # For `__del__` of one whose making was interrupted.
    _claims: list[Held] = []  # noqa: RUF012 - never changed
    _keeper: Callable[[], Holdings | None] | None = None

    def __init__(self, name: str, claims: list[Held]) -> None:
        """Note the claims that are held."""
        self._name = name
        self._claims = claims
        self.token = max(claim.fence for claim in claims)

    def __repr__(self) -> str:
        """Show what for, and the token."""
        state = f"token {self.token}" if self._claims else "released"
        return f"<Permit for {self._name}, {state}>"

    @property
    def is_held(self) -> bool:
        """Whether it was not released yet, as far as is known here."""
        return bool(self._claims)

    def is_kept_by(self, holdings: Holdings) -> None:
        """Note what keeps it, and that it is handed out: to forget it is a mistake from now on."""
        # Weakly: a cycle would be found late, and others wait for it.
        self._process = os.getpid()
        self._keeper = weakref.ref(holdings)

    async def release(self) -> None:
        """Give back the held tuples; the next in the wait queue has them at the same moment."""
        if not self._claims:
            message = f"{self._name} was released before, by this permit"
            raise RuntimeError(message)
        claims, self._claims = self._claims, []
        try:
            await give_back_all(claims)
        finally:
            if self._keeper is not None and (keeper := self._keeper()) is not None:
                keeper.forget_permit(self)

    def give_up(self, reason: str) -> None:
        """Put back the held tuples, as they were, without a wait and without an error."""
        claims, self._claims = self._claims, []
        for claim in reversed(claims):
            with suppress(TupeloError, ValueError):  # lost, or closed
                claim.blocking.abort(reason)

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        """Give it back, with a warning: the permit and its lock were both forgotten."""
        if not self._claims or self._keeper is None:
            return
        # The copy of a fork holds nothing of its own; the end of the parent gives all back.
        if self._process != os.getpid() or sys.is_finalizing():
            return
        self.give_up("forgotten")
        message = (
            f"{self._name} was not released (token {self.token}), and it is free again since its "
            "object and its permit were forgotten: keep one of them, or hold it as a `with` block"
        )
        warn(message, ResourceWarning, stacklevel=2, source=self)

    async def __aenter__(self) -> Self:
        """Do nothing: it is held."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Give it back, unless the block did."""
        if not self._claims:
            return
        try:
            await self.release()
        except (TupeloError, ValueError) as error:  # lost, or held by the process that was forked
            if exception is None:
                raise
            exception.add_note(str(error))


class Acquirable(ABC):
    """What can be acquired, or entered as a block."""

    def __init__(self, space: Verbs, name: str, ttl: Seconds) -> None:
        """Make an object of it; nothing happens in the space."""
        self._space = awaited(space)
        self.name = checks.text("name", name)
        self._ttl_s = checks.time_to_live(ttl)
        self._units_in: Space | None = None
        """The connection to the space that has all units for good, as far as is known here."""
        self.holdings = Holdings()
        """The permits that are held with this object."""

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return f"<{self._what()} in {self._space.url}>"

    async def acquire(self, timeout: Seconds | None = None) -> Permit:
        """Wait until it is free, and hold it until `release`."""
        permit = await self.permit(timeout)
        self.holdings.push(permit)
        return permit

    async def try_acquire(self) -> Permit | None:
        """Hold it until `release` if it is free; return None at once if it is not."""
        try:
            permit = await self._acquire(Deadline(0))
        except Timeout:
            return None
        self.holdings.push(permit)
        return permit

    async def release(self) -> None:
        """Give back what this task, or this thread, has acquired last with this object."""
        holding = self.holdings.newest()
        if holding is None or (permit := holding.permit) is None:
            message = f"{self._what()} is not held with this object: acquire it first"
            raise RuntimeError(message)
        if holding.is_block:
            holding.permit = None  # the block may acquire it again
        await permit.release()

    async def locked(self) -> bool:
        """Return whether no acquisition could succeed at once, whoever the holder is."""
        return await begun_anew(self._space, self._locked)

    async def _locked(self, space: Verbs) -> bool:
        for template, number in self._needed():
            if await space.count(*template) >= number:
                continue
            try:
                await space.wait_none(*template, timeout=0)
            except Timeout:
                return True  # such tuples exist, held by others
        return False

    async def permit(self, timeout: Seconds | None = None) -> Permit:
        """Wait until it is free, and hold it: `acquire`, but this object keeps nothing."""
        deadline = Deadline(timeout)
        try:
            return await self._acquire(deadline)
        except Timeout:
            message = f"{self._what()} was not free{deadline}"
            raise timed_out(message, self._space.url) from None

    async def __aenter__(self) -> Permit:
        """Wait until it is free, and hold it."""
        permit = await self.permit()
        self.holdings.push(permit, is_block=True)
        return permit

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Give it back, unless the block did."""
        holding = self.holdings.block()
        try:
            if holding is not None and holding.permit is not None:
                await holding.permit.__aexit__(kind, exception, traceback)
        finally:
            self.holdings.forget(holding)

    @abstractmethod
    def _what(self) -> str:
        """Return its description, for messages."""

    @abstractmethod
    def _needed(self) -> list[tuple[tuple[Any, ...], int]]:
        """Return the templates that an acquisition claims, and how many of each."""

    async def _acquire(self, deadline: Deadline) -> Permit:
        """Hold it, or raise the `Timeout` of a claim."""
        return await begun_anew(self._space, lambda space: self._acquire_in(space, deadline))

    async def _acquire_in(self, space: Verbs, deadline: Deadline) -> Permit:
        claims: list[Held] = []
        try:
            await self._hold(space, claims, deadline)
            return Permit(self._what(), claims)
        except BaseException:
            # Now, and not when the traceback is forgotten, whose frames know them: a handler of
            # Ctrl-C may want to acquire the lock.
            with suppress(ClaimLost, SpaceRemoved):  # which the raised one may tell already
                await give_back_all(claims)
            raise

    @abstractmethod
    async def _hold(self, space: Verbs, claims: list[Held], deadline: Deadline) -> None:
        """Claim all tuples, and note each claim as soon as there is one."""

    async def _claim(
        self, space: Verbs, claims: list[Held], *template: Any, deadline: Deadline
    ) -> None:
        """Claim a tuple, and have it renewed from then on."""
        claims.append(await space.claim(*template, ttl=self._ttl_s, timeout=deadline.left()))
        await claims[-1].__aenter__()


class Lock(Acquirable):
    """What one holder may have at a time; see `tupelo.batteries.Lock`.

    >>> import asyncio
    >>> from tupelo import aio
    >>> from tupelo.aio.batteries import Lock
    >>> async def main():
    ...     async with aio.connect("mem://locked") as space:
    ...         async with Lock(space, "index", ttl=10) as lock:
    ...             return lock.token > 0
    >>> asyncio.run(main())
    True
    """

    def __init__(self, space: Verbs, name: str, *, ttl: Seconds = 30) -> None:
        """Make an object of the lock; nothing happens in the space."""
        super().__init__(space, name, ttl)

    def _what(self) -> str:
        return f"lock {self.name!r}"

    def _needed(self) -> list[tuple[tuple[Any, ...], int]]:
        return [((LOCK, self.name), 1)]

    async def _hold(self, space: Verbs, claims: list[Held], deadline: Deadline) -> None:
        tuple_ = (LOCK, self.name)
        claim = await space.try_claim(*tuple_, ttl=self._ttl_s)
        if claim is not None:
            claims.append(claim)
            await claim.__aenter__()
            return
        await space.put_if_absent(*tuple_, unless=tuple_, timeout=deadline.left())
        await self._claim(space, claims, *tuple_, deadline=deadline)


class Semaphore(Acquirable):
    """What `n` holders may have at a time; see `tupelo.batteries.Semaphore`.

    >>> import asyncio
    >>> from tupelo import aio
    >>> from tupelo.aio.batteries import Semaphore
    >>> async def main():
    ...     async with aio.connect("mem://signals") as space:
    ...         async with Semaphore(space, "gpu", n=4) as permit:
    ...             return permit.token > 0
    >>> asyncio.run(main())
    True
    """

    def __init__(self, space: Verbs, name: str, *, n: int, ttl: Seconds = 30) -> None:
        """Make an object of the semaphore; nothing happens in the space."""
        super().__init__(space, name, ttl)
        self.n = checks.number_of("n", n, UNITS_MAX)

    def _what(self) -> str:
        return f"semaphore {self.name!r} of {self.n}"

    def _needed(self) -> list[tuple[tuple[Any, ...], int]]:
        return [((f"{SEMAPHORE}.unit", self.name, int), 1)]

    async def _hold(self, space: Verbs, claims: list[Held], deadline: Deadline) -> None:
        if self._units_in is not space.blocking:
            await provide_units(space, SEMAPHORE, self.name, ("n", self.n), deadline)
            self._units_in = None if drops(space) else space.blocking
        await self._claim(space, claims, f"{SEMAPHORE}.unit", self.name, int, deadline=deadline)


class RWLock:
    """What many may read, or one may write, at a time; see `tupelo.batteries.RWLock`.

    >>> import asyncio
    >>> from tupelo import aio
    >>> from tupelo.aio.batteries import RWLock
    >>> async def main():
    ...     async with aio.connect("mem://read-and-written") as space:
    ...         table = RWLock(space, "table")
    ...         async with table.reader, table.reader:
    ...             assert await table.writer.try_acquire() is None
    ...         async with table.writer:
    ...             assert await table.reader.try_acquire() is None
    >>> asyncio.run(main())
    """

    def __init__(
        self, space: Verbs, name: str, *, readers: int = READERS, ttl: Seconds = 30
    ) -> None:
        """Make an object of the lock; nothing happens in the space."""
        self.reader = Reader(space, name, readers, ttl)
        self.writer = Writer(space, name, readers, ttl)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return repr(self.reader).replace("reader of rwlock", "RWLock")


class Side(Acquirable):
    """What readers and writers have in common."""

    def __init__(self, space: Verbs, name: str, readers: int, ttl: Seconds) -> None:
        """Make an object of it; nothing happens in the space."""
        super().__init__(space, name, ttl)
        self._readers = checks.number_of("readers", readers, UNITS_MAX)

    def _needed_of(self, units: int) -> list[tuple[tuple[Any, ...], int]]:
        return [((f"{RWLOCK}.gate", self.name), 1), ((f"{RWLOCK}.unit", self.name, int), units)]

    async def _pass_gate(self, space: Verbs, claims: list[Held], deadline: Deadline) -> None:
        """Claim the gate."""
        gate = (f"{RWLOCK}.gate", self.name)
        if self._units_in is not space.blocking:
            number = ("readers", self._readers)
            await provide_units(space, RWLOCK, self.name, number, deadline)
            await space.put_if_absent(*gate, unless=gate, timeout=deadline.left())
            self._units_in = None if drops(space) else space.blocking
        await self._claim(space, claims, *gate, deadline=deadline)

    async def _claim_unit(self, space: Verbs, claims: list[Held], deadline: Deadline) -> None:
        await self._claim(space, claims, f"{RWLOCK}.unit", self.name, int, deadline=deadline)


class Reader(Side):
    """One of several readers at a time."""

    def _what(self) -> str:
        return f"reader of rwlock {self.name!r}"

    def _needed(self) -> list[tuple[tuple[Any, ...], int]]:
        return self._needed_of(1)

    async def _hold(self, space: Verbs, claims: list[Held], deadline: Deadline) -> None:
        gate: list[Held] = []
        try:
            await self._pass_gate(space, gate, deadline)
            await self._claim_unit(space, claims, deadline)
        finally:
            # It was lost if this process was stopped meanwhile. That is no harm: the gate keeps the
            # order of the wait queue, it is the unit that keeps writers out.
            with suppress(ClaimLost):
                await give_back_all(gate)


class Writer(Side):
    """The only writer."""

    def _what(self) -> str:
        return f"writer of rwlock {self.name!r}"

    def _needed(self) -> list[tuple[tuple[Any, ...], int]]:
        return self._needed_of(self._readers)

    async def _hold(self, space: Verbs, claims: list[Held], deadline: Deadline) -> None:
        await self._pass_gate(space, claims, deadline)
        for _ in range(self._readers):
            await self._claim_unit(space, claims, deadline)
        for claim in claims:
            # If this process was stopped on the way, other processes may have had the tuples that
            # were claimed first. A claim that can be extended now was ours when the last one was
            # claimed.
            await claim.extend()


async def provide_units(
    space: Verbs, sign: str, name: str, expected: tuple[str, int], deadline: Deadline
) -> None:
    """Put the units of a name that are not in the space yet.

    Raises:
        SpaceFull: there was no room for all of them. Units that were put stay.
        Timeout: another process holds the tuple that says how many there are.
        ValueError: there is another number of them.
    """
    what, number = expected
    same = (sign, name, int)
    if not await space.put_if_absent(sign, name, number, unless=same, timeout=deadline.left()):
        # With a time: another process may hold it, or it has been dropped.
        _, _, there = await space.read(sign, name, int, timeout=deadline.left())
        if there != number:
            kind = sign.removeprefix("tupelo.")
            message = (
                f"{kind} {name!r} has {what}={there} in {space.url}, and {number} here: give the "
                "same everywhere, or another name"
            )
            raise ValueError(message)
    for unit in range(number):
        # A claimed unit counts as present, too (O9).
        tuple_ = (f"{sign}.unit", name, unit)
        await space.put_if_absent(*tuple_, unless=tuple_, timeout=deadline.left())


def drops(space: Verbs) -> bool:
    """Whether the space may drop units that are not held: then they are put before each use."""
    return bool(space.blocking.stat()["when_full"] == "drop-oldest")


async def give_back(claim: Held) -> None:
    """Put the tuple of a claim anew, for the next waiter, at the moment when the claim ends."""
    try:
        try:
            await claim.put(*claim.tuple)
            # Also where puts wait for room: the processes that would make room may wait for this.
            await claim.done(timeout=0)
        except SpaceFull:
            # Not even room for the tuple as it was: the claim is aborted, which is as good.
            await claim.abort("released")
    except BaseException as error:
        # Not as a block that went well, which would consume the tuples that were not put anew.
        await claim.__aexit__(type(error), error, error.__traceback__)
        raise
    await claim.__aexit__(None, None, None)  # ends the renewal


async def give_back_all(claims: list[Held]) -> None:
    """Give back several claims, the latest first, also if some of them are lost.

    Raises:
        ClaimLost: as the first of them that was lost.
        ValueError: they are held by the process that this one was forked from.
    """
    problems: list[BaseException] = []
    for claim in reversed(claims):
        try:
            await give_back(claim)
        except BaseException as error:  # noqa: BLE001 - raised when the others are back
            problems.append(error)
    if problems:
        # Ctrl-C, if it was among them: it is for the whole program.
        raise min(problems, key=lambda error: isinstance(error, Exception))
