"""A queue of this program with workers of its own: what `Space.eval` and `Pool` are made of.

The queue has a name of its own, and its tuples are removed when it ends. A thread that is still at
work then removes the tuples of its task when the task is over. If the program was killed, the next
program that makes a queue in the same space removes them. It finds a tuple `("tupelo.pool",
queue)`: the program holds it by a claim, so it is back when the program is dead.
"""

from __future__ import annotations

import os
from concurrent.futures import wait
from contextlib import ExitStack, suppress
from time import monotonic

from tupelo._native import Space, is_same, present
from tupelo.errors import (
    ClaimLost,
    ConnectionLost,
    RemoteError,
    SpaceNotFound,
    SpaceRemoved,
    Timeout,
    TupeloError,
)
from tupelo.space import reconnect
from tupelo.tasks import protocol
from tupelo.tasks.crew import Processes, Terms, Threads, processors
from tupelo.tasks.discarding import discard_queue
from tupelo.tasks.failures import how_to_look
from tupelo.tasks.mailbox import LOOK_S, Mailbox, new_name
from tupelo.tasks.mailboxes import Mailboxes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tupelo._native import Claim, Sync
    from tupelo.tasks.crew import Crew
    from tupelo.tasks.mailbox import TaskFuture

__all__ = ["LocalPool", "connection_like", "is_private"]

POOL = "tupelo.pool"

SERVED = ("unix://", "tcp://", "tls://")
"""How the URLs begin of spaces whose claims end with a server."""

A_WEEK_S = 7 * 24 * 3600.0
"""How long a program may be stopped until its tuples count as those of a dead one."""


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
        """Make a queue. The arguments are as in `Server`; workers come with `add`.

        Raises:
            SpaceFull: there was no room for its mark within `room_timeout_s`.
        """
        self.space = space
        self.used_at = monotonic()
        """When it last got something to do, or is about to, where that is noted."""
        self._pid = os.getpid()
        self._alive: Claim[Any] | None = None
        if is_private(space):
            self.queue = new_name()
        else:
            _remove_those_of_the_dead(space)
            self.queue, self._alive = _marked_queue(space, room_timeout_s)
        self.broken: RemoteError | None = None
        """Why there are no workers and will be none."""
        hint = how_to_look(space.url, self.queue) if keeps_dead else None
        self.mailbox = Mailbox(space, f"{self.queue}/futures", hint=hint, on_look=self.keep_mark)
        self._looked_at = monotonic()
        self.mailboxes = Mailboxes(space, self.queue)
        terms = Terms(self.queue, None, ttl_s, timeout_s, keeps_dead)
        self.crew: Crew
        if threads:
            self.crew = Threads(connection_like(space), terms, self._break)
        else:
            self.crew = Processes(space, terms, self._break)

    def open_mailbox(self, at_end: Callable[[], None]) -> str:
        """Make up a mailbox from which the caller takes the answers itself.

        If the workers have ended, an answer with the number `NOBODY` says so, if there is room for
        it; `broken` says it in any case. If the mailbox is still open when the pool ends well,
        `at_end` is called after the last answer.

        Raises:
            RemoteError: there are no workers any more, and why.
            RuntimeError: this is a fork's copy.
        """
        self.require_own()
        name = self.mailboxes.open(at_end)
        if self.broken is not None:
            self.mailboxes.close(name)
            raise self.broken
        return name

    def submit(
        self,
        function: Any,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        *,
        attempts_max: int,
        timeout_s: float | None = None,
        sync: Sync | None = None,
    ) -> TaskFuture:
        """Put a task, and return its future. The arguments are as in `Mailbox.submit`.

        Raises:
            RemoteError: there are no workers any more, and why.
            RuntimeError: this is a fork's copy.
        """
        self.require_own()
        if self.broken is not None:
            raise self.broken
        future = self.mailbox.submit(
            self.queue,
            function,
            arguments,
            keywords,
            attempts_max=attempts_max,
            timeout_s=timeout_s,
            sync=sync,
        )
        if self.broken is not None:  # perhaps before this one was due, so that it was not told
            self.mailbox.fail(self.broken)
        return future

    def grow(self, tasks: int) -> None:
        """Start another worker if there are more tasks than workers, up to one per processor."""
        if self.crew.count() < min(tasks, processors()):
            self.crew.add(1)

    def finish(self) -> None:
        """Wait until every task is answered, end the workers, and remove the rest.

        Raises:
            RemoteError: there are tasks of an open mailbox that no worker will do, and why.
        """
        if self._pid != os.getpid():
            return  # a fork's copy: tasks and workers belong to the parent
        self._wait_for_answers()
        self.mailboxes.end()
        if self.broken is None:
            self.crew.end()
        else:  # they were killed
            self.crew.leave()
        self._remove()

    def kill(self) -> None:
        """End the workers now, and remove the rest. Futures without an answer fail."""
        if self._pid != os.getpid():
            return  # as above
        if self.broken is None:
            self.broken = RemoteError("the pool was ended before this task was done")
        self.mailbox.why_gone = self.broken
        try:
            with ExitStack() as steps:  # the last one first, and each whatever another one raises
                steps.callback(self.crew.leave)
                steps.callback(self.mailbox.fail, self.broken)
                steps.callback(self.crew.kill)
                # First, so that no worker begins another; without room for that they end all the
                # same.
                discard_queue(self.space, self.queue)
        except BaseException as error:
            try:
                self._remove()
            except TupeloError as further:
                error.add_note(str(further))
            raise
        self._remove()

    def require_own(self) -> None:
        """Refuse the child of a fork: its tasks would have the numbers of its parent's tasks."""
        if self._pid != os.getpid():
            message = (
                "this pool belongs to the process that this one was forked from: make another one"
            )
            raise RuntimeError(message)

    def keep_mark(self) -> None:
        """See that the space says that this program lives: a server forgets it when it is killed.

        Until then another pool in the space may take this one for that of a dead program.
        """
        if self._looked_at + LOOK_S > monotonic() or not self.space.url.startswith(SERVED):
            return
        self._looked_at = monotonic()
        alive = self._alive
        with suppress(ConnectionLost):  # the next look sees what has become of it
            if alive is not None:
                with suppress(ClaimLost):
                    alive.extend()
                    return
                with suppress(ClaimLost):
                    alive.__exit__(None, None, None)
                self._alive = None
            self._alive = _marked(self.space, self.queue)

    def _wait_for_answers(self) -> None:
        # A task is gone as soon as its answer is in the space, which is not yet in its future.
        wait(self.mailbox.due())
        while self.broken is None:
            try:
                # Tasks that are being worked on count as well (rule O9).
                self.space.wait_none(protocol.task_of(self.queue), timeout=LOOK_S)
            except Timeout:
                self.keep_mark()
                continue
            return

    def _break(self, why: str) -> None:
        """Note that a worker cannot go on, and so none can; tell all callers that wait."""
        self.broken = RemoteError(why)
        self.broken.space = self.space.url
        self.mailbox.fail(self.broken)
        self.mailboxes.put_nobody()
        self.crew.kill()

    def _remove(self) -> None:
        self.mailboxes.forget()
        discard_queue(self.space, self.queue)
        # A thread that waits in `finish` may come here, too, when another thread kills the pool.
        alive, self._alive = self._alive, None
        if alive is None:
            return
        try:
            with suppress(SpaceRemoved):
                alive.__exit__(None, None, None)
        except (ClaimLost, ConnectionLost):  # with the server that is there no more
            self.space.discard(POOL, self.queue)


def connection_like(space: Space) -> Space:
    """Open one more connection to a space.

    Raises:
        SpaceRemoved: the name is that of another space by now, or of none.
        SpaceNotFound: the same, and the space does not know it yet.
    """
    present(space, (POOL, str), {})  # which says how it was removed
    own = reconnect(Space, space.url, space.objects == "pickle")
    if not is_same(own, space):
        own.close()
        message = f"{space.url} is another space now: that of this connection has lost its name"
        raise SpaceNotFound(message)
    return own


def _marked_queue(space: Space, timeout_s: float | None) -> tuple[str, Claim[Any]]:
    """Make up a queue, and mark it as one of a program that lives, for as long as that does."""
    while True:
        queue = new_name()
        space.put(POOL, queue, timeout=timeout_s)
        alive = space.try_claim(POOL, queue, ttl=A_WEEK_S)
        # None if another program removed it in between as that of a dead program.
        if alive is not None:
            alive.__enter__()  # renewed from now on
            return queue, alive


def _marked(space: Space, queue: str) -> Claim[Any] | None:
    """Mark a queue again; None if somebody else has the mark in hands at the moment."""
    space.put_if_absent(POOL, queue, unless=(POOL, queue))
    alive = space.try_claim(POOL, queue, ttl=A_WEEK_S)
    if alive is not None:
        alive.__enter__()  # renewed from now on
    return alive


def _remove_those_of_the_dead(space: Space) -> None:
    while (claim := space.try_claim(POOL, str)) is not None:
        with claim as (_, queue):
            discard_queue(space, queue)
