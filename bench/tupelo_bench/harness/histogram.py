"""Latencies in the form of HdrHistogram: three digits of any of them, and a text others can read.

The buckets and the text (version 2, compressed, base64) are those of the HdrHistogram libraries, so
that their tools plot and merge what `run.json` holds. Recording is a function of this file, since
the Python port pulls in a build tool; the tests compare a text with one of its making.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DIGITS = 3
HALF_BITS = 10  # 2 * 10^3 values need 11 bits, half of them are 10
HALF = 1 << HALF_BITS
COOKIE = 0x1C849303 | 0x10
COOKIE_COMPRESSED = 0x1C849304 | 0x10
WRAPPER = struct.Struct(">ii")
HEAD = struct.Struct(">iiiiqqd")


class Histogram:
    """Counts of values (nanoseconds) from 0 to `highest`."""

    def __init__(self, highest: int = 3_600 * 10**9) -> None:
        """The highest value that can be recorded; an hour by default."""
        self._highest = highest
        self._counts: Counter[int] = Counter()

    def record(self, values: Iterable[int]) -> None:
        """Count some values."""
        self._counts.update(map(_slot, values))

    def add(self, other: Histogram) -> None:
        """Count what another has counted."""
        self._counts.update(other._counts)

    @property
    def total(self) -> int:
        """How many were recorded."""
        return self._counts.total()

    def counted(self) -> dict[int, int]:
        """How often each value was recorded, by the highest value that counts as equal to it."""
        return {_highest_of(slot): count for slot, count in self._counts.items()}

    def quantile(self, share: float) -> int:
        """The highest value that counts as equal to the one below which that share lies."""
        wanted = max(1, round(share * self.total))
        seen = 0
        for slot in sorted(self._counts):
            seen += self._counts[slot]
            if seen >= wanted:
                return _highest_of(slot)
        return 0

    def encoded(self) -> str:
        """The histogram as the text that HdrHistogram's libraries read."""
        payload = bytearray()
        empty = 0
        for slot in range(max(self._counts, default=-1) + 1):
            count = self._counts[slot]
            if not count:
                empty += 1
                continue
            if empty:
                _append(payload, -empty)
                empty = 0
            _append(payload, count)
        head = HEAD.pack(COOKIE, len(payload), 0, DIGITS, 1, self._highest, 1.0)
        packed = zlib.compress(head + payload)
        return base64.b64encode(WRAPPER.pack(COOKIE_COMPRESSED, len(packed)) + packed).decode()

    @classmethod
    def decoded(cls, text: str) -> Histogram:
        """Read back what `encoded` wrote.

        Raises:
            ValueError: it is no such text.
        """
        try:
            packed = base64.b64decode(text, validate=True)
            cookie, length = WRAPPER.unpack_from(packed)
            payload = zlib.decompress(packed[WRAPPER.size :])
            highest = HEAD.unpack_from(payload)[5]
        except (ValueError, struct.error, zlib.error):
            cookie = length = 0
        if cookie != COOKIE_COMPRESSED or length != len(packed) - WRAPPER.size:
            message = f"this is no histogram in the form of HdrHistogram: {text:.40}"
            raise ValueError(message)
        histogram = cls(highest)
        slot = 0
        numbers = iter(payload[HEAD.size :])
        for low in numbers:
            count = _number(low, numbers)
            if count > 0:
                histogram._counts[slot] = count
            slot += max(1, -count)  # a negative count is so many empty slots
        return histogram


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """What all of them have counted."""
    result = Histogram()
    for histogram in histograms:
        result.add(histogram)
    return result


def _slot(value: int) -> int:
    """The place of a value among all buckets."""
    bucket = max(0, value.bit_length() - HALF_BITS - 1)
    return (bucket + 1) * HALF + (value >> bucket) - HALF


def _highest_of(slot: int) -> int:
    """The highest value of a place."""
    bucket = max(0, slot // HALF - 1)
    within = slot - bucket * HALF
    return ((within + 1) << bucket) - 1


def _append(payload: bytearray, number: int) -> None:
    """Append a number as ZigZag LEB128, of nine bytes at most."""
    zigzag = (number << 1) ^ (number >> 63)
    while zigzag >= 0x80:  # noqa: PLR2004 - seven bits per byte
        payload.append((zigzag & 0x7F) | 0x80)
        zigzag >>= 7
    payload.append(zigzag)


def _number(low: int, further: Iterator[int]) -> int:
    """The number whose first byte this is: what `_append` has written."""
    zigzag, shift = low & 0x7F, 7
    while low & 0x80:
        low = next(further)
        zigzag |= (low & 0x7F) << shift
        shift += 7
    return (zigzag >> 1) ^ -(zigzag & 1)
