"""Spaces that write down what is done with them, for `tupelo record`.

Where the variable TUPELO_RECORD names a folder, `connect` opens a `RecordingSpace`. Each process
writes a file of its own there, a line per operation, at once: what a killed process did is there.
Where the variable is not set this file is not even imported.

A line is an object: `time_ns` (monotonic, the same clock for all processes), `pid`, `space` (its
URL), `verb`, `kinds`, and `tuple` or `template`, as lists of texts (docs/command-line.md). A value
that is longer than a few words stands there as a digest of its kind: equal values have equal ones.
A blocking call that finds nothing writes a line `waits` before it waits, so that one that never
ends can be seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import time

from tupelo._native import Space, Template, like
from tupelo.entries import describe
from tupelo.searching import Search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Any

    from tupelo._native import Claim

__all__ = ["VARIABLE", "RecordingSpace"]

VARIABLE = "TUPELO_RECORD"
LONG_BYTES = 64  # a value that is longer is recorded as its digest
DIGEST_BYTES = 8

KINDS = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str", bytes: "bytes"}


class RecordingSpace(Space):
    """A space that writes down what is done with it."""

    def put(self, *fields: Any, **options: Any) -> Any:
        """As `Space.put`."""
        lease = super().put(*fields, **options)
        self._note("put", tuple=fields)
        return lease

    def put_all(self, tuples: Iterable[Any], /, **options: Any) -> int:
        """As `Space.put_all`."""
        everything = list(tuples)
        count = super().put_all(everything, **options)
        for fields in everything:
            self._note("put", tuple=fields)
        return count

    def put_if_absent(self, *fields: Any, **options: Any) -> bool:
        """As `Space.put_if_absent`."""
        done = super().put_if_absent(*fields, **options)
        if done:
            self._note("put", tuple=fields)
        return done

    def take(self, *template: Any, **options: Any) -> Any:
        """As `Space.take`."""
        return self._found("take", template, super().try_take, super().take, options)

    def read(self, *template: Any, **options: Any) -> Any:
        """As `Space.read`."""
        return self._found("read", template, super().try_read, super().read, options)

    def try_take(self, *template: Any, **options: Any) -> Any:
        """As `Space.try_take`."""
        found = super().try_take(*template, **options)
        self._note("take", template=template, tuple=found)
        return found

    def try_read(self, *template: Any, **options: Any) -> Any:
        """As `Space.try_read`."""
        found = super().try_read(*template, **options)
        self._note("read", template=template, tuple=found)
        return found

    def take_all(self, *template: Any, **options: Any) -> Any:
        """As `Space.take_all`."""
        return self._several("take", template, super().take_all(*template, **options))

    def read_all(self, *template: Any, **options: Any) -> Any:
        """As `Space.read_all`."""
        return self._several("read", template, super().read_all(*template, **options))

    def take_many(self, *template: Any, **options: Any) -> Any:
        """As `Space.take_many`."""
        self._note("waits", template=template)
        return self._several("take", template, super().take_many(*template, **options))

    def consume(self, *template: Any, **options: Any) -> Iterator[Any]:
        """As `Space.consume`."""
        self._note("waits", template=template)
        for found in super().consume(*template, **options):
            self._note("take", template=template, tuple=found)
            yield found

    def claim(self, *template: Any, **options: Any) -> Any:
        """As `Space.claim`."""
        self._note("waits", template=template)
        return _RecordingClaim(self, template, super().claim(*template, **options))

    def swap(self, *template: Any, to: Any, **options: Any) -> Any:
        """As `Space.swap`."""
        self._note("waits", template=template)
        found = super().swap(*template, to=to, **options)
        self._swapped(template, found, to)
        return found

    def try_swap(self, *template: Any, to: Any, **options: Any) -> Any:
        """As `Space.try_swap`."""
        found = super().try_swap(*template, to=to, **options)
        self._swapped(template, found, to)
        return found

    def count(self, *template: Any, **fields: Any) -> int:
        """As `Space.count`."""
        self._note("count", template=template)
        return super().count(*template, **fields)

    # --- what stands in the lines ---

    def _found(
        self, verb: str, template: tuple[Any, ...], now: Any, later: Any, options: Any
    ) -> Any:
        """A match that is there, or, after a line that says so, one that is waited for."""
        timeout = options.pop("timeout", None)
        found = now(*template, **options)
        if found is None:
            self._note("waits", template=template)
            found = later(*template, timeout=timeout, **options)
        self._note(verb, template=template, tuple=found)
        return found

    def _several(self, verb: str, template: tuple[Any, ...], found: list[Any]) -> list[Any]:
        if not found:
            self._note(verb, template=template, tuple=None)
        for fields in found:
            self._note(verb, template=template, tuple=fields)
        return found

    def _swapped(self, template: tuple[Any, ...], found: Any, to: Any) -> None:
        self._note("take", template=template, tuple=found)
        if found is not None:
            self._note("put", tuple=to if isinstance(to, tuple) else (to,))

    def _note(self, verb: str, **told: Any) -> None:
        line: dict[str, Any] = {
            "time_ns": time.monotonic_ns(),
            "pid": os.getpid(),
            "space": self.url,
            "verb": verb,
        }
        told = {name: (one,) if _is_entry(one) else one for name, one in told.items()}
        fields = told.get("tuple") or told.get("template") or ()
        line["kinds"] = [_kind(field) for field in fields]
        for name, values in told.items():
            line[name] = None if values is None else _texts(values)
        _write(json.dumps(line))


class RecordingSearch(Search):
    """A search that writes down what it finds, where it was."""

    def take(self, *template: Any, **options: Any) -> Any:
        """As `Search.take`."""
        return self._noted("take", template, super().take(*template, **options))

    def read(self, *template: Any, **options: Any) -> Any:
        """As `Search.read`."""
        return self._noted("read", template, super().read(*template, **options))

    def try_take(self, *template: Any, **options: Any) -> Any:
        """As `Search.try_take`."""
        return self._noted("take", template, super().try_take(*template, **options))

    def try_read(self, *template: Any, **options: Any) -> Any:
        """As `Search.try_read`."""
        return self._noted("read", template, super().try_read(*template, **options))

    def _noted(self, verb: str, template: tuple[Any, ...], found: Any) -> Any:
        if found is not None and isinstance(found.space, RecordingSpace):
            found.space._note(verb, template=template, tuple=found.tuple)  # noqa: SLF001 - its own
        return found


class _RecordingClaim:
    """A claim that is written down as a take, and what it puts, when it is done."""

    def __init__(self, space: RecordingSpace, template: tuple[Any, ...], claim: Claim[Any]) -> None:
        self._space = space
        self._template = template
        self._claim = claim
        self._puts: list[tuple[Any, ...]] = []
        self._is_settled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._claim, name)

    def __enter__(self) -> Any:
        return self._claim.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._claim.__exit__(kind, exception, traceback)
        if kind is None and not self._is_settled:
            self._note()

    def put(self, *fields: Any) -> None:
        """As `Claim.put`."""
        self._claim.put(*fields)
        self._puts.append(fields)

    def done(self) -> None:
        """As `Claim.done`."""
        self._claim.done()
        self._note()

    def abort(self, reason: str | None = None) -> None:
        """As `Claim.abort`."""
        self._claim.abort(reason)
        self._is_settled = True

    def _note(self) -> None:
        self._is_settled = True
        note = self._space._note  # noqa: SLF001 - its own
        note("take", template=self._template, tuple=self._claim.tuple)
        for fields in self._puts:
            note("put", tuple=fields)


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


def _texts(fields: tuple[Any, ...]) -> list[str]:
    """A text per field, as in templates; one text for an entry, or a ready template."""
    if len(fields) == 1 and _is_entry(fields[0]):
        return [str(like(fields[0]))]
    return [str(field) if isinstance(field, Template) else _text(_short(field)) for field in fields]


def _text(field: Any) -> str:
    """A pattern's text. It needs company: a tuple alone would be taken for all the patterns."""
    return str(like(field, ...))[1 : -len(", _)")]


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


def _write(line: str) -> None:
    """Append a line, in one call of the system."""
    if _File.pid != os.getpid():
        _File.pid = os.getpid()
        path = os.path.join(os.environ[VARIABLE], f"{_File.pid}.jsonl")  # noqa: PTH118 - a light import
        _File.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(_File.descriptor, (line + "\n").encode())
