"""Work for others, for blocking programs: `Queue`."""

from __future__ import annotations

from typing import Generic, TypeVar

from tupelo.batteries.core import queue as core
from tupelo.batteries.core.queue import DeadItem
from tupelo.batteries.timeouts import FOR_EVER, Deadline
from tupelo.batteries.verbs import AtOnce, run
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any

    from tupelo._native import Seconds, Space

__all__ = ["DeadItem", "DeadItems", "Delivery", "Queue"]

T = TypeVar("T")


class Delivery(core.Work[T]):
    """An item in the hands of its worker. A context manager that gives the item.

    The end of the block completes the work. The item is back at its old place if the block raises
    or the process dies (K2). The same holds if the process is silent for longer than the ttl.

    >>> from tupelo.batteries import Queue
    >>> mail = Queue[str](space, "mail")
    >>> mail.put("hello")
    >>> with mail.get(timeout=5) as letter:
    ...     letter
    'hello'
    """

    __slots__ = ()

    def done(self) -> None:
        """Be done with the item: it is gone. For use without a block.

        Without a block the claim is not renewed: be done within the ttl of the queue.

        Raises:
            ClaimLost: the item is another's work now, or will be (K3).
            SpaceFull: there is no memory for the room that it gives back, or for its puts. The item
                is still this worker's (K4).
            ValueError: it was done or given back before.
        """
        self._make_room()
        self._claim.done()

    def abort(self, reason: str | None = None) -> None:
        """Give the item back to its place; after its last attempt, to the dead ones.

        Raises:
            ClaimLost: the item is another's work now, or will be (K3).
            ValueError: it was done or given back before.
        """
        self._abort(reason)

    def put(self, *fields: Any) -> None:
        """Add a tuple to the space at the moment when the item is done, or never (K4).

        >>> from tupelo.batteries import Queue
        >>> numbers = Queue[int](space, "numbers")
        >>> numbers.put(7)
        >>> delivery = numbers.get()
        >>> with delivery as number:
        ...     delivery.put("squared", number, number * number)
        >>> space.take("squared", 7, int)
        ('squared', 7, 49)
        """
        self._put(*fields)

    def __enter__(self) -> T:
        """Begin to renew the claim; return the item."""
        self._claim.__enter__()
        return self.item

    def __exit__(
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
                self._claim.__exit__(type(error), error, error.__traceback__)
                raise
        self._claim.__exit__(kind, exception, traceback)


class DeadItems(Generic[T]):
    """The items whose attempts have all failed. Iterates over the items of this moment."""

    def __init__(self, items: core.DeadItems[T]) -> None:
        """Wrap the awaited ones."""
        self._core = items

    def all(self) -> list[DeadItem[T]]:
        """Return them, the oldest first.

        Raises:
            NotEncodable: one of them cannot be read here. `retry` can put it back all the same. A
                connection that can read objects, or has their classes, returns it.
            SchemaMismatch: one of them is an entry of a class that is another one here.
            Exception: the class of one of them raises when an instance is made.
        """
        return run(self._core.all())

    def retry(self) -> int:
        """Put them all back at their old places, with all attempts before them (K5).

        Returns:
            How many there were.
        """
        return run(self._core.retry())

    def __iter__(self) -> Iterator[DeadItem[T]]:
        """Iterate over (item, attempts, error). It raises what `all` does."""
        return iter(self.all())

    def __len__(self) -> int:
        """Return how many there are. It raises what `all` does."""
        return len(self.all())


class Queue(Generic[T]):
    """Items that workers get, each item once. If a worker fails or dies, the item is not lost.

    Its tuples: docs/batteries.md.

    >>> from tupelo.batteries import Queue
    >>> mail = Queue[str](space, "mail", maxsize=10_000, max_attempts=2)
    >>> mail.put("later is fine")
    >>> mail.put("now, please", priority=2)
    >>> for _ in range(2):
    ...     with mail.get(timeout=5) as letter:
    ...         print(letter)
    now, please
    later is fine
    """

    @suggests
    def __init__(
        self,
        space: Space,
        name: str,
        *,
        maxsize: int | None = None,
        max_attempts: int | None = None,
        ttl: Seconds = 30,
    ) -> None:
        """Make an object of the queue; nothing happens in the space.

        Args:
            space: where the queue is.
            name: all objects with the same name are the same queue.
            maxsize: how many items there may be, up to 500 000; then `put` waits. None for as many
                as fit into the space. Only for `put`: a worker that only gets need not know it.
                Items that are worked on and dead items count; items put with `after=` do not.
            max_attempts: after so many failed attempts an item is dead. None for never. Only for
                `get`.
            ttl: after how many seconds without a sign of life a worker has lost its item. Only a
                process that is stopped is silent: a busy process, in whatever code, is not.

        Raises:
            TypeError: an argument of another type.
            ValueError: a number is out of range.
        """
        self._core: core.Queue[T] = core.Queue(
            AtOnce(space), name, maxsize=maxsize, max_attempts=max_attempts, ttl=ttl
        )
        self.dead: DeadItems[T] = DeadItems(self._core.dead)
        """The items whose attempts have all failed.

        >>> from tupelo.batteries import Queue
        >>> mail = Queue[str](space, "post", max_attempts=1)
        >>> mail.put("hello")
        >>> mail.get().abort("no such address")
        >>> for letter, attempts, error in mail.dead:
        ...     print(letter, attempts, error)
        hello 1 no such address
        >>> mail.dead.retry()
        1
        """

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return repr(self._core)

    @property
    def name(self) -> str:
        """The name, the same in every process."""
        return self._core.name

    @property
    def maxsize(self) -> int | None:
        """How many items may be there; None for as many as fit into the space."""
        return self._core.maxsize

    def put(
        self,
        item: T,
        *,
        priority: int = 0,
        after: Seconds | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        """Add an item.

        Args:
            item: any value that a field can hold.
            priority: 0 to 9. Items of a greater one are got first, of the same one in the order in
                which they came.
            after: so many seconds later, and then as the last of its priority. Such an item takes
                no room of `maxsize`.
            timeout: how long to wait for room, in seconds. None: of `maxsize` for ever; of the
                space itself as it was created, as `Space.put` does.

        Raises:
            Timeout: there was no room in time.
            SpaceFull: the space itself is full.
            NotEncodable: no field can hold the item.
            ValueError: elsewhere the queue has another maxsize, or the space drops its oldest.

        In each case nothing was added.

        >>> from tupelo.batteries import Queue
        >>> small = Queue[int](space, "small", maxsize=1)
        >>> small.put(1)
        >>> small.put(2, timeout=0.01)
        Traceback (most recent call last):
        ...
        tupelo.Timeout: TUP-003: queue 'small' had no room within 0.01 s, its maxsize is 1
        """
        if self._core.maxsize is None:
            self._core.put_blocking(item, priority, after, timeout)
        else:
            run(self._core.put(item, priority=priority, after=after, timeout=timeout))

    def get(self, timeout: Seconds | None = None) -> Delivery[T]:
        """Claim the next item, waiting for one. Blocked calls are served in FIFO order (T3).

        Args:
            timeout: the longest wait, in seconds. None waits for ever, 0 not at all.

        Returns:
            The delivery: a context manager that gives the item.

        Raises:
            Timeout: there was none in time.
            NotEncodable: the next item cannot be read here. It is an object, and the connection has
                `objects="strict"`, or its class is missing here.
            SchemaMismatch: the next item is an entry of a class that is another one here.
            Exception: the class of the next item raises when an instance is made.

        An item that cannot be read here goes back to its place, with one failed attempt more. If
        the item came during the wait, and its own class raised, that attempt counts with the next
        call. With `max_attempts` it is dead after so many attempts, and the items behind it are
        got. Without `max_attempts`, each `get` meets it again until some worker can read it. Ctrl-C
        during the wait has no effect. Ctrl-C after the claim and before the return gives the item
        back, as a failed attempt.

        >>> from tupelo.batteries import Queue
        >>> mail = Queue[str](space, "letters")
        >>> mail.put("hello")
        >>> with mail.get() as letter:
        ...     raise RuntimeError("the printer is on fire")
        Traceback (most recent call last):
        ...
        RuntimeError: the printer is on fire
        >>> delivery = mail.get()
        >>> delivery.item, delivery.attempt
        ('hello', 2)
        >>> delivery.done()
        """
        # First: a wrong time is refused, whether or not it is needed.
        deadline = FOR_EVER if timeout is None else Deadline(timeout)
        claim = self._core.claim_now()
        if claim is None:
            claim = run(self._core.claim(deadline)).blocking
        return Delivery(claim)

    def try_get(self) -> Delivery[T] | None:
        """Claim the next item, or return None at once.

        Raises:
            NotEncodable: the next item cannot be read here. This one, and the next two, as `get`.
            SchemaMismatch: it is an entry of a class that is another one here.
            Exception: what its class raises when it is made.

        >>> from tupelo.batteries import Queue
        >>> Queue[str](space, "nothing").try_get() is None
        True
        """
        claim = self._core.claim_now()
        return None if claim is None else Delivery(claim)

    def __len__(self) -> int:
        """Return how many items wait: they are due, and no worker has them."""
        return run(self._core.waiting())

    def __bool__(self) -> bool:
        """Return True: a queue is one, also if nothing waits in it."""
        return True

    def join(self, timeout: Seconds | None = None) -> None:
        """Wait until no item waits, and no worker has one.

        Items that are not due yet, and dead ones, are not waited for.

        Raises:
            Timeout: that was not so in time.

        >>> from tupelo.batteries import Queue
        >>> Queue[str](space, "nothing").join(timeout=5)
        """
        run(self._core.join(timeout))
