"""Workloads that age a space: operations on entries, generated or as recorded."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tupelo_bench.backends.base import Shape
from tupelo_bench.harness.record import BadRecordError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tupelo_bench.backends.base import Backend, Fields

Operation = Literal["read", "take", "write"]


class Entry(NamedTuple):
    """The entries of one kind."""

    tag: str
    types: tuple[str, ...] = ()
    """Of the fields behind the tag, as a record names them: the keys of `TYPES`."""

    @property
    def shape(self) -> Shape:
        """Its shape. A client takes no more than it has put, so nobody ever waits."""
        return Shape(self.tag, 1 + len(self.types), awaited=False)


# The paper's: a file is its bytes.
ENTRIES: Mapping[str, Entry] = {
    "Null": Entry("Null"),
    "String": Entry("String", ("str",)),
    "Array": Entry("Array", ("array",)),
    "File": Entry("File", ("bytes",)),
}
KINDS = tuple(ENTRIES)
# The example of the paper.
KIND_SHARES: Mapping[str, float] = {"Null": 0.45, "String": 0.15, "Array": 0.25, "File": 0.15}
# The paper's own: nothing but writes.
OPERATION_SHARES: Mapping[Operation, float] = {"read": 0, "take": 0, "write": 1}

TEXT_LETTERS = 100
ARRAY_ELEMENTS = 256
FILE_BYTES = 4_096


@dataclass(frozen=True)
class Workload:
    """Operations, one after the other."""

    operations: tuple[tuple[Operation, Entry], ...]

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[tuple[Operation, Entry]]:
        return iter(self.operations)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Its kinds of entry, and the paper's, each once."""
        return tuple(dict.fromkeys((*ENTRIES.values(), *(entry for _, entry in self.operations))))

    @property
    def fields(self) -> int:
        """How many fields it writes; an entry that is empty counts as one, too."""
        return sum(max(1, len(entry.types)) for what, entry in self.operations if what == "write")

    def run(self, backend: Backend, space: Any) -> None:
        """Do it; what finds nothing does nothing."""
        for number, (operation, entry) in enumerate(self.operations):
            if operation == "write":
                space.put(*fields_of(backend, entry, 1_000 + number))
            elif operation == "take":
                space.try_take(*template_of(backend, entry))
            else:
                space.try_read(*template_of(backend, entry))

    def left(self) -> int:
        """How many tuples are there afterwards."""
        there: Counter[Entry] = Counter()
        for operation, entry in self.operations:
            if operation == "write":
                there[entry] += 1
            elif operation == "take" and there[entry]:
                there[entry] -= 1
        return there.total()


def generated(
    size: int,
    seed: int,
    operations: Mapping[Operation, float] = OPERATION_SHARES,
    kinds: Mapping[str, float] = KIND_SHARES,
) -> Workload:
    """A workload with these frequencies."""
    choice = random.Random(seed)
    return Workload(
        tuple(
            zip(
                choice.choices(list(operations), list(operations.values()), k=size),
                choice.choices([ENTRIES[kind] for kind in kinds], list(kinds.values()), k=size),
                strict=True,
            )
        )
    )


def recorded(path: Path) -> Workload:
    """The operations of a history that `tupelo record` wrote.

    Entries have the types of the recorded fields, other values, and all their fields formal in a
    template. The tag says only which types they are. A field that has none of `TYPES` (a list, an
    object, an entry) is a text.

    Raises:
        BadRecordError: it is none, or has no operation.
        OSError: it can not be read.
    """
    verbs: dict[str, Operation] = {"put": "write", "take": "take", "read": "read"}
    found: list[tuple[Operation, Entry]] = []
    with path.open(encoding="utf-8") as lines:
        try:
            for event in map(json.loads, lines):
                operation = verbs.get(event["verb"])
                if operation is not None:
                    found.append((operation, _entry(event["kinds"])))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            message = f"{path} is no history of `tupelo record`: {error!r}"
            raise BadRecordError(message) from error
    if not found:
        message = f"{path} has no put, take or read: record a program with `tupelo record`"
        raise BadRecordError(message)
    return Workload(tuple(found))


def _entry(kinds: list[str]) -> Entry:
    """The entries that have fields of these kinds; the first, if it is a text, is their tag."""
    known = [kind if kind in TYPES else "str" for kind in kinds]
    types = tuple(known[1:] if known[:1] == ["str"] else known)
    return Entry(" ".join(("recorded", *types)), types)


def fields_of(backend: Backend, entry: Entry, seed: int) -> Fields:
    """An entry of that kind; another seed gives other values of the same types."""
    return (entry.tag, *(TYPES[name].value(backend, seed) for name in entry.types))


def template_of(backend: Backend, entry: Entry) -> Fields:
    """What matches every entry of that kind."""
    return (entry.tag, *(TYPES[name].formal(backend) for name in entry.types))


def seed_of(backend: Backend, entry: Entry, fields: Fields) -> int:
    """The seed that an entry of the paper's was made from: the way back of `fields_of`."""
    return TYPES[entry.types[0]].seed(backend, fields[1]) if entry.types else 0


def is_whole(backend: Backend, entry: Entry, fields: Fields) -> bool:
    """Whether `fields_of` could have made this entry of the paper's: with all of its bytes."""
    try:
        made = fields_of(backend, entry, seed_of(backend, entry, fields))
    except (ValueError, TypeError, IndexError):
        return False
    return len(fields) == len(made) and all(map(_alike, fields, made))


def _alike(one: Any, other: Any) -> bool:
    # What numbers are in an array, their bytes say; two arrays have no one truth.
    return one == other if isinstance(other, str) else bytes(one) == bytes(other)


# --- the types of fields ---


class Type(NamedTuple):
    """What an entry has in a field of this type, and what a template."""

    value: Callable[[Backend, int], Any]
    """Of a seed."""
    formal: Callable[[Backend], Any]
    seed: Callable[[Backend, Any], int] = lambda _backend, value: int(value)


def _array(backend: Backend, seed: int) -> Any:
    import numpy as np

    return backend.array(np.full(ARRAY_ELEMENTS, float(seed)))


TYPES: Mapping[str, Type] = {
    "null": Type(lambda _, seed: None, lambda _: type(None)),  # noqa: ARG005 - all are alike
    "bool": Type(lambda _, seed: seed % 2 == 1, lambda _: bool),
    "str": Type(lambda _, seed: f"{seed:0{TEXT_LETTERS}}", lambda _: str),
    "int": Type(lambda _, seed: seed, lambda _: int),
    "float": Type(lambda _, seed: float(seed), lambda _: float),
    "bytes": Type(
        lambda _, seed: seed.to_bytes(8, "little") * (FILE_BYTES // 8),
        lambda _: bytes,
        lambda _, value: int.from_bytes(value[:8], "little"),
    ),
    "array": Type(
        _array,
        lambda backend: backend.array_kind(),
        lambda backend, value: int(backend.numbers(value, "f8")[0]),
    ),
}
