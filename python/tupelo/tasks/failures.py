"""How a failed attempt travels: a map of texts and numbers, and never an object of its exception.

An exception may be of a class that only the worker has, or hold values that cannot be sent. A
reader needs the text of the traceback, and where and how often it happened.
"""

from __future__ import annotations

import builtins
import os
import reprlib
import traceback

from tupelo.errors import NotEncodable, RemoteError, SchemaMismatch, TupeloError
from tupelo.tasks.protocol import DEAD, is_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

__all__ = [
    "described",
    "described_death",
    "described_delay",
    "how_to_look",
    "is_of_value",
    "lost",
    "original",
    "remote_error",
    "shown_call",
    "without_task",
]

TRACEBACK_CHARACTERS_MAX = 20_000
"""Of a longer text the end is kept: it says what happened."""

BYTES_MAX = 20_000
"""Of an exception's argument: bytes that could not be decoded may be a whole file."""

PLAIN = (type(None), bool, int, float, str, bytes)

_short = reprlib.Repr()
_short.maxother = _short.maxstring = 40


def described(error: BaseException, *, outside: str) -> dict[str, Any]:
    """Describe an exception; its outermost frames, of the file `outside`, are not the task's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == outside:
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace)
    arguments = error.args if all(map(_travels, error.args)) else ()
    return {
        "type": f"{type(error).__module__}.{type(error).__qualname__}",
        "arguments": tuple(_text(part) if type(part) is str else part for part in arguments),
        "traceback": _text("".join(lines).rstrip()),
        **_here(),
    }


def described_delay(timeout_s: float, frame: FrameType | None) -> dict[str, Any]:
    """Describe a task that ran for too long, and its stack."""
    message = f"the task ran for longer than {timeout_s:g} s"
    lines = ["Traceback (most recent call last):\n", *traceback.format_stack(frame)]
    lines.append(f"TimeoutError: {message}")
    return {
        "type": "builtins.TimeoutError",
        "arguments": (message,),
        "traceback": _text("".join(lines)),
        **_here(),
    }


def described_death(deaths: int) -> dict[str, Any]:
    """Describe the end of a task whose workers died, one after the other."""
    message = f"{deaths} workers were killed, crashed or were stopped while they worked on it"
    return {"type": "tupelo.WorkersDied", "arguments": (message,), "traceback": message, **_here()}


def without_task(error: dict[str, Any], why: TupeloError) -> dict[str, Any]:
    """Describe a failure of a task that there is no room to try again, or to keep."""
    left = f"it is neither tried again nor kept as a dead letter: {why.args[0]}"
    told = f"{error['traceback']}\n{left}"
    return {**error, "arguments": (), "traceback": told, "is_kept": False}


def is_of_value(error: Exception) -> bool:
    """Whether a value cannot be stored or made, perhaps by its own code: the space is well."""
    of_value = isinstance(error, (NotEncodable, SchemaMismatch))
    return of_value or not isinstance(error, TupeloError)


def remote_error(call: str, error: object, *, url: str, hint: str | None) -> RemoteError:
    """Make the exception for an answer that says how a task has failed.

    Args:
        call: the function and its arguments, as in `render(7, "scene")`.
        error: a worker's description of a failure. One from another language may not keep to the
            protocol: the caller is told in any case.
        url: the space.
        hint: where the task is now, if it is kept.
    """
    told: dict[Any, Any] = error if isinstance(error, dict) else {"traceback": error}
    attempts, attempts_max = told.get("attempts"), told.get("attempts_max")
    trace = str(told.get("traceback", "the worker told no reason"))
    place = f"on {told.get('host', 'an unknown host')} (pid {told.get('pid', 'unknown')})"
    indented = "\n".join(f"  {line}" for line in trace.splitlines())
    failed = RemoteError(f"{call} failed {place}, attempt {attempts} of {attempts_max}\n{indented}")
    failed.hint = None if told.get("is_kept") is False else hint
    failed.space = url
    failed.kind = str(told.get("type"))
    failed.traceback = trace
    failed.attempts = attempts if isinstance(attempts, int) else None
    failed.__cause__ = original(failed.kind, told.get("arguments"))
    return failed


def lost(what: str, url: str) -> RemoteError:
    """Make the exception for tuples that are gone from a space: as in "3 tasks are"."""
    error = RemoteError(
        f"{what} not in the space any more: it drops its oldest tuples, or somebody has taken them"
    )
    error.space = url
    return error


def how_to_look(url: str, queue: str) -> str:
    """Say what shows the dead letters of a queue: in a shell, if other processes see them."""
    if url.startswith("mem://"):
        return f"it is a dead letter now; look:  space.read_all({DEAD!r}, {queue!r}, ts.REST)"
    return f"it is a dead letter now; look:  tupelo read {url} {DEAD} {queue} ..."


def shown_call(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    """Show a call in a line."""
    name = function.rpartition(":")[2] if isinstance(function, str) else repr(function)
    parts = [_shown_part(part) for part in arguments]
    parts += [f"{keyword}={_shown_part(part)}" for keyword, part in keywords.items()]
    return f"{name.removeprefix('tupelo.')}({', '.join(parts)})"


def _shown_part(part: Any) -> str:
    return shown_call(*part[1:]) if is_call(part) else _short.repr(part)


def original(kind: str, arguments: Any) -> BaseException | None:
    """Return the worker's exception if it is one of Python's own: nothing else is looked up."""
    module, _, name = kind.partition(".")
    original = getattr(builtins, name, None) if module == "builtins" else None
    if not (isinstance(original, type) and issubclass(original, Exception)):
        return None
    try:
        return original(*arguments)
    except Exception:  # noqa: BLE001 - arguments that it does not take: the text has to do
        return None


def _travels(part: object) -> bool:
    """Whether an argument of an exception is sent with it."""
    return type(part) in PLAIN and not (isinstance(part, bytes) and len(part) > BYTES_MAX)


def _here() -> dict[str, Any]:
    return {"host": os.uname().nodename, "pid": os.getpid()}


def _text(text: str) -> str:
    """Return a text that can be stored: without lone surrogates, and not too long."""
    kept = text if len(text) <= TRACEBACK_CHARACTERS_MAX else "…" + text[-TRACEBACK_CHARACTERS_MAX:]
    return kept.encode("utf-8", "backslashreplace").decode("utf-8")
