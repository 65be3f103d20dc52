"""`Pool` for blocking programs: a function over many values, in processes."""

from __future__ import annotations

from typing import ParamSpec, TypeVar, cast, overload

from tupelo.batteries.core.pool import Failure, Failures, Mapping, Terms
from tupelo.batteries.verbs import AtOnce, run
from tupelo.space import connect
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Any, Literal, Self

    from tupelo._native import Seconds
    from tupelo.errors import RemoteError
    from tupelo.tasks.local import LocalPool

__all__ = ["Failure", "Pool"]

P = ParamSpec("P")
R = TypeVar("R")


class Pool:
    """Worker processes for the length of a `with` block, and a `map` over them.

    Each task is a claim. A worker that is killed, crashes or is stopped loses nothing: another
    worker does its task, and a new process takes its place (K2). The processes end with the block,
    and with this program, however that ends. In a `mem://` space the workers are threads.

    The processes start fresh, like the processes of `tupelo.spawn`. A script needs `if __name__ ==
    "__main__":` around the code that only the first process runs.

    The tuples are in docs/tasks.md.

    >>> import math
    >>> from tupelo.batteries import Pool
    >>> with Pool("mem://roots", workers=2) as pool:
    ...     list(pool.map(math.isqrt, [4, 9, 16]))
    [2, 3, 4]
    """

    @suggests
    def __init__(
        self,
        url: str | None = None,
        *,
        workers: int | None = None,
        retries: int = 0,
        timeout: Seconds | None = None,
        ttl: Seconds = 30,
        progress: bool = False,
        objects: Literal["strict", "pickle"] | None = None,
    ) -> None:
        """Describe a pool; the block starts it.

        Args:
            url: the space through which it works, as for `connect`. It may be in use by others.
            workers: how many processes; by default one per processor that this one may use.
            retries: how often a task that raised is tried again. One whose worker dies is done
                again in any case, until three workers have died of it.
            timeout: how many seconds a task may take. Then its process is ended, and it counts as
                an attempt that raised `TimeoutError`. None for as long as it likes.
            ttl: for how many seconds a worker may be stopped until its task is given to another.
            progress: whether `map` shows on a terminal how far it is.
            objects: what becomes of arguments and results that are no field of a tuple, as for
                `connect`.

        Raises:
            TypeError: an argument of another type.
            ValueError: an argument out of bounds.
        """
        self._terms = Terms.checked(workers, retries, timeout, ttl, progress)
        self._url = url
        self._objects = objects
        self._pool: LocalPool | None = None
        self._is_over = False
        self._failures = Failures()

    def __enter__(self) -> Self:
        """Start the workers.

        Raises:
            ValueError: `timeout` was given, and the workers would be threads.
        """
        if self._pool is not None:
            message = "this pool was started already: make another one"
            raise RuntimeError(message)
        space = connect(self._url, objects=self._objects)
        try:
            self._pool = self._terms.start(space)
        except BaseException:
            space.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for the tasks that were submitted, and end the workers.

        An exception in the block, also Ctrl-C, kills them.

        Raises:
            RemoteError: the first failure of a `map` that was not iterated so far. If tasks of such
                a `map` are not done, why no worker could go on.
        """
        pool = self._started()
        try:
            self._terms.end(pool, is_well=error is None)
        finally:
            self._is_over = True
            pool.space.close()
        if error is None:
            self._failures.raise_untold()

    @property
    def failures(self) -> list[Failure]:
        """The tasks of `map` that have failed up to now; looking at them changes nothing."""
        return self._failures.all()

    @overload
    def map(
        self,
        function: Callable[..., R],
        *iterables: Iterable[Any],
        as_completed: bool = False,
        return_exceptions: Literal[False] = False,
    ) -> Iterator[R]: ...

    @overload
    def map(
        self,
        function: Callable[..., R],
        *iterables: Iterable[Any],
        as_completed: bool = False,
        return_exceptions: bool,
    ) -> Iterator[R | RemoteError]: ...

    def map(
        self,
        function: Callable[..., R],
        *iterables: Iterable[Any],
        as_completed: bool = False,
        return_exceptions: bool = False,
    ) -> Iterator[R | RemoteError]:
        """Call a function with the values of `iterables`, as the built-in `map` does.

        Tasks are given out at the call, and on the way: there may be any number of values. At most
        4096 are out, or done before their turn has come. Values that come slowly go out one by
        one, as they come. The call returns when one of them is done. A result is handed out no
        later than when the next value has come. If a slow value follows quick ones, the last quick
        results, at most 256, may come with the slow one. Tasks that were given out are done, also
        if you do not iterate. An iterator that is closed, or forgotten after its first result,
        takes back the tasks that no worker has begun.

        Args:
            function: a function of a module, or of the script that is run. Not a lambda.
            iterables: one for each argument.
            as_completed: whether the fastest results come first, and not those of the first values.
            return_exceptions: whether the `RemoteError` of a task that has failed stands in the
                place of its result, as in `asyncio.gather`.

        Returns:
            An iterator of the results: one for each call, in the same order, unless `as_completed`.

        Raises:
            TypeError: workers cannot find the function.
            RemoteError: while iterating, the task whose turn it is has failed, with all its
                attempts. The iterator is over then, as that of `concurrent.futures`, and tasks that
                no worker has begun are taken back. Also if no worker can go on, with the reason, or
                if tasks were dropped.
            RuntimeError: the pool is that of the process that this one was forked from.
            NotEncodable: at the call or while iterating: a value cannot be stored.
            SchemaMismatch: while iterating: a result is of a class that this program has not.

        >>> import math
        >>> from tupelo.batteries import Pool
        >>> with Pool("mem://powers") as pool:
        ...     sorted(pool.map(math.pow, [2, 3], [4, 5], as_completed=True))
        [16.0, 243.0]
        >>> with Pool("mem://roots of all") as pool:
        ...     roots = list(pool.map(math.sqrt, [4, -1, 9], return_exceptions=True))
        >>> roots[0], roots[1].kind, roots[2]
        (2.0, 'builtins.ValueError', 3.0)
        """
        pool = self._started()
        mapping = self._terms.mapping(
            AtOnce(pool.space),
            pool,
            function,
            iterables,
            self._failures,
            as_completed=as_completed,
            return_exceptions=return_exceptions,
        )
        try:
            run(mapping.begin())
        except BaseException:
            mapping.withdraw()
            raise
        return _results(mapping)

    def submit(
        self, function: Callable[P, R], /, *arguments: P.args, **keywords: P.kwargs
    ) -> Future[R]:
        """Call a function once; return the future of its result.

        If the task has failed, the future raises `RemoteError` with the worker's traceback. If the
        space has dropped the task, the error has no traceback. `cancel()` succeeds as long as no
        worker has begun.

        It waits for room as `Space.put` does.

        Raises:
            NotEncodable: an argument cannot be stored.
            RuntimeError: the pool is that of the process that this one was forked from, or has
                ended.
            SpaceFull: there is no room for the task.
            TypeError: a worker could not find the function: it is a lambda, or inside of another.

        >>> import math
        >>> from tupelo.batteries import Pool
        >>> with Pool("mem://futures") as pool:
        ...     pool.submit(math.pow, 2.0, 3.0).result()
        8.0
        """
        future = self._terms.submit(self._started(), function, arguments, keywords)
        return cast("Future[R]", future)

    def pids(self) -> list[int]:
        """Return the process ids of the workers; of threads, none."""
        return self._terms.pids(self._started())

    def _started(self) -> LocalPool:
        if self._pool is None or self._is_over:
            message = "a pool works inside of its block: with Pool(...) as pool"
            raise RuntimeError(message)
        return self._pool


def _results(mapping: Mapping) -> Iterator[Any]:
    is_over = False
    try:
        while (batch := run(mapping.more())) is not None:
            yield from batch
        is_over = True
    finally:
        if not is_over:
            mapping.withdraw()
