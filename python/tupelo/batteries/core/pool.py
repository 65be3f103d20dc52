"""What `Pool` does, in both faces: `Mapping` gives out tasks and collects their answers.

The tasks of one `map` are answered to a mailbox of their own, and whoever iterates takes the
answers from there: as many as there are at a time, with no thread in between.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from operator import length_hint
from time import monotonic
from typing import NamedTuple

from tupelo.batteries import checks
from tupelo.batteries.progress import Bar
from tupelo.errors import ConnectionLost, RemoteError, SpaceFull, Timeout
from tupelo.spawn import WORKERS_MAX
from tupelo.tasks import functions, protocol
from tupelo.tasks.crew import Processes, processors
from tupelo.tasks.failures import is_of_value, lost
from tupelo.tasks.local import LocalPool, is_private
from tupelo.tasks.mailbox import LOOK_S, failure_of
from tupelo.tasks.protocol import Task
from tupelo.tasks.room import free_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from tupelo._native import Seconds, Space
    from tupelo.batteries.verbs import Verbs
    from tupelo.tasks.mailbox import TaskFuture

__all__ = ["Failure", "Failures", "Mapping", "Terms"]

RETRIES_MAX = 1_000_000

AHEAD_MAX = 4096
"""Tasks that are given out before the next result is taken: the input may be without end."""

BATCH = 256
"""Tasks that are put in one step."""

SLOW_S = 0.01
"""Values that take longer than that to come go out as they come, and answers are looked at."""

BEGIN_S = 0.1
"""For so long `map` itself waits for slow values at least, and not for more once one is done."""

GLANCE_S = 0.001
"""How long to wait for answers before the next slow value: asyncio's other tasks have a turn."""

ANSWERS_MAX = 1024
"""Answers that are taken in one step."""


class Failure(NamedTuple):
    """A task that has failed: all its attempts have raised, or its workers have died.

    Its `error` has the traceback as a text.
    """

    args: tuple[Any, ...]
    """The arguments of the call."""
    attempts: int
    """How many there were."""
    error: RemoteError


class Terms(NamedTuple):
    """The arguments of a pool, checked."""

    workers: int
    retries: int
    timeout_s: float | None
    ttl_s: float
    progress: bool

    @classmethod
    def checked(
        cls,
        workers: int | None,
        retries: int,
        timeout: Seconds | None,
        ttl: Seconds,
        progress: bool,  # noqa: FBT001
    ) -> Terms:
        """Check the arguments; no number of workers is one per processor.

        Raises:
            TypeError: one has another type.
            ValueError: one is out of bounds.
        """
        ttl_s, timeout_s = checks.times_of_work(ttl, timeout)
        return cls(
            processors() if workers is None else checks.number_of("workers", workers, WORKERS_MAX),
            checks.number_of("retries", retries, RETRIES_MAX, at_least=0),
            timeout_s,
            ttl_s,
            bool(progress),
        )

    def start(self, space: Space) -> LocalPool:
        """Start the workers."""
        pool = self.open(space)
        self.populate(pool)
        return pool

    def open(self, space: Space, room_timeout_s: float | None = None) -> LocalPool:
        """Make a pool that has no workers yet; the room is for its mark."""
        threads = is_private(space)
        if threads and self.timeout_s is not None:
            message = (
                f"the workers of {space.url} are threads, and nothing stops a thread:"
                f" use shm://{space.name}, or leave timeout out"
            )
            raise ValueError(message)
        return LocalPool(
            space,
            threads=threads,
            ttl_s=self.ttl_s,
            timeout_s=self.timeout_s,
            room_timeout_s=room_timeout_s,
        )

    def populate(self, pool: LocalPool) -> None:
        """Start the workers of a pool that has none."""
        try:
            pool.crew.add(self.workers)
        except BaseException:
            pool.kill()
            raise

    def mapping(
        self,
        verbs: Verbs,
        pool: LocalPool,
        function: Callable[..., Any],
        iterables: tuple[Iterable[Any], ...],
        failures: Failures,
        *,
        as_completed: bool,
        return_exceptions: bool,
    ) -> Mapping:
        """Make a `map`; `begin` or `more` begins it."""
        if not iterables:
            message = "map needs something to call the function with: give an iterable"
            raise TypeError(message)
        bar = None
        if self.progress:
            lengths = [length_hint(values, -1) for values in iterables]
            total = min(lengths)
            name = getattr(function, "__name__", "tasks")
            bar = Bar(name, None if total < 0 else total)
        return Mapping(
            verbs,
            pool,
            function,
            iterables,
            attempts_max=self.retries + 1,
            as_completed=as_completed,
            return_exceptions=return_exceptions,
            failures=failures,
            bar=bar,
        )

    def submit(
        self,
        pool: LocalPool,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        timeout_s: float | None = None,
    ) -> TaskFuture:
        """Put one task, waiting for room as `Space.put` does."""
        sent = functions.sendable(function)
        return pool.submit(
            sent, arguments, keywords, attempts_max=self.retries + 1, timeout_s=timeout_s
        )

    def pids(self, pool: LocalPool) -> list[int]:
        """Return the process ids of the workers."""
        return pool.crew.pids() if isinstance(pool.crew, Processes) else []

    def end(self, pool: LocalPool, *, is_well: bool) -> None:
        """End the workers: after the tasks that were submitted, or now."""
        if not is_well:
            pool.kill()
            return
        try:
            pool.finish()
        except BaseException:
            pool.kill()
            raise


class Failures:
    """The failures of a pool, and which of them were not reported yet."""

    def __init__(self) -> None:
        """Begin with none."""
        self._all: list[Failure] = []
        self._untold: list[RemoteError] = []

    def all(self) -> list[Failure]:
        """Return all failures. That changes nothing: `map` has not reported them by this."""
        return list(self._all)

    def add(self, failure: Failure) -> None:
        """Note one more."""
        self._all.append(failure)
        self._untold.append(failure.error)

    def told(self, errors: list[RemoteError]) -> None:
        """Note that `map` has reported these, or an earlier one of the same `map`."""
        self._untold = [error for error in self._untold if not any(error is one for one in errors)]

    def raise_untold(self) -> None:
        """Raise the first failure that was not reported: no failure is lost silently."""
        if not self._untold:
            return
        error = self._untold[0]
        if len(self._untold) > 1:
            more = len(self._untold) - 1
            tasks_have = "task has" if more == 1 else "tasks have"
            error.add_note(f"{more} more {tasks_have} failed: look at pool.failures")
        raise error


class Mapping:
    """One `map`: a function, and the values of its calls."""

    def __init__(
        self,
        verbs: Verbs,
        pool: LocalPool,
        function: Callable[..., Any],
        iterables: tuple[Iterable[Any], ...],
        *,
        attempts_max: int,
        as_completed: bool,
        return_exceptions: bool,
        failures: Failures,
        bar: Bar | None,
    ) -> None:
        """Get ready; nothing is put yet."""
        self._verbs = verbs
        self._pool = pool
        self._function = functions.sendable(function)
        self._calls: Iterator[tuple[Any, ...]] = zip(*iterables, strict=False)
        self._attempts_max = attempts_max
        self._as_completed = as_completed
        self._return_exceptions = return_exceptions
        self._failures = failures
        self._own_failures: list[RemoteError] = []
        self._to_raise: RemoteError | None = None
        """The failure whose turn it is, once the results before it were handed out."""
        self._bar = bar
        self._mailbox = pool.open_mailbox(self._note_failures)
        self._answers = protocol.answer_to(self._mailbox)
        self._next_number = 0
        self._next_result = 0
        self._out: dict[int, Task] = {}
        self._early: dict[int, tuple[Any, RemoteError | None]] = {}
        self._unput: list[Task] = []
        """Made already, and there was no room for them, or for their answers."""
        self._out_max = AHEAD_MAX
        """So many may be out: fewer once there was no room for their answers."""
        self._room_bytes = 0
        """The most that was free since nothing was out."""
        self._batch = 1
        """Values that the next batch has at most: one where they come slowly."""
        self._is_slow = False
        """Whether the values of the last batch were slow to come."""

    async def more(self) -> list[Any] | None:
        """Return some results, waiting for them; None at the end.

        Raises:
            RemoteError: the next task has failed, unless exceptions are to be returned; or there
                are no workers any more, and why.
            NotEncodable: an argument cannot be stored, or a result cannot be made here.
            SchemaMismatch: a result is of a class that is not here.
            SpaceFull: there is no room for a single task.
            RuntimeError: this is a fork's copy: the tasks and answers belong to the parent.
        """
        self._pool.require_own()
        while True:
            self._pool.keep_mark()
            if self._to_raise is not None:
                # Not raised again at the end of the block, nor are the later failures.
                self._failures.told(self._own_failures)
                raise self._to_raise
            has_slow_values = await self.fill()
            if not self._out:
                self._pool.mailboxes.close(self._mailbox)
                if self._bar is not None:
                    self._bar.end(self._next_number)
                return None
            results = []
            answers = await self._some_answers(is_glance=has_slow_values)
            for answer in answers:
                results += self._answered(*answer[2:])
            self._out_max = min(self._out_max + len(answers), AHEAD_MAX)
            if self._bar is not None:
                self._bar.show(self._next_number - len(self._out) - len(self._unput))
            if results:
                if self._return_exceptions:
                    self._failures.told([one for one in results if isinstance(one, RemoteError)])
                return results

    async def _some_answers(self, *, is_glance: bool) -> list[Any]:
        """Take the answers in the space, waiting for one; none if all tasks were taken back.

        A glance waits for a moment only: there are more tasks to be given out.

        Raises:
            RemoteError: there are no workers any more, and there was no room for an answer that
                says so; or there are no tasks any more.
        """
        while True:
            with suppress(Timeout):
                return await self._verbs.take_many(
                    self._answers,
                    n=ANSWERS_MAX,
                    at_least=1,
                    timeout=GLANCE_S if is_glance else LOOK_S,
                )
            if self._pool.broken is not None:
                raise self._pool.broken
            if is_glance:
                return []
            await self._require_tasks()
            if self._is_short_of_room():
                await self._take_back()
                if not self._out:
                    return []

    async def _require_tasks(self) -> None:
        """See that there is something to wait for: a space may drop its oldest tuples.

        Raises:
            RemoteError: there is not.
        """
        try:
            await self._verbs.wait_none(protocol.tasks_from(self._mailbox), timeout=0)
        except Timeout:
            return
        # Only now: a task goes when its answer comes.
        if await self._verbs.count(self._answers) == 0:
            what = f"{len(self._out)} tasks and their answers are"
            raise lost(what, self._pool.space.url)

    async def begin(self) -> None:
        """Give out the first tasks: as `fill`; of slow values no more once one of them is done."""
        until = monotonic() + BEGIN_S
        while await self.fill():
            if monotonic() >= until and await self._verbs.count(self._answers) > 0:
                return

    async def fill(self) -> bool:
        """Give out tasks until there are enough, or no more, or their answers need the room.

        Returns:
            Whether there may be more to give out: the values come slowly, and by now there may be
            answers that the caller waits for.

        The tasks that are out have a quarter of the room, or up to a half, as their number at most
        doubles at each step. The rest is for the answers: a task keeps its own room until it is
        answered.
        """
        while True:
            if not self._unput and self._ahead() <= AHEAD_MAX - BATCH:
                self._unput = self._new_tasks()
            if not self._unput:
                return False
            put = await self._put_some(self._unput[: self._count_to_put()])
            if put == 0:
                return False
            self._out.update((task.number, task) for task in self._unput[:put])
            del self._unput[:put]
            if self._is_slow and not self._unput:
                return True

    def withdraw(self) -> None:
        """Take back the tasks that no worker has begun: no more results are wanted."""
        self._pool.mailboxes.abandon(self._mailbox)

    def _note_failures(self) -> None:
        """At the end of the pool: note the failures of tasks whose results were not taken.

        Raises:
            RemoteError: there were no workers for some of them, and why.
        """
        space, broken = self._pool.space, self._pool.broken
        for _, _, number, outcome, value in space.take_all(protocol.failures_in(self._mailbox)):
            if number != protocol.NOBODY:
                self._answered(number, outcome, value)
        if broken is not None and len(self._out) > space.count(protocol.answer_to(self._mailbox)):
            raise broken

    def _count_to_put(self) -> int:
        """Return how many tasks may be put in one step: one at least if none is out."""
        out = len(self._out)
        if out == 0:
            self._room_bytes = free_bytes(self._pool.space)  # anew: others use the space, too
            return 1
        if self._is_short_of_room():
            return 0
        return max(min(out, BATCH, self._out_max - out), 0)

    def _is_short_of_room(self) -> bool:
        """Whether so much of the room has been taken since that answers may lack it."""
        free = free_bytes(self._pool.space)
        self._room_bytes = max(self._room_bytes, free)
        return free < self._room_bytes * 3 // 4

    async def _take_back(self) -> None:
        """Take back the tasks that no worker has begun: workers may wait for room for answers."""
        try:
            waiting = await self._verbs.take_all(protocol.tasks_from(self._mailbox))
        except Exception as error:
            if not is_of_value(error):
                raise
            return  # one of them cannot be read here: they stay
        unput = []
        for fields in waiting:
            told = Task._make(fields[1:])
            task = self._out.pop(told.number, None)
            if task is not None:
                unput.append(task._replace(failures=told.failures))
        self._unput[:0] = unput
        # One for each worker, and one more with each answer: else as many as now would go there and
        # back again and again.
        self._out_max = max(len(self._out), self._pool.crew.count())

    async def _put_some(self, tasks: list[Task]) -> int:
        """Put as many as there is room for; return how many, 0 if answers are to be taken first."""
        some = tasks
        while some:
            # Also where puts wait for room: room comes with the answers, which are taken here.
            try:
                return await self._put_all(some, timeout=0)
            except SpaceFull:
                some = some[: len(some) // 2]
        if self._out:
            return 0
        return await self._put_all(tasks[:1])

    async def _put_all(self, tasks: list[Task], **options: Any) -> int:
        """Put tasks; once, also if a connection is lost and made again meanwhile."""
        while True:
            try:
                return await self._verbs.put_all([task.to_tuple() for task in tasks], **options)
            except ConnectionLost as lost:
                if not lost.may_have_happened:
                    raise
                if await self._is_there(tasks[0]):
                    return len(tasks)

    async def _is_there(self, task: Task) -> bool:
        """Whether a task or its answer is in the space: then so are all that were put with it."""
        try:
            await self._verbs.wait_none(protocol.tasks_from(self._mailbox, task.number), timeout=0)
        except Timeout:
            return True
        # Only now: a task goes when its answer comes.
        return await self._verbs.count(protocol.answer_to(self._mailbox, task.number)) > 0

    def _ahead(self) -> int:
        """Count the tasks that were given out and are not answered, or whose turn it is not."""
        if self._as_completed:
            return len(self._out)
        return self._next_number - self._next_result

    def _new_tasks(self) -> list[Task]:
        """Make tasks of the next values: no task waits long for the ones behind it."""
        tasks = []
        until = monotonic() + SLOW_S
        self._is_slow = False
        for arguments in islice(self._calls, self._batch):
            number = self._next_number
            self._next_number += 1
            tasks.append(
                Task(
                    self._pool.queue,
                    self._function,
                    arguments,
                    {},
                    self._mailbox,
                    number,
                    0,
                    self._attempts_max,
                )
            )
            if monotonic() >= until:
                self._is_slow = True
                break
        self._batch = 1 if self._is_slow else min(self._batch * 2, BATCH)
        return tasks

    def _answered(self, number: int, outcome: str, value: Any) -> list[Any]:
        """Note an answer; return the results whose turn it is now."""
        if number == protocol.NOBODY:
            raise self._pool.broken or RemoteError("the pool has ended")
        task = self._out.pop(number, None)
        if task is None:
            # From a worker that does not keep to the protocol: its first answer was taken.
            return []
        error = None
        if outcome != protocol.DONE:
            value = error = failure_of(self._pool.space, task, value, None)
            self._failures.add(Failure(task.arguments, error.attempts or 1, error))
            self._own_failures.append(error)
        if self._as_completed:
            return self._in_turn(value, error)
        self._early[number] = (value, error)
        results: list[Any] = []
        while self._next_result in self._early and self._to_raise is None:
            results += self._in_turn(*self._early.pop(self._next_result))
            self._next_result += 1
        return results

    def _in_turn(self, value: Any, error: RemoteError | None) -> list[Any]:
        """Return the result whose turn it is; none if a failure is to be raised instead."""
        if error is None or self._return_exceptions:
            return [value]
        self._to_raise = self._to_raise or error
        return []
