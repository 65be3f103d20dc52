"""A worker: claims a task, computes it, and answers under the claim, until it is told to end.

The answer appears at the moment in which the task is consumed (rule K4), so that a worker may be
killed or stopped at any instruction: the task is answered once. A task that raised is put again
under the claim, behind all others; one whose worker died is back at its old place.
"""

from __future__ import annotations

from time import monotonic

from tupelo._native import Sent, claim_partly, like
from tupelo.errors import ClaimLost, ConnectionLost, LimitExceeded, NotEncodable, SpaceFull
from tupelo.tasks import functions, protocol
from tupelo.tasks.failures import (
    described,
    described_death,
    described_delay,
    is_of_value,
    without_task,
)
from tupelo.tasks.protocol import DEATHS_MAX, EVAL, Task
from tupelo.tasks.timekeeper import Timekeeper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from tupelo._native import Claim, Space

__all__ = ["Server"]

ROOM_LOOK_S = 0.1
"""How long to wait for room in a full space before looking whether this worker is to end."""

ROOM_LOOK_S_MAX = 2.0
"""The same when there was none again and again."""

ROOM_TOLD_S = 60.0
"""How often a worker says that it waits for room."""


class Server:
    """One worker of a queue, in the thread that calls `serve`."""

    def __init__(
        self,
        space: Space,
        queue: str,
        *,
        only: str | None = None,
        ttl_s: float = protocol.TTL_S,
        timeout_s: float | None = None,
        keeps_dead: bool = False,
        result_ttl_s: float | None = protocol.RESULT_TTL_S,
    ) -> None:
        """Get ready.

        Args:
            space: where the tasks are.
            queue: the name of the tasks to serve.
            only: the path of the one function that is served. None serves all functions.
            ttl_s: how long this process may be silent (stopped) before the task is another's.
            timeout_s: how long a task may run before this process is ended.
            keeps_dead: whether a task that has failed is also put as a dead letter.
            result_ttl_s: how long an answer stays that nobody takes. None keeps it for ever.
        """
        self._space = space
        self._wanted = like(protocol.task_of(queue)) | like(protocol.end_of(queue))
        self._only = only
        self._ttl_s = ttl_s
        self._keeps_dead = keeps_dead
        self._result_ttl_s = result_ttl_s
        self._running: tuple[Claim[Any], Task] | None = None
        self._timekeeper = None if timeout_s is None else Timekeeper(timeout_s, self._late)
        self._timeout_s = timeout_s
        self.is_busy = False
        """Whether a task is being computed: a caller that ends this worker may wait."""
        self.is_to_end = False
        """Set by a caller, to end this worker after its task."""

    def serve(self) -> None:
        """Serve until a tuple `("tupelo.end", queue)` is taken, or `is_to_end` is set.

        Raises:
            SpaceClosed: the connection was closed.
        """
        while not self.is_to_end:
            claim = self._next()
            if claim.tuple[0] == protocol.END:
                claim.done()
                return
            self.is_busy = True
            if self.is_to_end:  # its setter has seen that this one is not busy
                self.is_busy = False
                claim.abort()
                return
            try:
                # Renews the claim, and gives the task back if something ends this thread.
                with claim as fields:
                    self._work(claim, Task._make(fields[1:]))
            except ClaimLost:
                # This process was stopped for longer than the time to live, or the server was
                # started again: somebody else has the task, and nothing of what was done here
                # appears (rule K3).
                continue
            except ConnectionLost:
                # The task has its answer, or is another's. If there is no connection any more, the
                # next claim says so.
                continue
            finally:
                self.is_busy = False

    def _next(self) -> Claim[Any]:
        """Claim a task, or what ends this worker.

        If a field cannot be read here, an exception with the reason stands in its place. Perhaps no
        worker can read it, and the caller must be told.
        """
        try:
            return self._space.claim(self._wanted, ttl=self._ttl_s)
        except Exception as error:
            if not is_of_value(error):
                raise
        # Another one may have it by now, and give it back: so this, too, is a wait.
        return claim_partly(self._space, self._wanted, ttl=self._ttl_s, timeout=None)

    def _work(self, claim: Claim[Any], task: Task) -> None:
        unreadable = [field for field in task if isinstance(field, Exception)]
        if unreadable:
            self._refuse(claim, task, unreadable[0])
            return
        if claim.attempt > DEATHS_MAX:
            self._fail(claim, task, described_death(DEATHS_MAX), is_final=True)
            return
        try:
            value = self._computed_in_time(claim, task)
        except KeyboardInterrupt:
            raise  # it is meant for the worker, and the task is for another one
        except BaseException as error:  # noqa: BLE001 - who asked for it gets to know
            self._fail(claim, task, described(error, outside=__file__))
        else:
            self._answer(claim, task, value)

    def _answer(self, claim: Claim[Any], task: Task, value: Any) -> None:
        """Let the result appear, or an answer that says why the result cannot be stored."""
        try:
            # This one first: what can be a part of it can also be a field of its own.
            if task.mailbox:
                self._put_answer(claim, task, value)
            if task.function == EVAL:
                claim.put(*value)
        except KeyboardInterrupt:
            raise  # as above
        except (SpaceFull, LimitExceeded) as error:
            self._fail_for_good(claim, task, error)
        except BaseException as error:  # noqa: BLE001 - of code of the value's own
            self._fail(claim, task, described(error, outside=__file__))
        else:
            self._done_or_too_large(claim, task)

    def _done_or_too_large(self, claim: Claim[Any], task: Task) -> None:
        """Let the answer appear, or an answer that says it is larger than the whole space."""
        try:
            self._done(claim)
        except (SpaceFull, LimitExceeded) as error:
            self._fail_for_good(claim, task, error)

    def _fail_for_good(self, claim: Claim[Any], task: Task, error: BaseException) -> None:
        """End a task whose result is too large: it would be as large again."""
        last = task._replace(attempts_max=task.failures + 1)
        self._fail(claim, last, described(error, outside=__file__))

    def _put_answer(self, claim: Claim[Any], task: Task, value: Any) -> None:
        """Put the answer with the computed tuples.

        Raises:
            NotEncodable: the result cannot be stored. The message says where in the result, or
                which field of a tuple that computes itself. It does not name the answer's own
                fields.
        """
        # That of `eval` is a tuple, whose fields are to be some.
        sent = value if task.function == EVAL else Sent(value)
        answer = (protocol.ANSWER, task.mailbox, task.number, protocol.DONE, sent)
        try:
            claim.put(*answer, lease=self._result_ttl_s)
        except NotEncodable as error:
            place = f"field {len(answer) - 1}"
            message = str(error.args[0])
            if message.startswith(place):
                what = message.removeprefix(place)
                index, _, rest = what.removeprefix("[").partition("]")
                is_field = task.function == EVAL and what.startswith("[")
                error.args = (f"field {index}{rest}" if is_field else f"the result{what}",)
            raise

    def _computed_in_time(self, claim: Claim[Any], task: Task) -> Any:
        if self._timekeeper is None:
            return self._computed(task)
        self._running = (claim, task)
        # When the renewal is over no other thread touches the claim.
        with self._timekeeper:
            return self._computed(task)

    def _computed(self, task: Task) -> Any:
        if task.function != EVAL:
            return self._called(task.function, task.arguments, task.keywords)
        return tuple(
            self._called(*field[1:]) if protocol.is_call(field) else field
            for field in task.arguments
        )

    def _called(self, function: Any, arguments: Any, keywords: Any) -> Any:
        if self._only is not None and function != self._only:
            message = f"this worker serves {self._only}, not {function}"
            raise LookupError(message)
        found = functions.at(function) if isinstance(function, str) else function
        return found(*arguments, **keywords)

    def _late(self, frame: FrameType | None) -> None:
        """End a task that runs for too long; called by another thread, before the process ends."""
        if self._running is not None and self._timeout_s is not None:
            self._fail(*self._running, described_delay(self._timeout_s, frame))

    def _fail(
        self, claim: Claim[Any], task: Task, error: dict[str, Any], *, is_final: bool = False
    ) -> None:
        """End an attempt that failed: try again, or else answer that it has failed."""
        failures = task.failures if is_final else task.failures + 1
        deaths = claim.attempt - 1
        error["attempts"] = failures + deaths
        error["attempts_max"] = max(task.attempts_max, failures + deaths)
        puts = _answers(task, error)
        if failures < task.attempts_max and not is_final:
            puts = [task._replace(failures=failures).to_tuple()]
        elif self._keeps_dead:
            puts.insert(0, (protocol.DEAD, task.queue, *task.call(), task.number, error))
        try:
            self._end(claim, puts)
        except (SpaceFull, LimitExceeded) as full:
            # The task goes only when they are in the space: there never will be room for it twice.
            self._end(claim, _answers(task, without_task(error, full)))

    def _refuse(self, claim: Claim[Any], task: Task, why: Exception) -> None:
        """Answer that a task cannot be read here: no worker could put it again as it was."""
        error = {**described(why, outside=__file__), "attempts": claim.attempt, "is_kept": False}
        error["attempts_max"] = max(task.attempts_max, claim.attempt)
        self._end(claim, _answers(task, error))

    def _end(self, claim: Claim[Any], puts: list[tuple[Any, ...]]) -> None:
        """Be done with a task; these appear for it, and nothing else."""
        claim._discard_puts()  # noqa: SLF001 - half an answer may be among them
        for fields in puts:
            is_answer = fields[0] == protocol.ANSWER
            claim.put(*fields, lease=self._result_ttl_s if is_answer else None)
        self._done(claim)

    def _done(self, claim: Claim[Any]) -> None:
        """Let the answer appear; in a full space, as soon as there is room for it.

        If this worker is to end meanwhile, the task is another one's again.

        Raises:
            SpaceFull: there never will be. It is still claimed.
        """
        look_s, told_at = ROOM_LOOK_S, None
        while True:
            try:
                claim.done(timeout=look_s)
            except SpaceFull as full:
                if not full.may_pass:
                    raise
                if self.is_to_end:
                    claim.abort("the worker was ended while it waited for room for the answer")
                    return
                if told_at is None or monotonic() >= told_at + ROOM_TOLD_S:
                    told_at = monotonic()
                    _tell_of_room(claim, full)
                look_s = min(look_s * 2, ROOM_LOOK_S_MAX)
            else:
                return


def _tell_of_room(claim: Claim[Any], full: SpaceFull) -> None:
    """Say that a worker waits, which is not visible otherwise."""
    import logging  # noqa: PLC0415 -- the half of what `import tupelo` would cost

    _, queue, function, *_ = claim.tuple
    message = "a worker of %s can not put the answer of %s, and waits for room: %s"
    logging.getLogger("tupelo").warning(message, queue, function, full)


def _answers(task: Task, error: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the answer to a task that has failed; none, if none is wanted."""
    if not task.mailbox:
        return []
    return [(protocol.ANSWER, task.mailbox, task.number, protocol.FAILED, error)]
