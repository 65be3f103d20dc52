"""A queue of this program with workers of its own: what `Space.eval` and `Pool` are made of.

The queue has a name that no other program has, and its tuples are gone when it ends. If the program
was killed, the next one that makes a queue in the same space removes them: a tuple
`("tupelo.pool", queue)`, which its program holds by a claim, is back when the program is dead.
"""

from __future__ import annotations

from concurrent.futures import wait
from contextlib import suppress
from itertools import count

from tupelo._native import remove
from tupelo.errors import RemoteError, SpaceFull, Timeout
from tupelo.space import connect
from tupelo.tasks import protocol
from tupelo.tasks.crew import Processes, Terms, Threads, processors
from tupelo.tasks.failures import how_to_look
from tupelo.tasks.mailbox import Mailbox, new_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Claim, Space
    from tupelo.tasks.crew import Crew
    from tupelo.tasks.mailbox import TaskFuture

__all__ = ["LOOK_S", "LocalPool", "is_private"]

POOL = "tupelo.pool"

LOOK_S = 1.0
"""How often to look, while waiting for answers, whether there are still workers."""

A_WEEK_S = 7 * 24 * 3600.0
"""How long a program may be stopped until its tuples are taken for those of a dead one."""


def is_private(space: Space) -> bool:
    """Whether no other process sees the space."""
    return space.url.startswith("mem://")


class LocalPool:
    """Workers of this program, and the futures of their tasks."""

    def __init__(
        self,
        space: Space,
        *,
        threads: bool,
        ttl_s: float = protocol.TTL_S,
        timeout_s: float | None = None,
        keeps_dead: bool = False,
        room_timeout_s: float | None = None,
    ) -> None:
        """Make a queue. The arguments are those of `Server`; workers come with `add`.

        Raises:
            SpaceFull: there was no room for its mark within `room_timeout_s`.
        """
        self.space = space
        self._alive: Claim[Any] | None = None
        if is_private(space):
            self.queue = new_name()
        else:
            _remove_those_of_the_dead(space)
            self.queue, self._alive = _marked_queue(space, room_timeout_s)
        self.broken: RemoteError | None = None
        """Why there are no workers and will be none."""
        hint = how_to_look(space.url, self.queue) if keeps_dead else None
        self.mailbox = Mailbox(space, f"{self.queue}/futures", hint=hint)
        self._open: set[str] = set()
        self._mailbox_numbers = count()
        terms = Terms(self.queue, None, ttl_s, timeout_s, keeps_dead)
        self.crew: Crew
        if threads:
            self.crew = Threads(space, terms, self._break)
        else:
            self.crew = Processes(space, terms, self._break)

    def open_mailbox(self) -> str:
        """Make up a mailbox from which the caller takes the answers itself.

        If the workers are no more, there is an answer with the number `NOBODY` in it, if there is
        room for that; `broken` says it in any case.

        Raises:
            RemoteError: there are no workers any more, and why.
        """
        name = f"{self.queue}/{next(self._mailbox_numbers)}"
        self._open.add(name)
        if self.broken is not None:
            raise self.broken
        return name

    def close_mailbox(self, name: str) -> None:
        """Take no more answers from there."""
        self._open.discard(name)

    def submit(
        self,
        function: Any,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        *,
        attempts_max: int,
        timeout_s: float | None = None,
    ) -> TaskFuture:
        """Put a task, and return its future. The arguments are those of `Mailbox.submit`.

        Raises:
            RemoteError: there are no workers any more, and why.
        """
        if self.broken is not None:
            raise self.broken
        return self.mailbox.submit(
            self.queue,
            function,
            arguments,
            keywords,
            attempts_max=attempts_max,
            timeout_s=timeout_s,
        )

    def grow(self, tasks: int) -> None:
        """Start another worker if there are more tasks than workers, up to one per processor."""
        if self.crew.count() < min(tasks, processors()):
            self.crew.add(1)

    def finish(self) -> None:
        """Wait until every task is answered, end the workers, and remove what is left."""
        self._wait_for_answers()
        if self.broken is None:
            self.crew.end()
        self._remove()

    def kill(self) -> None:
        """End the workers now, and remove what is left. Futures without an answer fail."""
        try:
            # First, so that nobody begins another one; without room for that they end all the same.
            _take_all(self.space, self.queue)
        finally:
            self.crew.kill()
            self.mailbox.fail(RemoteError("the pool was ended before this task was done"))
        self._remove()

    def _wait_for_answers(self) -> None:
        # A task is gone as soon as its answer is there, which is not yet in its future.
        wait(self.mailbox.due())
        while self.broken is None:
            try:
                # Tasks that are being worked on count as well (rule O9).
                self.space.wait_none(protocol.task_of(self.queue), timeout=LOOK_S)
            except Timeout:
                continue
            return

    def _break(self, why: str) -> None:
        """Note that a worker can not go on, and so none can; tell all who wait for an answer."""
        self.broken = RemoteError(why)
        self.broken.space = self.space.url
        self.mailbox.fail(self.broken)
        for name in list(self._open):
            # Who waits there looks at `broken` now and then: without room it learns it a bit later.
            with suppress(SpaceFull):
                self.space.put(
                    protocol.ANSWER, name, protocol.NOBODY, protocol.FAILED, {}, timeout=0
                )
        self.crew.kill()

    def _remove(self) -> None:
        _take_all(self.space, self.queue)
        if self._alive is not None:
            self._alive.__exit__(None, None, None)
            self._alive = None


def _take_all(space: Space, queue: str) -> None:
    """Remove the tuples of a queue, except its dead letters."""
    everything = (
        protocol.task_of(queue) | protocol.end_of(queue) | protocol.answers_under(f"{queue}/")
    )
    if space.count(everything) == 0:
        return
    # Moved and not taken: what can not be read here is to go as well.
    scheme = space.url.partition("://")[0]
    trash = f"{scheme}://{queue}-trash"
    with connect(trash) as other:
        space.move_to(other, everything)
    remove(trash)


def _marked_queue(space: Space, timeout_s: float | None) -> tuple[str, Claim[Any]]:
    """Make up a queue, and mark it as one of a program that lives, for as long as that does."""
    while True:
        queue = new_name()
        space.put(POOL, queue, timeout=timeout_s)
        alive = space.try_claim(POOL, queue, ttl=A_WEEK_S)
        # None if somebody else, who cleans up, took it for that of a dead program in between.
        if alive is not None:
            alive.__enter__()  # renewed from now on
            return queue, alive


def _remove_those_of_the_dead(space: Space) -> None:
    while (claim := space.try_claim(POOL, str)) is not None:
        _take_all(space, claim.tuple[1])
        claim.done()
