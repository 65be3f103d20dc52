"""`worker`: a function that others call, and that processes of their own compute."""

from __future__ import annotations

import functools
from typing import Any, Generic, ParamSpec, TypeVar, cast

from tupelo.batteries.core.remote import Address, Terms
from tupelo.batteries.verbs import AtOnce, run
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Literal

    from tupelo._native import Seconds

__all__ = ["RemoteFunction", "worker"]

P = ParamSpec("P")
R = TypeVar("R")


@suggests
def worker(
    url: str | None = None,
    *,
    retries: int = 0,
    ttl: Seconds = 30,
    timeout: Seconds | None = None,
    concurrency: int = 1,
    objects: Literal["strict", "pickle"] | None = None,
    ignore_result: bool = False,
    result_ttl: Seconds | None = 3600,
) -> Callable[[Callable[P, R]], RemoteFunction[P, R]]:
    """Have a function computed by worker processes: `tupelo worker MODULE:FUNCTION` starts them.

    The function can still be called as it is, and then runs here; `submit` has it run there. The
    tuples are in docs/tasks.md.

    Args:
        url: the space where tasks and workers meet, as for `connect`.
        retries: how often a task that raised is tried again. One whose worker dies is done again
            in any case, until three workers have died of it.
        ttl: for how many seconds a worker may be stopped until its task is given to another.
        timeout: how many seconds a task may take. Then its process is ended, and it counts as an
            attempt that raised `TimeoutError`. None for as long as it likes.
        concurrency: how many processes `tupelo worker` starts, if it is not told.
        objects: what becomes of arguments and results that are no field of a tuple, as for
            `connect`, here and in the workers.
        ignore_result: whether to discard the results. Then workers put none, and the future of
            `submit` is done at once, with None. It says nothing of a task that fails: `dead` does.
        result_ttl: how many seconds a result that is not collected stays in the space. The program
            that submitted the task collects it at once, as long as it runs. None keeps results for
            ever.

    Raises:
        TypeError: an argument of another type, or a function that workers cannot find.
        ValueError: an argument out of bounds.

    >>> from tupelo.batteries import worker
    >>> @worker("shm://film", retries=3)
    ... def render(frame: int) -> str:
    ...     return f"frame {frame}"
    >>> render(7)
    'frame 7'
    """
    terms = Terms.checked(
        retries=retries,
        ttl=ttl,
        timeout=timeout,
        concurrency=concurrency,
        objects=objects,
        ignore_result=ignore_result,
        result_ttl=result_ttl,
    )

    def decorate(function: Callable[P, R]) -> RemoteFunction[P, R]:
        return RemoteFunction(function, Address(url, function, terms))

    return decorate


class RemoteFunction(Generic[P, R]):
    """A function with a queue of its own. Made by `worker`."""

    def __init__(self, function: Callable[P, R], address: Address) -> None:
        """Take the place of the function."""
        functools.update_wrapper(self, function)
        self._function = function
        self.address = address
        """The queue of its tasks, and their terms."""

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Call the function here."""
        return self._function(*arguments, **keywords)

    def __repr__(self) -> str:
        """Show its name, and where it is served."""
        return f"<worker {self.address.queue} in {self.address.url}>"

    def submit(self, *arguments: P.args, **keywords: P.kwargs) -> Future[R]:
        """Call the function where `tupelo worker` serves it; return the future of its result.

        It waits as long as there is no worker. If the task has failed, the future raises
        `RemoteError` with the worker's traceback. If the space has dropped the task, the error has
        no traceback. `cancel()` succeeds as long as no worker has begun.

        Raises:
            NotEncodable: an argument cannot be stored.
            SpaceFull: there is no room for the task.
            ValueError: the space is a `mem://` one, which no worker sees.
        """
        return cast("Future[R]", self.address.submit(arguments, keywords))

    def dead(self) -> list[dict[str, Any]]:
        """Return the tasks that have failed, the oldest first, and leave them where they are.

        Each is a dict with `arguments`, `keywords`, `error` (its traceback, as a text) and
        `attempts`.
        """
        return self.address.dead()

    def retry(self) -> list[Future[R]]:
        """Have all tasks that have failed done again; return their futures.

        It waits for room as `Space.put` does. If there is not enough room for all, the tasks
        without room stay in `dead`.

        Raises:
            SpaceFull: there is no room for a single one. All are still in `dead`.
        """
        futures = run(self.address.retry(AtOnce(self.address.connection())))
        return [cast("Future[R]", future) for future in futures]
