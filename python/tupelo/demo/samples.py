"""Latencies: measured in nanoseconds, sent between processes as bytes, told as p50, p99 and max."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from tupelo.formatting import duration

TYPECODE = "Q"  # unsigned, 64 bits

Samples: TypeAlias = "array[int]"


def samples() -> Samples:
    """An empty list of latencies, 8 bytes each."""
    return array(TYPECODE)


def joined(packed: Iterable[bytes]) -> Samples:
    """The samples of several processes, each sent as `samples().tobytes()`."""
    everything = samples()
    for part in packed:
        everything.frombytes(part)
    return everything


@dataclass(frozen=True)
class Latency:
    """The figures by which a latency is told, as text with units."""

    p50: str
    p99: str
    longest: str

    @classmethod
    def of(cls, nanoseconds: Samples) -> "Latency":
        """The figures of at least one sample."""
        ordered = sorted(nanoseconds)

        def at(share: float) -> str:
            return duration(ordered[min(int(share * len(ordered)), len(ordered) - 1)] / 1e9)

        return cls(at(0.50), at(0.99), at(1.0))

    def __str__(self) -> str:
        """`p50 1.20 µs, p99 4.10 µs, max 2.00 ms`."""
        return f"p50 {self.p50}, p99 {self.p99}, max {self.longest}"
