"""What `bench mem` puts: the paper's types of entry, and tuples with a key."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Schema, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.backends.base import Backend, Fields


CHARACTER = "u1"


@dataclass(frozen=True)
class Entry:
    """A type of entry: so many elements in one field."""

    name: str
    elements: int
    dtype: str | None
    """Of the elements of an array; None for a plain field, or for none."""

    @property
    def payload_bytes(self) -> int:
        """What is stored beside the name."""
        import numpy as np

        return self.elements * (np.dtype(self.dtype).itemsize if self.dtype else 4)

    @property
    def is_text(self) -> bool:
        """Whether it is characters: an array of them is `bytes` in Python, for every system."""
        return self.dtype == CHARACTER

    @property
    def schema(self) -> Schema:
        """The one shape of such a tuple."""
        return Schema((Shape(self.name, 1 + min(self.elements, 1), awaited=False),))

    def fields(self, backend: Backend, seed: int) -> tuple[Any, ...]:
        """A tuple of this type."""
        if self.dtype is None:
            return (self.name, *([seed % 1_000] * self.elements))
        import numpy as np

        values = np.random.default_rng(seed).integers(0, 100, self.elements).astype(self.dtype)
        return (self.name, values.tobytes() if self.is_text else backend.array(values))

    def many(self, backend: Backend, seed: int, count: int) -> Iterator[tuple[Any, ...]]:
        """So many of them, each made of objects of its own.

        Of the same object again and again a pickle holds one copy, and so would a server.
        """
        if self.dtype is None:
            for _ in range(count):
                yield self.fields(backend, seed)
            return
        name, payload = self.fields(backend, seed)
        for _ in range(count):
            yield name, payload.copy() if hasattr(payload, "copy") else bytes(bytearray(payload))

    def template(self, backend: Backend) -> tuple[Any, ...]:
        """What matches all of this type."""
        if self.dtype is None:
            return (self.name, *([int] * self.elements))
        return (self.name, bytes if self.is_text else backend.array_kind())


ENTRIES = (
    Entry("Null", 0, None),
    Entry("Integer", 1, None),
    Entry("Char 32", 32, CHARACTER),
    Entry("Double 32", 32, "f8"),
    Entry("Double 256", 256, "f8"),
    Entry("Double 2048", 2_048, "f8"),
)
SMALL = ("Null", "Integer", "Char 32", "Double 32")  # up to 256 bytes
LARGE = ("Double 2048",)  # 16 KiB

KEYED_BYTES = 8  # of the key and of an integer beside it
KEYED = {
    "first": Shape("keyed-first", 3, (0,), tag_at=1, awaited=False),
    "last": Shape("keyed-last", 3, (2,), awaited=False),
}


def key_tuple(field: str, key: int) -> Fields:
    """A tuple with that key."""
    tag = KEYED[field].tag
    return (key, tag, 7) if field == "first" else (tag, 7, key)


def key_tuples(backend: Backend | None, seed: int, count: int, *, field: str) -> Iterator[Fields]:
    """So many of them, each with a key of its own, in no order."""
    del backend
    keys = list(range(count))
    random.Random(seed).shuffle(keys)
    return (key_tuple(field, key) for key in keys)


def key_template(backend: Backend, *, field: str) -> Fields:
    """What matches all with such a key."""
    del backend
    tag = KEYED[field].tag
    return (int, tag, int) if field == "first" else (tag, int, int)


def by_key(fields: Fields, *, field: str) -> Fields:
    """What asks for such a tuple by its key."""
    first, second, last = fields
    return (first, second, int) if field == "first" else (first, int, last)


@dataclass(frozen=True)
class Plan(ABC):
    """What a client does."""

    fill: int
    cycles: int = 0
    warm_up: int = 0
    """Cycles that come before those that count."""
    until_steady: bool = False
    """Whether further ones come before, until they differ no more (`warming`)."""

    @property
    @abstractmethod
    def payload_bytes(self) -> int:
        """What is stored of a tuple beside its name."""


@dataclass(frozen=True, kw_only=True)
class EntryPlan(Plan):
    """Tuples of a type, all alike."""

    entry: Entry

    @property
    def payload_bytes(self) -> int:
        return self.entry.payload_bytes


@dataclass(frozen=True, kw_only=True)
class KeyPlan(Plan):
    """Tuples of two integers, of which one is the key: they are no entries of the paper."""

    field: str
    """Which of the fields has the key: first or last."""

    @property
    def payload_bytes(self) -> int:
        return KEYED_BYTES
