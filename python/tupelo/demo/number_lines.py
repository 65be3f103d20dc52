"""Numbers for the sort demo: read from text, packed into arrays, merged from sorted parts."""

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

MERGE_NUMBERS = 1 << 20  # in memory as Python numbers at a time
TEXT_SHOWN = 40  # characters of a bad line

Number: TypeAlias = int | float
Numbers: TypeAlias = Sequence[Number]


class BadLineError(ValueError):
    """A line is no number: its index in the text, and how it begins."""

    def __init__(self, line: int, text: bytes) -> None:
        """`line` counts from 0."""
        shown = text[:TEXT_SHOWN].decode(errors="replace").strip()
        super().__init__(f"line {line + 1}: {shown!r} is not a number")
        self.line = line
        self.text = shown


def parse(text: bytes) -> list[Number]:
    """The numbers of a text, one per line; empty lines are passed over."""
    lines = text.removesuffix(b"\n").split(b"\n")
    try:
        return list(map(int, lines))  # the usual file, at full speed
    except ValueError:
        return [number(index, line) for index, line in enumerate(lines) if line.strip()]


def number(index: int, line: bytes) -> Number:
    """One line as an integer, or else as a float.

    Python reads integers of up to 4 300 digits. A longer one, or 1e400, would become the float
    `inf`: it is refused.
    """
    try:
        return int(line)
    except ValueError:
        pass
    try:
        value = float(line)
    except ValueError:
        value = math.nan
    # "nan" too: it has no place in an order.
    if math.isnan(value) or (math.isinf(value) and b"inf" not in line.lower()):
        raise BadLineError(index, line)
    return value


def pack(numbers: list[Number]) -> Any:
    """The numbers as an array if all are 64-bit integers or all are floats, else as the list."""
    kinds = set(map(type, numbers))
    try:
        return array("d" if kinds == {float} else "q", numbers) if len(kinds) == 1 else numbers
    except OverflowError:
        return numbers


def unpack(packed: Any) -> Numbers:
    """What `pack` packed, after its way through a space."""
    if isinstance(packed, list):
        return packed
    view = memoryview(packed)  # of a numpy array, or already one: it depends on what is installed
    return array("d" if view.format == "d" else "q", view.tobytes())


def merged(parts: Sequence[Numbers], block_numbers: int = MERGE_NUMBERS) -> Iterator[list[Number]]:
    """The numbers of all sorted parts in order, in blocks of about so many.

    A block takes from each part the numbers up to a common bound, then sorts. On a few runs that
    are in order already, `sort` merges them, and faster than `heapq.merge` by far.
    """
    starts = [0] * len(parts)
    step = max(block_numbers // max(len(parts), 1), 1)
    while True:
        ahead = [
            part[s + step] for part, s in zip(parts, starts, strict=True) if s + step < len(part)
        ]
        bound = min(ahead, default=math.inf)
        ends = [bisect_right(part, bound, start) for part, start in zip(parts, starts, strict=True)]
        block: list[Number] = []
        for part, start, end in zip(parts, starts, ends, strict=True):
            block.extend(part[start:end])
        if not block:
            return
        block.sort()
        yield block
        starts = ends
