"""The profiler: what each process measured, in a file of its own, and the step that merges them.

`begin(label)` and `end(label)` may overlap with those of other labels. `end` says how many
operations the time was for: a clock costs as much as a put, so that cheap operations are timed in
batches. Nothing is sent anywhere while an experiment runs; the file is written at the end.
"""

from __future__ import annotations

import json
from array import array
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SUFFIX = ".raw.json"
NS_PER_S = 1e9


@dataclass
class Track:
    """What was measured under one label: durations, and the operations that each was for."""

    duration_ns: array[int] = field(default_factory=lambda: array("q"))
    operations: array[int] = field(default_factory=lambda: array("q"))

    @property
    def total_s(self) -> float:
        """All time spent under the label."""
        return sum(self.duration_ns) / NS_PER_S

    @property
    def total_operations(self) -> int:
        """All operations done under the label."""
        return sum(self.operations)

    @property
    def mean_s(self) -> float | None:
        """The mean time of one operation; None if there was none."""
        operations = self.total_operations
        return self.total_s / operations if operations else None

    def samples_s(self) -> list[float]:
        """The time of one operation, from each interval."""
        return [
            duration / operations / NS_PER_S
            for duration, operations in zip(self.duration_ns, self.operations, strict=True)
            if operations
        ]

    def extend(self, other: Track) -> None:
        """Add the intervals of another process."""
        self.duration_ns.extend(other.duration_ns)
        self.operations.extend(other.operations)


class Profiler:
    """The measurements of one process."""

    def __init__(self) -> None:
        self.tracks: dict[str, Track] = {}
        self.counts: dict[str, int] = {}
        self.moments_ns: dict[str, int] = {}
        """When something happened, by a clock that all processes share."""
        self._begun: dict[str, int] = {}

    def begin(self, label: str) -> None:
        """Start the clock of a label."""
        if label in self._begun:
            message = f"{label!r} has begun already: end it first"
            raise ValueError(message)
        self._begun[label] = perf_counter_ns()

    def end(self, label: str, operations: int = 1) -> None:
        """Stop the clock of a label; the time was for that many operations."""
        now = perf_counter_ns()
        begun = self._begun.pop(label, None)
        if begun is None:
            message = f"{label!r} has not begun: begin it first"
            raise ValueError(message)
        self.add(label, now - begun, operations)

    def add(self, label: str, duration_ns: int, operations: int = 1) -> None:
        """Note an interval that the caller timed."""
        track = self.tracks.get(label)
        if track is None:
            track = self.tracks[label] = Track()
        track.duration_ns.append(duration_ns)
        track.operations.append(operations)

    def mean_s(self, label: str) -> float:
        """The mean time of one operation.

        Raises:
            ValueError: nothing was timed under that label. A time of 0 would be the best of all.
        """
        mean_s = self.tracks.get(label, Track()).mean_s
        if mean_s is None:
            message = f"nothing was timed as {label!r}"
            raise ValueError(message)
        return mean_s

    def count(self, label: str, how_many: int = 1) -> None:
        """Count something that has no duration."""
        self.counts[label] = self.counts.get(label, 0) + how_many

    def moment(self, label: str) -> None:
        """Note that something happens now."""
        self.moments_ns[label] = perf_counter_ns()

    @contextmanager
    def time(self, label: str, operations: int = 1) -> Iterator[None]:
        """Time a block."""
        self.begin(label)
        yield
        self.end(label, operations)

    def write(self, path: Path) -> None:
        """Write everything to a raw file."""
        tracks = {
            label: {"duration_ns": list(track.duration_ns), "operations": list(track.operations)}
            for label, track in self.tracks.items()
        }
        raw = {"tracks": tracks, "counts": self.counts, "moments_ns": self.moments_ns}
        path.write_text(json.dumps(raw), encoding="utf-8")


def read(path: Path) -> Profiler:
    """Read one raw file back."""
    raw = json.loads(path.read_text(encoding="utf-8"))
    profiler = Profiler()
    for label, track in raw["tracks"].items():
        profiler.tracks[label] = Track(
            array("q", track["duration_ns"]), array("q", track["operations"])
        )
    profiler.counts.update(raw["counts"])
    profiler.moments_ns.update(raw["moments_ns"])
    return profiler


def merged(profilers: Iterable[Profiler]) -> Profiler:
    """The measurements of several processes as if one had made them."""
    result = Profiler()
    for profiler in profilers:
        for label, track in profiler.tracks.items():
            result.tracks.setdefault(label, Track()).extend(track)
        for label, how_many in profiler.counts.items():
            result.count(label, how_many)
    return result
