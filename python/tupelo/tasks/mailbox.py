"""Puts tasks into a space, and makes futures of the answers.

One thread per mailbox takes the answers, as many as there are at a time, as long as any are due.
"""

from __future__ import annotations

import os
import secrets
import threading
from functools import partial
from itertools import count
from typing import Any

from tupelo import F
from tupelo.errors import TupeloError
from tupelo.futures import PromptFuture, settle
from tupelo.tasks import protocol
from tupelo.tasks.failures import is_of_value, remote_error, shown_call
from tupelo.tasks.protocol import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tupelo._native import Space
    from tupelo.errors import RemoteError

__all__ = ["Mailbox", "TaskFuture", "failure_of", "new_name"]

ANSWERS_MAX = 1_000
"""Answers that are taken in one step."""


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
        """What was put."""

    def cancel(self) -> bool:
        """Withdraw the task from the space; return whether it was still there."""
        if self.cancelled():
            return True
        return self._mailbox.withdraw(self.task.number) and super().cancel()


class Mailbox:
    """Where the answers to the tasks of one program go."""

    def __init__(self, space: Space, name: str | None = None, *, hint: str | None = None) -> None:
        """Make up a name, if there is none.

        Args:
            space: where the tasks go.
            name: no other mailbox of the space may have it.
            hint: what to type when a task has failed.
        """
        self.name = new_name() if name is None else name
        self.space = space
        self._hint = hint
        self._numbers = count()
        self._lock = threading.Lock()
        self._due: dict[int, TaskFuture] = {}
        self._has_thread = False
        self._unreadable: set[int] = set()

    def submit(
        self,
        queue: str,
        function: Any,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        *,
        attempts_max: int,
        timeout_s: float | None = None,
        put: Callable[..., object] | None = None,
    ) -> TaskFuture:
        """Put a task; return the future of its answer.

        Args:
            queue: who is to do it.
            function: what the worker calls.
            arguments: with these arguments.
            keywords: with these, by name.
            attempts_max: how often it is tried.
            timeout_s: longest wait for room, as for `Space.put`.
            put: what puts it instead of the space, without a wait for room.

        Raises:
            NotEncodable: the function or an argument can not be stored.
            SpaceFull: there is no room for it.
        """
        number = next(self._numbers)
        task = Task(queue, function, arguments, keywords, self.name, number, 0, attempts_max)
        future = TaskFuture(self, task)
        with self._lock:
            self._due[number] = future
        try:
            (put or partial(self.space.put, timeout=timeout_s))(*task.to_tuple())
        except BaseException:
            self._forget(number)
            raise
        try:
            self._start()
        except BaseException:
            if not self.withdraw(number):
                self._forget(number)  # somebody works on it, and answers nobody
            raise
        return future

    def _start(self) -> None:
        """See to it that somebody takes answers while any are due."""
        with self._lock:
            if self._due and not self._has_thread:
                threading.Thread(target=self._run, name="tupelo answers", daemon=True).start()
                self._has_thread = True  # not before: there may be no more threads to be had

    def due(self) -> list[TaskFuture]:
        """Return the futures that have no answer yet."""
        with self._lock:
            return list(self._due.values())

    def withdraw(self, number: int) -> bool:
        """Take a task back, if nobody has begun."""
        try:
            taken = self.space.try_take(protocol.tasks_from(self.name, number))
        except TupeloError:
            return False
        if taken is not None:
            self._forget(number)
        return taken is not None

    def forget(self, future: TaskFuture) -> None:
        """Expect no answer: the task was never there."""
        self._forget(future.task.number)

    def fail(self, error: BaseException) -> None:
        """End all futures with an exception: nobody is there to answer.

        Not those that were answered or withdrawn since: who takes one off the list may end it.
        """
        for future in self.due():
            if self._forget(future.task.number) is not None:
                settle(future.set_exception, error)

    def _run(self) -> None:
        """Deliver answers until none are due."""
        try:
            while True:
                for _, _, number, outcome, value in self._take():
                    self._deliver(number, outcome, value)
                with self._lock:
                    if not self._due:
                        self._has_thread = False
                        return
        except BaseException as error:  # noqa: BLE001 - there is nobody else who could tell them
            with self._lock:
                self._has_thread = False
            self.fail(error)

    def _take(self) -> list[Any]:
        """Wait for answers, and take those that are there."""
        number: Any = ~F.in_(self._unreadable) & int if self._unreadable else int
        template = protocol.answer_to(self.name, number)
        try:
            return self.space.take_many(template, n=ANSWERS_MAX, at_least=1)
        except Exception as error:
            if not is_of_value(error):
                raise
            return self._take_readable(error)

    def _take_readable(self, problem: Exception) -> list[Any]:
        """Take the answers one by one: one of them has a value that can not be made here.

        That one stays in the space, and its future has the exception that says what is missing. If
        it is the answer to nobody, the `problem` is raised.
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
