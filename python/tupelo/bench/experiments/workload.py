"""Workloads that age a space: operations on four kinds of entry, generated or recorded."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tupelo.bench.harness.record import BadRecordError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tupelo.bench.backends.base import Backend, Fields

Operation = Literal["read", "take", "write"]

KINDS = ("Null", "String", "Array", "File")
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

    operations: tuple[tuple[Operation, str], ...]

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[tuple[Operation, str]]:
        return iter(self.operations)

    def run(self, backend: Backend, space: Any) -> None:
        """Do it; what finds nothing does nothing."""
        for number, (operation, kind) in enumerate(self.operations):
            if operation == "write":
                space.put(*fields_of(backend, kind, 1_000 + number))
            elif operation == "take":
                space.try_take(*template_of(backend, kind))
            else:
                space.try_read(*template_of(backend, kind))

    def left(self) -> int:
        """How many tuples are there afterwards."""
        there: Counter[str] = Counter()
        for operation, kind in self.operations:
            if operation == "write":
                there[kind] += 1
            elif operation == "take" and there[kind]:
                there[kind] -= 1
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
                choice.choices(list(kinds), list(kinds.values()), k=size),
                strict=True,
            )
        )
    )


def recorded(path: Path) -> Workload:
    """The operations of a history that `tupelo record` wrote, with the nearest kind of entry.

    Raises:
        BadRecordError: it is none, or has no operation.
        OSError: it can not be read.
    """
    verbs: dict[str, Operation] = {"put": "write", "take": "take", "read": "read"}
    found: list[tuple[Operation, str]] = []
    with path.open(encoding="utf-8") as lines:
        try:
            for event in map(json.loads, lines):
                operation = verbs.get(event["verb"])
                if operation is not None:
                    found.append((operation, _kind(event["kinds"])))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            message = f"{path} is no history of `tupelo record`: {error!r}"
            raise BadRecordError(message) from error
    if not found:
        message = f"{path} has no put, take or read: record a program with `tupelo record`"
        raise BadRecordError(message)
    return Workload(tuple(found))


def _kind(kinds: list[str]) -> str:
    """The kind of entry that is most like a tuple of these fields, the first being its tag."""
    rest = kinds[1:]
    for wanted, kind in (("array", "Array"), ("bytes", "File"), ("str", "String")):
        if wanted in rest:
            return kind
    return "Null"


def fields_of(backend: Backend, kind: str, seed: int) -> Fields:
    """An entry of that kind; another seed gives other values of the same types."""
    if kind == "Null":
        return (kind,)
    if kind == "String":
        return (kind, f"{seed:0{TEXT_LETTERS}}")
    if kind == "File":
        return (kind, seed.to_bytes(8, "little") * (FILE_BYTES // 8))
    import numpy as np

    return (kind, backend.array(np.full(ARRAY_ELEMENTS, float(seed))))


def template_of(backend: Backend, kind: str) -> Fields:
    """What matches every entry of that kind."""
    types: dict[str, tuple[type, ...]] = {
        "Null": (),
        "String": (str,),
        "File": (bytes,),
        "Array": (backend.array_kind(),),
    }
    return (kind, *types[kind])


def seed_of(backend: Backend, kind: str, fields: Fields) -> int:
    """The seed that an entry was made from: the way back of `fields_of`."""
    if kind == "Null":
        return 0
    if kind == "String":
        return int(fields[1])
    if kind == "File":
        return int.from_bytes(fields[1][:8], "little")
    return int(backend.numbers(fields[1], "f8")[0])
