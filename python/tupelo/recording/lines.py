"""The lines of a record: what stands in them.

Each process writes files of its own (`file`), a line per operation, at once. The operations of a
killed process are in its file, but not its open claims and transactions. docs/command-line.md
describes a line. Tuples of a few numbers and short texts take a fast path here: a program is to go
on as it would without recording.

A program never fails because it is recorded: an operation that cannot be written down is reported
once on standard error, and left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from functools import lru_cache

from tupelo._native import Rest, Template, like
from tupelo.entries import describe
from tupelo.recording.file import VARIABLE, append, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Note: TypeAlias = Callable[..., None]

__all__ = ["VARIABLE", "without_harm", "words", "write"]

LONG_BYTES = 64  # a value that is longer is recorded as its digest
DIGEST_BYTES = 8

KINDS = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str", bytes: "bytes"}

_ENCODE = json.JSONEncoder(check_circular=False).encode  # nothing that is told has circles


def write(url: str, verb: str, text: str, **arguments: Any) -> None:
    """Write down one operation in the space at `url`.

    `text` is JSON of the put, the template and the find, without braces; `arguments` is encoded
    here.
    """
    pid = os.getpid()
    more = f", {_ENCODE(arguments)[1:-1]}" if arguments else ""
    append(f'{{"time_ns": {time.monotonic_ns()}{_where(pid, url, verb)}, {text}{more}}}\n', pid)


@lru_cache(maxsize=1_024)
def _where(pid: int, url: str, verb: str) -> str:
    """What stands in every line of a verb of a process in a space."""
    return f', "pid": {pid}, "space": {_ENCODE(url)}, "verb": "{verb}"'


def words(patterns: tuple[Any, ...], fields: dict[str, Any] | None = None) -> tuple[str, str]:
    """Return the kinds of a tuple's or a template's fields, and a word for each: lists, as JSON.

    A template that is more than its fields (an entry, a ready template, a condition) is one word.
    """
    quick = None if fields or len(patterns) <= 1 else _quick_words(patterns)
    return _all_words(patterns, fields or {}) if quick is None else quick


def _quick_words(patterns: tuple[Any, ...]) -> tuple[str, str] | None:
    """What `_all_words` finds, of numbers and short texts and their types; None of all else.

    A table of functions by type would be shorter, and takes half as long again.
    """
    kinds, texts = [], []
    for pattern in patterns:
        kind = type(pattern)
        if kind is str and len(pattern) <= LONG_BYTES:
            kinds.append('"str"')
            texts.append(_word_of_text(pattern))
        elif kind is int:
            kinds.append('"int"')
            texts.append(f'"{pattern}"')
        elif kind is float:
            kinds.append('"float"')
            text = _text_of_float(pattern)
            texts.append(f'"{text}"' if '"' not in text else _ENCODE(text))
        elif kind is type and pattern in KINDS:
            kinds.append(f'"{KINDS[pattern]}"')
            texts.append(_word_of_type(pattern))
        else:
            return None
    return f"[{', '.join(kinds)}]", f"[{', '.join(texts)}]"


@lru_cache(maxsize=1_024)
def _word_of_text(text: str) -> str:
    """A tag's word: a program has few of them, and they come again and again."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"\\"{text}\\""'
    return _ENCODE(_text(text))


@lru_cache(maxsize=len(KINDS))
def _word_of_type(kind: type) -> str:
    return _ENCODE(_text(kind))


def _all_words(patterns: tuple[Any, ...], fields: dict[str, Any]) -> tuple[str, str]:
    kinds = _ENCODE([_kind(pattern) for pattern in patterns])
    sole = patterns[0] if len(patterns) == 1 else None
    if _is_entry(sole) and not isinstance(sole, type):
        sole, fields = type(sole), _entry_fields(sole) | fields
        patterns = (sole,)
    if fields or _is_entry(sole) or _is_ready(sole):
        return kinds, _ENCODE([str(like(*map(_short, patterns), **_all_short(fields)))])
    return kinds, _ENCODE([_text(_short(pattern)) for pattern in patterns])


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
    if type(field) is float:
        return _text_of_float(field)
    return _text_of_any(field)


def _text_of_float(value: float) -> str:
    """The same for equal numbers: of two texts that are as short, Python may take the other."""
    text = repr(value)
    return _text_of_any(value) if "e" in text or "n" in text else text


def _text_of_any(field: Any) -> str:
    try:
        return str(like(field, ...))[1 : -len(", _)")]
    except Exception:  # noqa: BLE001 - an object, which is stored as a pickle and has no text
        return _text(("tupelo.object", type(field).__qualname__))


def _short(value: Any) -> Any:
    """The value, or one of its kind that stands for it in a record, with the word "digest" in it.

    Equal values have equal digests, so that a template finds the same tuples.
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

    A problem of one operation leaves that out, and the next is written again.
    """

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        """Whatever it is, it is not the program's."""
        if not isinstance(error, Exception):
            return False
        warn(f"an operation is not in the record: {error!r}")
        return True
