"""The lines of a record: what stands in them, and how they get into the file of this process.

Each process writes a file of its own, a line per operation, at once: what a killed process did is
there, but not of claims and transactions that were open. docs/command-line.md says what a line has.

A program never fails because it is recorded: what can not be written down is said once on standard
error, and left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from contextlib import suppress
from functools import lru_cache

from tupelo._native import Rest, Template, like
from tupelo.entries import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Note: TypeAlias = Callable[..., None]

__all__ = ["VARIABLE", "without_harm", "words", "write"]

VARIABLE = "TUPELO_RECORD"
LONG_BYTES = 64  # a value that is longer is recorded as its digest
DIGEST_BYTES = 8

KINDS = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str", bytes: "bytes"}


_ENCODE = json.JSONEncoder(check_circular=False).encode  # what `words` makes has no circles


def write(url: str, verb: str, **told: Any) -> None:
    """Write down one operation in the space at `url`.

    `tuple` and `template` are lists of words, as `words` makes them, or None for what was not
    found; the other values stand in the line as they are.
    """
    line = {"time_ns": time.monotonic_ns(), "pid": os.getpid(), "space": url, "verb": verb} | told
    _append(_ENCODE(line))


def words(patterns: tuple[Any, ...], fields: dict[str, Any] | None = None) -> dict[str, list[str]]:
    """Return a tuple's or a template's `kinds` and `words`, a word for each field.

    What is more than its fields (an entry, a ready template, one with a condition) is one word.
    """
    fields = fields or {}
    if not fields and len(patterns) > 1 and all(map(_is_plain, patterns)):
        # What most tuples are, in a fifth of the time.
        kinds = [KINDS[each if type(each) is type else type(each)] for each in patterns]
        return {"kinds": kinds, "words": [_plain_text(each, type(each)) for each in patterns]}
    kinds = [_kind(pattern) for pattern in patterns]
    sole = patterns[0] if len(patterns) == 1 else None
    if _is_entry(sole) and not isinstance(sole, type):
        sole, fields = type(sole), _entry_fields(sole) | fields
        patterns = (sole,)
    if fields or _is_entry(sole) or _is_ready(sole):
        return {"kinds": kinds, "words": [str(like(*map(_short, patterns), **_all_short(fields)))]}
    return {"kinds": kinds, "words": [_text(_short(pattern)) for pattern in patterns]}


def _is_plain(pattern: Any) -> bool:
    """Whether it is a number or a short text, or the type of one, and can be nothing else."""
    kind = type(pattern)
    if kind is str:
        return len(pattern) <= LONG_BYTES
    return kind is int or kind is float or (kind is type and pattern in KINDS)


@lru_cache(maxsize=1_024)
def _text_of_few(pattern: Any, kind: type) -> str:
    """The text of a tag, or of a type: a program has few of them, and they come again and again."""
    del kind  # what is equal may be of two kinds
    return _text(pattern)


def _plain_text(pattern: Any, kind: type) -> str:
    # Numbers come once each; and 0.0 is equal to -0.0, but has another text.
    return _text(pattern) if kind is int or kind is float else _text_of_few(pattern, kind)


def _entry_fields(entry: Any) -> dict[str, Any]:
    described = describe(type(entry))
    names = [] if described is None else [name for name, _, _ in described[2]]
    return {name: getattr(entry, name) for name in names}


def _all_short(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields by name, with the condition as it is: it is no value."""
    return {name: one if name == "where" else _short(one) for name, one in fields.items()}


def _kind(field: Any) -> str:
    """The kind of a value, or of the values that a type stands for."""
    if isinstance(field, type):
        return KINDS.get(field, "array" if field.__name__ == "ndarray" else "other")
    if type(field) in KINDS:
        return KINDS[type(field)]
    return "array" if _is_array(field) else "other"


def _is_array(value: Any) -> bool:
    if isinstance(value, type):  # which stands for any value of it
        return False
    return isinstance(value, memoryview) or hasattr(value, "__array_interface__")


def _is_entry(value: Any) -> bool:
    """Whether the value is an entry, or a class of entries."""
    return describe(value if isinstance(value, type) else type(value)) is not None


def _is_ready(value: Any) -> bool:
    return isinstance(value, Template)


def _text(field: Any) -> str:
    """A pattern's text. It needs company: a tuple alone would be taken for all the patterns."""
    if isinstance(field, Rest):
        return "..."
    try:
        return str(like(field, ...))[1 : -len(", _)")]
    except Exception:  # noqa: BLE001 - an object, which is stored as a pickle and has no text
        return _text(("tupelo.object", type(field).__qualname__))


def _short(value: Any) -> Any:
    """The value, or one of its kind that stands for it in a record, with the word "digest" in it.

    Equal values have equal digests, so that a template finds what it would have found.
    """
    if isinstance(value, str) and len(value) > LONG_BYTES:
        return _named_digest(value.encode())
    if isinstance(value, bytes) and len(value) > LONG_BYTES:
        return _named_digest(value).encode()
    if _is_array(value) and memoryview(value).nbytes > LONG_BYTES:
        return memoryview(_named_digest(memoryview(value).tobytes()).encode())
    if type(value) in (list, tuple, dict) and len(text := _text(value)) > LONG_BYTES:
        digest = _named_digest(text.encode())
        return {digest: None} if type(value) is dict else type(value)([digest])
    return value


def _named_digest(data: bytes) -> str:
    return f"digest {hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()}"


class without_harm:  # noqa: N801 - a context manager, which no generator is as fast as
    """Keep what goes wrong in writing down from the program: the operation has taken effect.

    What is odd about one operation is left out, and the next is written again.
    """

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        """Whatever it is, it is not the program's."""
        if not isinstance(error, Exception):
            return False
        _warn(f"an operation is not in the record: {error!r}")
        return True


class _File:
    """The file of this process; a forked child opens one of its own, and warns for itself."""

    pid = 0
    descriptor = -1
    identity = (0, 0)
    """The device and the number of the file: a program that closes what is not its own may get the
    same descriptor for a file of its own."""
    stopped_pid = 0
    """The process that has given up to write."""
    warned_pid = 0


def _append(line: str) -> None:
    """Append a line in one call of the system; where that fails, write nothing more from here.

    The folder is gone if this process outlives the command that was recorded.
    """
    pid = os.getpid()
    if _File.stopped_pid == pid:
        return
    data = (line + "\n").encode()
    try:
        if os.write(_descriptor(pid), data) == len(data):
            return
        why = "there is no room for a whole line"
    except (OSError, KeyError) as error:
        why = str(error)
    _File.stopped_pid = pid
    _warn(f"process {pid} is no longer recorded: {why}")


def _descriptor(pid: int) -> int:
    if _File.pid != pid or not _is_still_ours():
        path = os.path.join(os.environ[VARIABLE], f"{pid}.jsonl")  # noqa: PTH118 - a light import
        # Of threads that come here together each opens it; the number says that one has.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        _File.identity = _identity(descriptor)
        _File.descriptor = descriptor
        _File.pid = pid
    return _File.descriptor


def _is_still_ours() -> bool:
    try:
        return _identity(_File.descriptor) == _File.identity
    except OSError:  # it is closed
        return False


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _warn(message: str) -> None:
    """Say it on standard error, if this process has said nothing yet."""
    if _File.warned_pid != os.getpid():
        _File.warned_pid = os.getpid()
        with suppress(Exception):  # it may be closed, or None
            sys.stderr.write(f"tupelo record: {message}\n")
