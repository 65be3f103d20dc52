"""Where the tasks of a function go that is served by `tupelo worker`, and what becomes of them."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import suppress
from typing import NamedTuple

from tupelo.batteries import checks
from tupelo.batteries.core.pool import RETRIES_MAX
from tupelo.errors import SpaceFull, SpaceRemoved, TupeloError
from tupelo.space import connect, require_objects
from tupelo.spawn import WORKERS_MAX
from tupelo.tasks import crew, functions, protocol
from tupelo.tasks.failures import how_to_look
from tupelo.tasks.local import is_private
from tupelo.tasks.mailbox import Mailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from tupelo._native import Seconds, Space
    from tupelo.batteries.verbs import Held, Verbs
    from tupelo.tasks.mailbox import TaskFuture

__all__ = ["Address", "Terms", "public_terms", "require_shared"]


class Terms(NamedTuple):
    """The arguments of `worker`, checked."""

    retries: int
    ttl_s: float
    timeout_s: float | None
    concurrency: int
    objects: Literal["strict", "pickle"] | None
    ignore_result: bool
    result_ttl_s: float | None

    @classmethod
    def checked(
        cls,
        *,
        retries: int,
        ttl: Seconds,
        timeout: Seconds | None,
        concurrency: int,
        objects: Literal["strict", "pickle"] | None,
        ignore_result: bool,
        result_ttl: Seconds | None,
    ) -> Terms:
        """Check the arguments.

        Raises:
            TypeError: one has another type.
            ValueError: one is out of bounds.
        """
        ttl_s, timeout_s = checks.times_of_work(ttl, timeout)
        require_objects(objects)
        if type(ignore_result) is not bool:
            message = f"ignore_result is {ignore_result!r}: give True or False"
            raise TypeError(message)
        return cls(
            checks.number_of("retries", retries, RETRIES_MAX, at_least=0),
            ttl_s,
            timeout_s,
            checks.number_of("concurrency", concurrency, WORKERS_MAX),
            objects,
            ignore_result,
            checks.result_ttl(result_ttl),
        )


class Address:
    """The queue of a function, and the mailbox of this process for its answers."""

    def __init__(self, url: str | None, function: Callable[..., Any], terms: Terms) -> None:
        """Note where it is; nothing is connected yet.

        Raises:
            TypeError: workers cannot find the function.
        """
        self._url = url
        self.terms = terms
        self.queue = functions.public_path_of(function)
        """Also the path of the function."""
        self._lock = threading.RLock()
        self._mailbox: tuple[int, Mailbox] | None = None
        _addresses.add(self)

    def begin_anew(self) -> None:
        """In the child of a fork: another thread of the parent may have had the lock."""
        self._lock = threading.RLock()

    @property
    def url(self) -> str:
        """The space."""
        return self._url or os.environ.get("TUPELO_URL") or "shm://default"

    def connect(self, url: str | None = None) -> Space:
        """Open the space, or another one in its place."""
        return connect(url or self.url, objects=self.terms.objects)

    def crew_terms(self) -> crew.Terms:
        """Return how it is to be served."""
        terms = public_terms(self.queue, self.terms.ttl_s, self.terms.timeout_s)
        return terms._replace(result_ttl_s=self.terms.result_ttl_s)

    def submit(
        self,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        timeout_s: float | None = None,
    ) -> TaskFuture:
        """Put a task, waiting for room as `Space.put` does; return the future of its answer.

        Where the space was removed since, it is put in the one that has the name now.
        """
        try:
            return self._submit(arguments, keywords, timeout_s)
        except SpaceRemoved:  # nothing was put
            with self._lock:
                self._mailbox = None
            return self._submit(arguments, keywords, timeout_s)

    def _submit(
        self, arguments: tuple[Any, ...], keywords: dict[str, Any], timeout_s: float | None
    ) -> TaskFuture:
        mailbox = self._own_mailbox()
        submit = mailbox.submit_unanswered if self.terms.ignore_result else mailbox.submit
        return submit(
            self.queue,
            self.queue,
            arguments,
            keywords,
            attempts_max=self.terms.retries + 1,
            timeout_s=timeout_s,
        )

    def connection(self) -> Space:
        """Return the connection by which this process puts tasks."""
        return self._own_mailbox().space

    def dead(self) -> list[dict[str, Any]]:
        """Return the tasks that have failed."""
        letters = self._own_mailbox().space.read_all(protocol.dead_of(self.queue))
        return [_shown(letter) for letter in letters]

    async def retry(self, space: Verbs) -> list[TaskFuture]:
        """Put the tasks that have failed once more, each in one step with its removal.

        It waits for room as the space was created. `space` is the connection, of either face.

        Raises:
            SpaceFull: there is no room for a single one. They are as they were.
        """
        mailbox = self._own_mailbox()
        dead = protocol.dead_of(self.queue)
        futures: list[TaskFuture] = []
        # The tasks of this moment: a task that fails again meanwhile is not to be tried for ever.
        for _ in range(mailbox.space.count(dead)):
            held = await space.try_claim(dead)
            if held is None:
                break
            try:
                futures.append(await self._put_again(mailbox, held))
            except BaseException as error:
                if not held.blocking.settled:
                    with suppress(TupeloError):  # the connection was closed, which gives it back
                        await held.abort("not put again")
                if futures and isinstance(error, SpaceFull):
                    break  # the caller waits for the tasks that were put: the others are still dead
                raise
        return futures

    async def _put_again(self, mailbox: Mailbox, held: Held) -> TaskFuture:
        """Put the task of a dead letter at the moment at which that goes."""
        _, queue, function, arguments, keywords, _, _ = held.tuple
        future = mailbox.submit(
            queue,
            function,
            arguments,
            keywords,
            attempts_max=self.terms.retries + 1,
            put=held.blocking.put,
        )
        try:
            async with held:  # which renews it while it waits for room
                await held.done()
        except BaseException:
            mailbox.forget(future)  # its task was not put
            raise
        future.is_put = True
        return future

    def _own_mailbox(self) -> Mailbox:
        """Return the mailbox of this process, also in the child of a fork.

        Raises:
            ValueError: no worker can see the space.
        """
        with self._lock:
            if self._mailbox is None or self._mailbox[0] != os.getpid():
                hint = (
                    f"{how_to_look(self.url, self.queue)}\n"
                    f"and have it done again:  {self.queue.rpartition(':')[2]}.retry()"
                )
                space = self.connect()
                require_shared(space)
                self._mailbox = (os.getpid(), Mailbox(space, hint=hint, is_public=True))
            return self._mailbox[1]


_addresses: weakref.WeakSet[Address] = weakref.WeakSet()


def _begin_anew() -> None:
    for address in _addresses:
        address.begin_anew()


os.register_at_fork(after_in_child=_begin_anew)


def require_shared(space: Space) -> None:
    """Refuse a space that the processes of `tupelo worker` do not see: a task would wait for ever.

    Raises:
        ValueError: it is one.
    """
    if is_private(space):
        message = f"no other program sees {space.url}: use shm://{space.name}"
        raise ValueError(message)


def public_terms(path: str, ttl_s: float, timeout_s: float | None) -> crew.Terms:
    """Return how a function is served in public: by its path, and no other one."""
    return crew.Terms(path, path, ttl_s, timeout_s, keeps_dead=True)


def _shown(letter: tuple[Any, ...]) -> dict[str, Any]:
    _, _, _, arguments, keywords, _, error = letter
    return {
        "arguments": arguments,
        "keywords": keywords,
        "error": error.get("traceback"),
        "attempts": error.get("attempts"),
    }
