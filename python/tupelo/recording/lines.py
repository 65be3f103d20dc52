"""The lines of a record: what stands in them, and how they get into the file of this process.

Each process writes a file of its own, a line per operation, at once: what a killed process did is
there. docs/command-line.md says what a line has.
"""

from __future__ import annotations

import hashlib
import json
import os
import time

from tupelo._native import Rest, Template, like
from tupelo.entries import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Note: TypeAlias = Callable[..., None]

__all__ = ["VARIABLE", "words", "write"]

VARIABLE = "TUPELO_RECORD"
LONG_BYTES = 64  # a value that is longer is recorded as its digest
DIGEST_BYTES = 8

KINDS = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str", bytes: "bytes"}


def write(url: str, verb: str, **told: Any) -> None:
    """Write down one operation in the space at `url`.

    `tuple` and `template` are lists of words, as `words` makes them, or None for what was not
    found; the other values stand in the line as they are.
    """
    line = {"time_ns": time.monotonic_ns(), "pid": os.getpid(), "space": url, "verb": verb} | told
    _append(json.dumps(line))


def words(patterns: tuple[Any, ...], fields: dict[str, Any] | None = None) -> dict[str, list[str]]:
    """Return a tuple's or a template's `kinds` and `words`, a word for each field.

    What is more than its fields (an entry, a ready template, one with a condition) is one word.
    """
    kinds = [_kind(pattern) for pattern in patterns]
    if fields or (len(patterns) == 1 and (_is_entry(patterns[0]) or _is_ready(patterns[0]))):
        return {"kinds": kinds, "words": [str(like(*map(_short, patterns), **(fields or {})))]}
    return {"kinds": kinds, "words": [_text(_short(pattern)) for pattern in patterns]}


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
    """The value, or what stands for it in a record."""
    if isinstance(value, str) and len(value) > LONG_BYTES:
        return f"digest {_digest(value.encode()).hex()}"
    if isinstance(value, bytes) and len(value) > LONG_BYTES:
        return b"digest " + _digest(value)
    if _is_array(value) and memoryview(value).nbytes > LONG_BYTES:
        return memoryview(_digest(memoryview(value).tobytes()))
    return value


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


class _File:
    """The file of this process; a forked child opens one of its own."""

    pid = 0
    descriptor = -1


def _append(line: str) -> None:
    """Append a line, in one call of the system."""
    pid = os.getpid()
    if _File.pid != pid:
        path = os.path.join(os.environ[VARIABLE], f"{pid}.jsonl")  # noqa: PTH118 - a light import
        # Of threads that come here together each opens it; the number says that one has.
        _File.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        _File.pid = pid
    os.write(_File.descriptor, (line + "\n").encode())
