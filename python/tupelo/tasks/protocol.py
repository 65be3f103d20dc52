"""The tuples of a task. docs/tasks.md says the same to programs in other languages.

    ("tupelo.task", queue, function, arguments, keywords, mailbox, number, failures, attempts_max)
    ("tupelo.answer", mailbox, number, "done", value)
    ("tupelo.answer", mailbox, number, "failed", error)                         error is a map
    ("tupelo.dead", queue, function, arguments, keywords, number, error)        a failed task, kept
    ("tupelo.end", queue)                                                       ends one worker
    ("tupelo.pool", queue)                                                      the queue is in use

A worker claims a task and puts the answer under the claim. A task that raised is put again, under
the claim too, with one failure more; a task whose worker died comes back by itself. The program
whose queue it is claims the last of these for as long as it lives (local.py).
"""

from __future__ import annotations

from typing import NamedTuple

from tupelo import F, like
from tupelo._native import Sent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tupelo._native import Template

__all__ = [
    "ANSWER",
    "CALL",
    "DEAD",
    "DEATHS_MAX",
    "DONE",
    "END",
    "EVAL",
    "FAILED",
    "NOBODY",
    "RESULT_TTL_S",
    "TASK",
    "TTL_S",
    "Task",
]

TASK = "tupelo.task"
ANSWER = "tupelo.answer"
DEAD = "tupelo.dead"
END = "tupelo.end"

DONE = "done"
FAILED = "failed"

EVAL = "tupelo.eval"
"""As the function of a task: its arguments are the fields of a tuple to put."""
CALL = "tupelo.call"
"""Begins such a field if it is to be computed: `(CALL, function, arguments, keywords)`."""

DEATHS_MAX = 3
"""Workers that may die of a task before it has failed: it is more likely that it kills them."""

NOBODY = -1
"""The number of an answer to no task: no worker is left to answer."""

RESULT_TTL_S = 3600.0
"""How long an answer stays that nobody takes, by default."""

TTL_S = 30.0
"""How long a worker may be silent before its task is given to another, by default."""


class Task(NamedTuple):
    """A task, without the word at its beginning."""

    queue: str
    function: Any
    """`"module:name"`, or a callable object, where the policy of the space allows pickles."""
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    mailbox: str
    """Where the answer goes; empty if there is to be none."""
    number: int
    """Chosen by the caller that put the task; the answer carries it."""
    failures: int
    """Attempts that raised."""
    attempts_max: int
    """The task has failed when so many attempts have raised."""

    def to_tuple(self) -> tuple[Any, ...]:
        """Return the tuple to put."""
        return (TASK, self.queue, *self.call(), *self[4:])

    def call(self) -> tuple[Any, Any, Any]:
        """Return function, arguments and keywords as they are put."""
        if self.function != EVAL:
            return (self.function, Sent(self.arguments), Sent(self.keywords))
        # A field that is not called becomes a field of a tuple, and must be storable.
        fields = (sent_call(field) if is_call(field) else field for field in self.arguments)
        return (EVAL, tuple(fields), self.keywords)


def is_call(field: object) -> bool:
    """Whether a field of a tuple to put is to be computed."""
    if type(field) is not tuple or len(field) != 4:  # noqa: PLR2004
        return False
    # Not `==` at once: that of an array gives an array.
    return type(field[0]) is str and field[0] == CALL


def sent_call(field: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return such a field as it is put."""
    _, function, arguments, keywords = field
    return (CALL, function, Sent(arguments), Sent(keywords))


# The functions below make the templates in one place: all callers ask alike, and a space needs one
# index for it.


def task_of(queue: str) -> Template[Any]:
    """Match the tasks of a queue."""
    return like(TASK, queue, ..., tuple, dict, str, int, int, int)


def end_of(queue: str) -> Template[Any]:
    """Match what ends a worker of the queue."""
    return like(END, queue)


def tasks_from(mailbox: str, number: Any = int) -> Template[Any]:
    """Match the tasks that are answered to a mailbox, and have not been begun."""
    return like(TASK, str, ..., tuple, dict, mailbox, number, int, int)


def answer_to(mailbox: str, number: Any = int) -> Template[Any]:
    """Match the answers in a mailbox."""
    return like(ANSWER, mailbox, number, str, ...)


def failures_in(mailbox: str) -> Template[Any]:
    """Match the answers in a mailbox that have no value."""
    return like(ANSWER, mailbox, int, FAILED, dict)


def answers_under(prefix: str) -> Template[Any]:
    """Match the answers in all mailboxes whose names begin with `prefix`."""
    return like(ANSWER, F.prefix(prefix), int, str, ...)


def dead_of(queue: str) -> Template[Any]:
    """Match the dead letters of a queue."""
    return like(DEAD, queue, ..., tuple, dict, int, dict)
