"""Places where many meet, for blocking programs: `Barrier` and `Latch`."""

from __future__ import annotations

from tupelo.batteries.core import barrier as core
from tupelo.batteries.core.barrier import BrokenBarrier
from tupelo.batteries.verbs import AtOnce, run
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tupelo._native import Seconds, Space

__all__ = ["Barrier", "BrokenBarrier", "Latch"]


class Barrier:
    """Lets no party go on before all parties have come, round after round.

    A party that is killed while it waits has come: the others go on, and meet its absence in the
    round that follows. Its tuple is `("tupelo.barrier", name, parties, round, came, arrived,
    before)`: docs/batteries.md.

    >>> import threading
    >>> from tupelo.batteries import Barrier
    >>> def shard(number):
    ...     barrier = Barrier(space, "epoch", parties=4)
    ...     for epoch in range(3):
    ...         space.put("step", epoch, number)
    ...         barrier.wait(timeout=60)
    ...         assert space.count("step", epoch, int) == 4
    >>> threads = [threading.Thread(target=shard, args=(number,)) for number in range(4)]
    >>> for thread in threads:
    ...     thread.start()
    >>> for thread in threads:
    ...     thread.join()
    """

    @suggests
    def __init__(self, space: Space, name: str, *, parties: int, party: str | None = None) -> None:
        """Make an object of the barrier; nothing happens in the space.

        Args:
            space: where the barrier is.
            name: all objects with the same name meet each other.
            parties: how many have to come, up to 4096; the same everywhere.
            party: the name of this party in messages. By default the number of the process, and the
                name of the thread if it is not the main one.

        Raises:
            TypeError: an argument of another type.
            ValueError: the number of parties is out of range.
        """
        self._core = core.Barrier(AtOnce(space), name, parties=parties, party=party)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return repr(self._core)

    @property
    def name(self) -> str:
        """The name, the same in every process."""
        return self._core.name

    @property
    def parties(self) -> int:
        """How many have to come."""
        return self._core.parties

    def wait(self, timeout: Seconds | None = None) -> int:
        """Wait until all parties have come.

        Args:
            timeout: the longest wait, in seconds. None waits for ever, 0 not at all.

        Returns:
            The number of parties that came before this one. Each party of a round gets another
            number, from 0 on. So party 0 can do what is to be done once per round.

        Raises:
            BrokenBarrier: this party, or another one, has waited for too long. The round fails for
                all its parties, and for parties that come later, until somebody calls `reset`. The
                message names the parties of the round before that did not come.
            ValueError: the barrier has another number of parties elsewhere.
            SpaceFull: there was no room for this party. It has not come.

        If a transaction holds the tuple of the barrier, `wait` waits for the end of that, whatever
        `timeout` is. Until then no party can come or break the round.

        A wait that is interrupted otherwise (Ctrl-C, a cancelled task) is as if it had not been:
        the others wait on (T5). If this party was the last to come they have gone on already.

        >>> from tupelo.batteries import Barrier
        >>> barrier = Barrier(space, "alone", parties=2, party="ada")
        >>> barrier.wait(timeout=0.01)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        tupelo.batteries.BrokenBarrier: TUP-030: barrier 'alone' is broken: 1 of 2 parties came ...
        """
        return run(self._core.wait(timeout))

    def reset(self) -> None:
        """Begin a new round, whatever happened in this one. Waiting parties get `BrokenBarrier`.

        >>> from tupelo.batteries import Barrier, BrokenBarrier
        >>> barrier = Barrier(space, "twice", parties=1)
        >>> barrier.wait()
        0
        >>> barrier.reset()
        >>> barrier.wait()
        0
        """
        run(self._core.reset())


class Latch:
    """A count that many wait for to become 0. Then it is open, for ever.

    With a count of 1 it is what `threading.Event` is, between processes. Its tuple is
    `("tupelo.latch", name, count, left)`.

    >>> from tupelo.batteries import Latch
    >>> ready = Latch(space, "ready", count=3)
    >>> ready.count_down()
    2
    >>> ready.count_down(2)
    0
    >>> ready.wait()
    """

    @suggests
    def __init__(self, space: Space, name: str, *, count: int = 1) -> None:
        """Make an object of the latch; nothing happens in the space.

        Args:
            space: where the latch is.
            name: all objects with the same name count down the same latch.
            count: the number that the latch begins with; the same everywhere.

        Raises:
            TypeError: an argument of another type.
            ValueError: the count is out of range.
        """
        self._core = core.Latch(AtOnce(space), name, count=count)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return repr(self._core)

    @property
    def name(self) -> str:
        """The name, the same in every process."""
        return self._core.name

    @property
    def count(self) -> int:
        """The count that the latch began with."""
        return self._core.count

    @property
    def left(self) -> int:
        """The rest of the count.

        Raises:
            ValueError: the latch has another count elsewhere.
        """
        return run(self._core.left())

    def count_down(self, by: int = 1) -> int:
        """Subtract from the count, in one step (O8). It does not go below 0.

        Returns:
            The rest of the count.

        Raises:
            ValueError: `by` is no number from 1 on, or the latch has another count elsewhere.
            SpaceFull: there was no room for the tuple. Nothing was subtracted.

        >>> from tupelo.batteries import Latch
        >>> Latch(space, "go").count_down()
        0
        """
        return run(self._core.count_down(by))

    def wait(self, timeout: Seconds | None = None) -> None:
        """Wait until nothing is left of the count.

        Args:
            timeout: the longest wait, in seconds. None waits for ever, 0 not at all.

        Raises:
            Timeout: something is still left.
            ValueError: the latch has another count elsewhere.

        >>> from tupelo.batteries import Latch
        >>> Latch(space, "never", count=2).wait(timeout=0.01)
        Traceback (most recent call last):
        ...
        tupelo.Timeout: TUP-003: latch 'never' did not open within 0.01 s: 2 of 2 are left
        """
        run(self._core.wait(timeout))
