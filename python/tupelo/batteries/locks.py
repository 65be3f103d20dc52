"""What one holder, or a few, may have at a time, for blocking programs."""

from __future__ import annotations

from tupelo.batteries.core import locks as core
from tupelo.batteries.verbs import AtOnce, run
from tupelo.errors import Timeout
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tupelo._native import Seconds, Space

__all__ = ["Acquirable", "Lock", "Permit", "RWLock", "Semaphore"]


class Permit:
    """A held lock or unit, until it is given back. A context manager that does so at its end.

    If the holder dies, the next in the wait queue has the lock at once. If the holder is silent for
    longer than its ttl (stopped, suspended), the next one has it from then on. A living holder
    keeps it for as long as it likes: a thread outside the interpreter renews it.

    >>> from tupelo.batteries import Lock
    >>> with Lock(space, "index").acquire(timeout=5) as permit:
    ...     permit.token > 0
    True
    """

    def __init__(self, permit: core.Permit) -> None:
        """Wrap the awaited one."""
        self._core = permit

    def __repr__(self) -> str:
        """Show what for, and the token."""
        return repr(self._core)

    @property
    def token(self) -> int:
        """The fencing token: greater than that of every earlier holder (K1).

        Hand it along with every write to another system, and let that system refuse a smaller token
        than it has seen. Then a holder that was stopped, and goes on after it lost the lock, cannot
        overwrite its successor's data.
        """
        return self._core.token

    def release(self) -> None:
        """Give it back; the next in the wait queue has it at the same moment (K4, T3).

        `release` of the object that it was acquired with does the same.

        Raises:
            ClaimLost: it was lost, since this process was silent for longer than the ttl.
            RuntimeError: it was released before.
        """
        run(self._core.release())

    def __enter__(self) -> Self:
        """Do nothing: it is held."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Give it back, unless the block did."""
        run(self._core.__aexit__(kind, exception, traceback))


class Acquirable:
    """What can be acquired: a lock, a semaphore, a side of a `RWLock`. A context manager.

    Used as `threading.Lock` is: the object keeps the permit of each thread until `release`. If the
    object and the permit are both forgotten, the lock is free again, with a `ResourceWarning`.
    """

    def __init__(self, acquirable: core.Acquirable) -> None:
        """Wrap the awaited one."""
        self._acquirable = acquirable

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return repr(self._acquirable)

    @property
    def name(self) -> str:
        """The name, the same in every process."""
        return self._acquirable.name

    def acquire(self, timeout: Seconds | None = None) -> Permit:
        """Wait until it is free, and hold it until `release`. The order is FIFO (T3).

        Args:
            timeout: the longest wait, in seconds. None waits for ever, 0 not at all.

        Returns:
            The permit: it has the fencing token, and is a context manager that gives it back. You
            need not keep it.

        Raises:
            Timeout: it was not free in time. Nothing is held.
            ValueError: elsewhere it has another number of units.
            SpaceFull: there was no room for its tuples, which the first one puts.

        Its holder cannot acquire it again: it would wait for itself.

        >>> from tupelo.batteries import Lock
        >>> lock = Lock(space, "door")
        >>> permit = lock.acquire()
        >>> lock.acquire(timeout=0.01)
        Traceback (most recent call last):
        ...
        tupelo.Timeout: TUP-003: lock 'door' was not free within 0.01 s
        >>> lock.release()
        >>> lock.locked()
        False
        """
        return self._acquire(timeout, is_block=False)

    def _acquire(self, timeout: Seconds | None, *, is_block: bool) -> Permit:
        holdings, core_permit = self._acquirable.holdings, run(self._acquirable.permit(timeout))
        try:
            permit = Permit(core_permit)
            holdings.push(core_permit, is_block=is_block)
            return permit  # noqa: TRY300 - an interruption behind the push belongs to the try
        except BaseException as error:
            # Ctrl-C. It is given back now, and not when the traceback is forgotten, whose frames
            # know it: a handler of Ctrl-C may want to hold it.
            holdings.withdraw(core_permit)
            run(core_permit.__aexit__(type(error), error, None))
            raise

    def try_acquire(self) -> Permit | None:
        """Hold it until `release` if it is free; return None at once if it is not.

        Raises:
            ValueError: elsewhere it has another number of units.
            SpaceFull: there was no room for its tuples, which the first one puts.

        >>> from tupelo.batteries import Semaphore
        >>> gpu = Semaphore(space, "gpu", n=1)
        >>> with gpu:
        ...     print(gpu.try_acquire())
        None
        """
        try:
            return self.acquire(0)
        except Timeout:
            return None

    def release(self) -> None:
        """Give back what this thread has acquired last with this object (K4).

        If this thread holds nothing, `release` gives back the latest acquisition of another thread
        with this object. In a block with no other acquisition, it gives back the block's own. The
        end of the block then gives back a later acquisition.

        Raises:
            RuntimeError: nothing is held with this object.
            ClaimLost: it was lost, since this process was silent for longer than the ttl.

        >>> from tupelo.batteries import Lock
        >>> lock = Lock(space, "gate")
        >>> if lock.try_acquire():
        ...     lock.release()
        >>> lock.release()
        Traceback (most recent call last):
        ...
        RuntimeError: lock 'gate' is not held with this object: acquire it first
        """
        run(self._acquirable.release())

    def locked(self) -> bool:
        """Return whether no acquisition could succeed at once, in any process.

        It may have changed when you look at the answer: to hold it if it is free, `try_acquire`.

        >>> from tupelo.batteries import Semaphore
        >>> gpu = Semaphore(space, "gpu for two", n=2)
        >>> with gpu:
        ...     print(gpu.locked())
        ...     with gpu:
        ...         print(gpu.locked())
        False
        True
        """
        return run(self._acquirable.locked())

    def __enter__(self) -> Permit:
        """Wait until it is free, and hold it."""
        return self._acquire(None, is_block=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Give it back."""
        holdings, block = self._acquirable.holdings, None
        try:
            block = holdings.block()
            if block is not None and block.permit is not None:
                run(block.permit.__aexit__(kind, exception, traceback))
        finally:
            # Also after Ctrl-C somewhere in there: the block is over.
            block = block or holdings.block()
            holdings.forget(block)
            if block is not None and block.permit is not None:
                block.permit.give_up("interrupted")


class Lock(Acquirable):
    """What one holder may have at a time, of all threads and processes.

    Fair, and free again when its holder dies. Its tuple is `("tupelo.lock", name)`, claimed by the
    holder.

    >>> from tupelo.batteries import Lock
    >>> with Lock(space, "index", ttl=10) as lock:
    ...     space.put("written by", lock.token)
    """

    @suggests
    def __init__(self, space: Space, name: str, *, ttl: Seconds = 30) -> None:
        """Make an object of the lock; nothing happens in the space.

        Args:
            space: where the lock is.
            name: all objects with the same name are the same lock.
            ttl: after how many seconds without a sign of life a holder has lost it. Only a process
                that is stopped is silent: a busy process, in whatever code, is not.

        Raises:
            TypeError: an argument of another type.
            ValueError: a ttl that is not positive.
        """
        super().__init__(core.Lock(AtOnce(space), name, ttl=ttl))


class Semaphore(Acquirable):
    """What `n` holders may have at a time, of all threads and processes.

    Fair, and a unit is free again when its holder dies. Its tuples are `("tupelo.semaphore", name,
    n)`, and `("tupelo.semaphore.unit", name, unit)` for each unit, claimed by its holder.

    >>> from tupelo.batteries import Semaphore
    >>> with Semaphore(space, "gpu", n=4) as permit:
    ...     space.put("trained by", permit.token)
    """

    @suggests
    def __init__(self, space: Space, name: str, *, n: int, ttl: Seconds = 30) -> None:
        """Make an object of the semaphore; nothing happens in the space.

        Args:
            space: where the semaphore is.
            name: all objects with the same name share the same units.
            n: how many units there are, up to 4096; the same everywhere.
            ttl: after how many seconds without a sign of life a holder has lost its unit.

        Raises:
            TypeError: an argument of another type.
            ValueError: the number of units is out of range, or the ttl is not positive.
        """
        semaphore = core.Semaphore(AtOnce(space), name, n=n, ttl=ttl)
        super().__init__(semaphore)
        self.n = semaphore.n


class RWLock:
    """What many may read, or one may write, at a time, of all threads and processes.

    Fair: readers and writers pass in the order in which they came, so none of them starves. Free
    again when its holder dies. Its tuples: docs/batteries.md.

    >>> from tupelo.batteries import RWLock
    >>> table = RWLock(space, "table")
    >>> with table.reader, table.reader:
    ...     print(table.writer.try_acquire())
    None
    >>> with table.writer as permit:
    ...     space.put("changed by", permit.token)
    """

    @suggests
    def __init__(
        self, space: Space, name: str, *, readers: int = core.READERS, ttl: Seconds = 30
    ) -> None:
        """Make an object of the lock; nothing happens in the space.

        Args:
            space: where the lock is.
            name: all objects with the same name are the same lock.
            readers: how many may read at a time, up to 4096; the same everywhere. A writer claims
                as many units, which takes it a few microseconds each.
            ttl: after how many seconds without a sign of life a holder has lost it.

        Raises:
            TypeError: an argument of another type.
            ValueError: the number of readers is out of range, or the ttl is not positive.
        """
        self._core = core.RWLock(AtOnce(space), name, readers=readers, ttl=ttl)
        self.reader = Acquirable(self._core.reader)
        self.writer = Acquirable(self._core.writer)

    def __repr__(self) -> str:
        """Show the name, and where it is."""
        return repr(self._core)
