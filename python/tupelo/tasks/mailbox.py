"""Puts tasks into a space, and makes futures of the answers.

One thread per mailbox takes the answers, as many as there are at a time, as long as any are due.
Now and then it looks whether its tasks and answers still exist: a space may drop its oldest tuples.
"""

from __future__ import annotations

import os
import secrets
import threading
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import Any

from tupelo import F
from tupelo._native import is_announced, present
from tupelo.errors import ConnectionLost, Stalled, Timeout, TupeloError
from tupelo.futures import PromptFuture, settle
from tupelo.tasks import protocol
from tupelo.tasks.discarding import withdrawn
from tupelo.tasks.failures import is_of_value, lost, remote_error, shown_call
from tupelo.tasks.protocol import Task
from tupelo.threads import system_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tupelo._native import Space, Sync
    from tupelo.errors import RemoteError

__all__ = ["LOOK_S", "Mailbox", "TaskFuture", "failure_of", "new_name"]

ANSWERS_MAX = 1_000
"""Answers that are taken in one step."""

LOOK_S = 1.0
"""How often to look, while waiting for answers, whether there are still tasks, and workers."""

LOOKED_FOR_MAX = 1_000
"""Tasks that are looked for at a time: each is a search. The others have their turn later."""


def new_name() -> str:
    """Make up a name that no other process has."""
    return f"{os.getpid()}-{secrets.token_hex(6)}"


def failure_of(space: Space, task: Task, error: dict[str, Any], hint: str | None) -> RemoteError:
    """Make the exception for a task that was answered with `error`."""
    call = shown_call(task.function, task.arguments, task.keywords)
    return remote_error(call, error, url=space.url, hint=hint)


class TaskFuture(PromptFuture):
    """The future of a task: `cancel` succeeds as long as no worker has begun."""

    def __init__(self, mailbox: Mailbox, task: Task) -> None:
        """Belong to a mailbox."""
        super().__init__()
        self._mailbox = mailbox
        self.task = task
        """The task tuple."""
        self.is_put = False
        """Whether the task was put: if it is not there then, it is done, or lost."""

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the answer, and return its value.

        Raises:
            Timeout: it took longer than `timeout` seconds, and no worker serves the function.
            TimeoutError: it took longer, and a worker does.
            RemoteError: the task has failed.
            CancelledError: it was withdrawn.
        """
        try:
            return super().result(timeout)
        except TimeoutError:
            self._refuse_if_unserved(timeout)
            raise

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the answer, and return why there is no value; None if there is one.

        Raises:
            Timeout, TimeoutError, CancelledError: as `result`.
        """
        try:
            return super().exception(timeout)
        except TimeoutError:
            self._refuse_if_unserved(timeout)
            raise

    def _refuse_if_unserved(self, timeout: float | None) -> None:
        """Say that no worker serves the function, if that is why there is no answer."""
        if self.done():
            return  # in between, or it is the answer
        why = self._mailbox.why_unserved(self.task)
        if why is not None:
            error = Timeout(f"{why[0]} has no result after {timeout:g} s: {why[1]}")
            error.hint = why[2]
            error.space = self._mailbox.space.url
            raise error from None

    def cancel(self) -> bool:
        """Withdraw the task from the space; return whether it was still there."""
        if self.cancelled():
            return True
        return self._mailbox.withdraw(self.task.number) and super().cancel()


class Mailbox:
    """Where the answers to the tasks of one program go."""

    def __init__(
        self,
        space: Space,
        name: str | None = None,
        *,
        hint: str | None = None,
        is_public: bool = False,
        on_look: Callable[[], object] | None = None,
    ) -> None:
        """Make up a name, if there is none.

        Args:
            space: where the tasks go.
            name: no other mailbox of the space may have it.
            hint: what to type when a task has failed.
            is_public: whether other programs do the tasks, if any does: `tupelo worker`.
            on_look: called now and then while answers are due.
        """
        self.name = new_name() if name is None else name
        self.space = space
        self._hint = hint
        self._is_public = is_public
        self._on_look = on_look
        self._pid = os.getpid()
        self._numbers = count()
        self._lock = threading.RLock()
        self._due: dict[int, TaskFuture] = {}
        self._has_thread = False
        self._unreadable: set[int] = set()
        self._leaving: list[int] = []
        """The tasks that a thread is withdrawing."""
        self._looked_for = -1
        """The last task that was looked for."""
        self.why_gone: RemoteError | None = None
        """Why tasks are not there any more, where it is not the space that has dropped them."""

    def submit(
        self,
        queue: str,
        function: Any,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        *,
        attempts_max: int,
        timeout_s: float | None = None,
        sync: Sync | None = None,
        put: Callable[..., object] | None = None,
    ) -> TaskFuture:
        """Put a task; return the future of its answer.

        Args:
            queue: the queue of the workers that are to do it.
            function: the path of the function to call.
            arguments: with these arguments.
            keywords: with these, by name.
            attempts_max: how often it is tried.
            timeout_s: longest wait for room, as for `Space.put`.
            sync: whether this waits for the disk, as for `Space.put`.
            put: what puts it instead of the space, without a wait for room. If it appears only
                later, `is_put` of the future is to be set then.

        Raises:
            NotEncodable: the function or an argument cannot be stored.
            SpaceFull: there is no room for it.
        """
        number = next(self._numbers)
        task = Task(queue, function, arguments, keywords, self.name, number, 0, attempts_max)
        future = TaskFuture(self, task)
        try:
            with self._lock:
                self._due[number] = future
            if put is None:
                self._put(task, timeout_s, sync)
            else:
                put(*task.to_tuple())
        except BaseException:
            # Ctrl-C may come when the task is in the space already.
            if not self.withdraw(number):
                self._forget(number)
            raise
        future.is_put = put is None
        try:
            self._start()
        except BaseException:
            if not self.withdraw(number):
                self._forget(number)  # a worker has it, and its answer is dropped
            raise
        return future

    def _put(self, task: Task, timeout_s: float | None, sync: Sync | None) -> None:
        """Put a task; once, also if a connection is lost and made again meanwhile."""
        while True:
            try:
                self.space.put(*task.to_tuple(), timeout=timeout_s, sync=sync)
            except ConnectionLost as lost:
                if not lost.may_have_happened:
                    raise
                if not self._is_lost(task.number):
                    return
            else:
                return

    def submit_unanswered(
        self,
        queue: str,
        function: Any,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        *,
        attempts_max: int,
        timeout_s: float | None = None,
    ) -> TaskFuture:
        """Put a task without an answer; the arguments are as in `submit`.

        Returns:
            A future that is done, with None as its result.
        """
        task = Task(queue, function, arguments, keywords, "", 0, 0, attempts_max)
        self.space.put(*task.to_tuple(), timeout=timeout_s)
        future = TaskFuture(self, task)
        future.set_running_or_notify_cancel()
        future.set_result(None)
        return future

    def _start(self) -> None:
        """Start the thread that takes answers while any are due, unless it runs."""
        with self._lock:
            if self._due and not self._has_thread:
                system_thread(self._run, "tupelo answers").start()
                self._has_thread = True  # not before: there may be no more threads to be had

    def due(self) -> list[TaskFuture]:
        """Return the futures that have no answer yet."""
        with self._lock:
            return list(self._due.values())

    def withdraw(self, number: int) -> bool:
        """Take a task back, if no worker has begun it, and it is not that of a fork's parent."""
        if self._pid != os.getpid():
            return False
        with self._lock:
            self._leaving.append(number)  # so that it is not taken for one that is lost
        try:
            is_taken = withdrawn(self.space, protocol.tasks_from(self.name, number))
            if is_taken:
                self._forget(number)
        except TupeloError:
            return False
        finally:
            with self._lock:
                self._leaving.remove(number)
        return is_taken

    def why_unserved(self, task: Task) -> tuple[str, str, str] | None:
        """Return the call, that no worker serves it, and what to type; None if one may."""
        if not self._is_public:
            return None
        try:
            if is_announced(self.space, task.queue) is not False:
                return None
            if self.space.count(protocol.tasks_from(self.name, task.number)) == 0:
                return None  # a worker has it
        except TupeloError:  # unknown
            return None
        url = self.space.url
        call = shown_call(task.function, task.arguments, task.keywords)
        what = f"no worker serves {task.queue} in {url}"
        return call, what, f"start one:  tupelo worker {task.queue} -u {url}"

    def forget(self, future: TaskFuture) -> None:
        """Expect no answer: the task was never there."""
        self._forget(future.task.number)

    def fail(self, error: BaseException) -> None:
        """End all futures with an exception: no worker is left to answer.

        Except futures that were answered or withdrawn since: the thread that takes a future off the
        list may end it.
        """
        for future in self.due():
            if self._forget(future.task.number) is not None:
                settle(future.set_exception, error)

    def _run(self) -> None:
        """Deliver answers until none are due."""
        try:
            look_at = monotonic() + LOOK_S
            while True:
                for _, _, number, outcome, value in self._take():
                    self._deliver(number, outcome, value)
                if monotonic() >= look_at:
                    self._fail_lost()
                    if self._on_look is not None:
                        self._on_look()
                    look_at = monotonic() + LOOK_S
                with self._lock:
                    if not self._due:
                        self._has_thread = False
                        return
        except BaseException as error:  # noqa: BLE001 - there is nobody else who could tell them
            with self._lock:
                self._has_thread = False
            self.fail(error)

    def _take(self) -> list[Any]:
        """Wait for answers, not for long, and take all that have come."""
        number: Any = ~F.in_(self._unreadable) & int if self._unreadable else int
        template = protocol.answer_to(self.name, number)
        try:
            return self.space.take_many(template, n=ANSWERS_MAX, at_least=1, timeout=LOOK_S)
        except Timeout:
            return []
        except Exception as error:
            if not is_of_value(error):
                raise
            return self._take_readable(error)

    def _take_readable(self, problem: Exception) -> list[Any]:
        """Take the answers one by one: one of them has a value that cannot be made here.

        That answer stays in the space, and its future gets the exception that says what is missing.
        If the answer belongs to no future, the `problem` is raised.
        """
        answers: list[Any] = []
        known = len(self._unreadable)
        for future in self.due():
            number = future.task.number
            try:
                answer = self.space.try_take(protocol.answer_to(self.name, number))
            except Exception as error:
                if not is_of_value(error):
                    raise
                self._unreadable.add(number)
                if self._forget(number) is not None:
                    settle(future.set_exception, error)
            else:
                answers += [] if answer is None else [answer]
        if not answers and len(self._unreadable) == known:
            raise problem  # or it would be met again and again
        return answers

    def _fail_lost(self) -> None:
        """Fail the futures whose tasks are gone without an answer: there will be none."""
        waiting = [future for future in self.due() if future.is_put]
        later = [future for future in waiting if future.task.number > self._looked_for]
        with suppress(Stalled):  # then the next look tells
            for future in (later or waiting)[:LOOKED_FOR_MAX]:
                number = self._looked_for = future.task.number
                if not self._is_lost(number):
                    continue
                with self._lock:
                    is_due = number not in self._leaving and self._due.pop(number, None) is not None
                if is_due:
                    settle(future.set_exception, self.why_gone or self._lost(future.task))

    def _is_lost(self, number: int) -> bool:
        """Whether neither a task nor its answer is in the space; what is held is there (O9)."""
        # In this order: a task goes when its answer comes.
        looked_for = (protocol.tasks_from(self.name, number), protocol.answer_to(self.name, number))
        return not any(present(self.space, (template,), {}) for template in looked_for)

    def _lost(self, task: Task) -> RemoteError:
        call = shown_call(task.function, task.arguments, task.keywords)
        return lost(f"{call} and its answer are", self.space.url)

    def _deliver(self, number: int, outcome: str, value: Any) -> None:
        future = self._forget(number)
        if future is None:
            return
        if outcome == protocol.DONE:
            settle(future.set_result, value)
        else:
            settle(future.set_exception, failure_of(self.space, future.task, value, self._hint))

    def _forget(self, number: int) -> TaskFuture | None:
        with self._lock:
            return self._due.pop(number, None)
