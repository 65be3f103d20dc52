"""Places where many meet: `Barrier` and `Latch`.

The whole state of a barrier or a latch is one tuple, which each arriving party replaces in one
step. So a party that is killed has arrived or has not. The last party cannot die between its
arrival and the release of the others. A waiting party is in the wait queue for the next tuple.

The tuples:

* `("tupelo.barrier", name, parties, round, came, arrived, before)`. The round counts from 0 on, and
  from the next multiple of 2^32 on after a reset. The field `came` is the number of parties that
  came to the round, or -1 if it is broken. The list `arrived` has their names. The list `before`
  has the names of the round before; it is empty in the first round and after a reset. No such
  tuple: no party came yet.
* `("tupelo.latch", name, count, left)`: the count it began with, and the rest of it. No such tuple:
  no count down happened yet.
"""

from __future__ import annotations

import os
import threading
from collections import Counter as Multiset
from contextlib import suppress
from typing import NamedTuple

from tupelo import _native
from tupelo.batteries import checks
from tupelo.batteries.core.lasting import begun_anew
from tupelo.batteries.core.replacing import put_first, replaced
from tupelo.batteries.timeouts import Deadline, timed_out
from tupelo.batteries.verbs import awaited
from tupelo.errors import SpaceRemoved, Timeout, TupeloError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tupelo._native import Seconds
    from tupelo.batteries.verbs import Verbs

__all__ = ["Barrier", "BrokenBarrier", "Latch"]

BARRIER = "tupelo.barrier"
LATCH = "tupelo.latch"
STATES = (BARRIER, LATCH)
"""Tags of tuples that stay for later users: `tupelo check` does not ask who took them."""

PARTIES_MAX = 4096
"""Each arrival copies the names of all arrived parties: a barrier is for groups, not for crowds."""

NUMBER_MAX = (1 << 63) - 1

LEFT = ""
"""The place of a party that came and gave up: the next party takes it. No party has this name."""

BROKEN = -1

ROUNDS_MAX = 1 << 32
"""From one reset to the next. So a party sees that its round was reset, however late it looks."""

NAMES_SHOWN_MAX = 20
"""Of the parties that a message names."""

THE_FIELD = _native.FieldProxy()


class BrokenBarrier(TupeloError):
    """A party of a barrier gave up, so the others cannot go on either.

    Attributes:
        arrived: the names of the parties that came.
        missing: the names of the parties that came to the round before, and not to this one.
    """

    code = "TUP-030"
    arrived: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


BrokenBarrier.__module__ = "tupelo.batteries"  # as in a traceback, so that programs find it


class State(NamedTuple):
    """The state of a barrier, field by field as it is stored."""

    sign: str
    name: str
    parties: int
    round: int
    came: int
    arrived: list[str]
    before: list[str]


class Arrival:
    """A party's knowledge of its own arrival, whenever it is interrupted."""

    def __init__(self) -> None:
        """Begin with none."""
        self._coming: tuple[State, int] | None = None
        self.has_come = False

    def begins(self, state: State, place: int) -> None:
        """Note the state to be stored if the next step succeeds, and the place of the party."""
        self._coming = (state, place)

    def has_failed(self) -> None:
        """Note that the step did not happen: in that place may be another one of the same name."""
        self._coming = None

    def of(self) -> tuple[State, int]:
        """Return the round as it was with this party, and its place."""
        if self._coming is None:
            message = "it has not arrived"
            raise RuntimeError(message)
        return self._coming

    def may_have_come(self, error: BaseException) -> bool:
        """Whether the party may be counted in, by what has ended its call.

        A signal is noticed behind the step as well as before it. Other exceptions come from the
        step itself, which then has not happened, or at an `await`, where the outcome is known.
        """
        is_signal = isinstance(error, KeyboardInterrupt | SystemExit)
        return self.has_come or (self._coming is not None and is_signal)


class Barrier:
    """Lets no party go on before all parties have come; see `tupelo.batteries.Barrier`.

    >>> import asyncio
    >>> from tupelo import aio
    >>> from tupelo.aio.batteries import Barrier
    >>> async def main():
    ...     async with aio.connect("mem://meeting") as space:
    ...         barrier = Barrier(space, "epoch", parties=3)
    ...         return await asyncio.gather(*(barrier.wait(timeout=5) for _ in range(3)))
    >>> asyncio.run(main())
    [0, 1, 2]
    """

    def __init__(self, space: Verbs, name: str, *, parties: int, party: str | None = None) -> None:
        """Make an object of the barrier; nothing happens in the space."""
        self._space = awaited(space)
        self.name = checks.text("name", name)
        self.parties = checks.number_of("parties", parties, PARTIES_MAX)
        self._party = None if party is None else checks.text("party", party)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return f"<Barrier {self.name!r} of {self.parties} in {self._space.url}>"

    async def wait(self, timeout: Seconds | None = None) -> int:
        """Wait until all parties have come; return the number of this one, from 0."""
        deadline = Deadline(timeout)
        return await begun_anew(self._space, lambda space: self._wait(space, deadline))

    async def _wait(self, space: Verbs, deadline: Deadline) -> int:
        party = self._party or this_party()
        arrival = Arrival()
        within = ""
        try:
            await self._arrive(space, party, deadline, arrival)
            state, place = arrival.of()
            if state.came == self.parties:
                return place
            try:
                found = await self._end_of(space, state.round, deadline)
            except Timeout:
                found = await self._give_up(space, state.round)
                within = str(deadline)
        except BaseException as error:
            if arrival.may_have_come(error):
                state, place = arrival.of()
                with suppress(SpaceRemoved):  # the round has ended with the space
                    await self._withdraw(space, state.round, party, place)
            raise
        if not has_passed(found, state.round):
            raise self._error(found, within, waited_for=state.round)
        return place

    async def reset(self) -> None:
        """Begin a new round, whatever happened in this one. Waiting parties get `BrokenBarrier`."""
        await begun_anew(self._space, self._reset)

    async def _reset(self, space: Verbs) -> None:
        while True:
            state = await self._state(space)
            # In two steps, so that the parties that wait for this round are told that it broke.
            broken = state._replace(came=BROKEN)
            first = (state.round // ROUNDS_MAX + 1) * ROUNDS_MAX
            new = state._replace(round=first, came=0, arrived=[], before=[])
            if await self._put(space, broken, instead_of=state) and await self._put(
                space, new, instead_of=broken
            ):
                return

    async def _arrive(self, space: Verbs, party: str, deadline: Deadline, arrival: Arrival) -> None:
        """Count this party in; note the round as it then is, and this party's place in it.

        The place may be that of a party that has left: each party has another.
        """
        while True:
            state = await self._state(space)
            if state.came == BROKEN:
                raise self._error(state, "", waited_for=state.round)
            place = state.arrived.index(LEFT) if LEFT in state.arrived else len(state.arrived)
            arrived = [*state.arrived[:place], party, *state.arrived[place + 1 :]]
            new = now = state._replace(came=state.came + 1, arrived=arrived)
            if now.came == self.parties:
                new = now._replace(round=state.round + 1, came=0, arrived=[], before=arrived)
            arrival.begins(now, place)
            if await self._put(space, new, instead_of=state, deadline=deadline):
                arrival.has_come = True
                return
            arrival.has_failed()

    async def _end_of(self, space: Verbs, number: int, deadline: Deadline) -> State:
        """Wait until the round of that number has ended; return the state that is stored then."""
        later = THE_FIELD.between(number + 1, NUMBER_MAX)
        next_one = _native.like(BARRIER, self.name, int, later, int, list, list)
        broken = _native.like(BARRIER, self.name, int, number, BROKEN, list, list)
        return State(*await space.read(next_one | broken, timeout=deadline.left()))

    async def _give_up(self, space: Verbs, number: int) -> State:
        """Break the round of that number, unless it has ended; return the state stored then."""
        while True:
            state = await self._state(space)
            if state.round != number or state.came == BROKEN:
                return state
            broken = state._replace(came=BROKEN)
            if await self._put(space, broken, instead_of=state):
                return broken

    async def _withdraw(self, space: Verbs, number: int, party: str, place: int) -> None:
        """Count this party out of the round of that number, unless it has ended."""
        while True:
            state = await self._state(space)
            if state.round != number or state.came == BROKEN:
                return
            arrived = list(state.arrived)
            if arrived[place : place + 1] != [party]:
                return
            arrived[place] = LEFT
            while arrived and arrived[-1] == LEFT:
                arrived.pop()
            new = state._replace(came=state.came - 1, arrived=arrived)
            if await self._put(space, new, instead_of=state):
                return

    async def _state(self, space: Verbs) -> State:
        """Return the stored state.

        Raises:
            ValueError: it is a barrier of more parties, or of fewer.
        """
        found = await space.try_read(*self._template())
        if found is None:
            return State(BARRIER, self.name, self.parties, 0, 0, [], [])
        state = State(*found)
        if state.parties != self.parties:
            message = (
                f"barrier {self.name!r} has {state.parties} parties in {self._space.url}, and "
                f"{self.parties} here: give the same number everywhere, or another name"
            )
            raise ValueError(message)
        return state

    async def _put(
        self, space: Verbs, new: State, *, instead_of: State, deadline: Deadline | None = None
    ) -> bool:
        """Replace the state that was read; return False if another party was faster."""
        if await replaced(space, *instead_of, to=tuple(new)):
            return True
        is_first = instead_of.round == instead_of.came == 0
        left_s = None if deadline is None else deadline.left()
        return is_first and await put_first(space, *new, unless=self._template(), timeout=left_s)

    def _template(self) -> tuple[object, ...]:
        return (BARRIER, self.name, int, int, int, list, list)

    def _error(self, state: State, within: str, *, waited_for: int) -> BrokenBarrier:
        """Return the exception for a broken round, by the state stored then or later."""
        if state.round != waited_for:  # it tells of another round
            state = state._replace(came=0, arrived=[], before=[])
        came = tuple(party for party in state.arrived if party != LEFT)
        missing = tuple((Multiset(state.before) - Multiset(came)).elements())
        message = f"barrier {self.name!r} is broken: "
        if state.came == BROKEN:
            number = state.round % ROUNDS_MAX
            message += f"{len(came)} of {self.parties} parties came{within}, in round {number}"
        else:
            message += "it was reset"
        if missing:
            message += f"; missing: {names(missing)}"
        elif came:
            message += f"; there came: {names(came)}"
        error = BrokenBarrier(message)
        error.hint = "reset() begins a new round, without those who are waiting now"
        error.space = self._space.url
        error.missing, error.arrived = missing, came
        return error


def has_passed(found: State, number: int) -> bool:
    """Return whether the round of that number has ended well, by the state stored then or later."""
    return found.round > number and found.round // ROUNDS_MAX == number // ROUNDS_MAX


def names(parties: tuple[str, ...]) -> str:
    """Return the first of many names, as a text."""
    shown = ", ".join(parties[:NAMES_SHOWN_MAX])
    more = len(parties) - NAMES_SHOWN_MAX
    return shown if more <= 0 else f"{shown} and {more} more"


def this_party() -> str:
    """Return the name of a party that was given none."""
    thread = threading.current_thread()
    process = f"process {os.getpid()}"
    return process if thread is threading.main_thread() else f"{process} {thread.name}"


class Latch:
    """A count that many wait for to become 0; see `tupelo.batteries.Latch`.

    >>> import asyncio
    >>> from tupelo import aio
    >>> from tupelo.aio.batteries import Latch
    >>> async def main():
    ...     async with aio.connect("mem://latched") as space:
    ...         ready = Latch(space, "ready", count=2)
    ...         waiting = asyncio.create_task(ready.wait())
    ...         await ready.count_down(2)
    ...         return await waiting
    >>> asyncio.run(main())
    """

    def __init__(self, space: Verbs, name: str, *, count: int = 1) -> None:
        """Make an object of the latch; nothing happens in the space."""
        self._space = awaited(space)
        self.name = checks.text("name", name)
        self.count = checks.number_of("count", count, NUMBER_MAX)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return f"<Latch {self.name!r} of {self.count} in {self._space.url}>"

    async def left(self) -> int:
        """Return the rest of the count."""
        found = await self._space.try_read(LATCH, self.name, int, int)
        if found is None:
            return self.count
        _, _, count, left = found
        if count != self.count:
            raise self._of_another_count(count)
        return int(left)

    def _of_another_count(self, count: int) -> ValueError:
        return ValueError(
            f"latch {self.name!r} has the count {count} in {self._space.url}, and "
            f"{self.count} here: give the same everywhere, or another name"
        )

    async def count_down(self, by: int = 1) -> int:
        """Subtract from the count, down to 0; return the rest."""
        by = checks.number_of("by", by, NUMBER_MAX)
        space, name, count = self._space, self.name, self.count
        while True:
            left = await self.left()
            new = (LATCH, name, count, max(0, left - by))
            if await replaced(space, LATCH, name, count, left, to=new):
                return new[3]
            absent = (LATCH, name, int, int)
            if left == count and await put_first(space, *new, unless=absent):
                return new[3]

    async def wait(self, timeout: Seconds | None = None) -> None:
        """Wait until nothing is left of the count."""
        deadline = Deadline(timeout)
        await self.left()
        opened = _native.like(LATCH, self.name, self.count, 0)
        # A party with another count came later: this latch would never open.
        other = _native.like(LATCH, self.name, self.count != THE_FIELD, int)
        try:
            while True:
                found = await self._space.read(opened | other, timeout=deadline.left())
                if found[2] == self.count:
                    return
                await self.left()  # says so, unless that one was taken away meanwhile
                if await self._space.try_read(other) is not None:  # beside one of this count
                    raise self._of_another_count(found[2])
        except Timeout:
            left = await self.left()
            message = f"latch {self.name!r} did not open{deadline}: {left} of {self.count} are left"
            raise timed_out(message, self._space.url) from None
