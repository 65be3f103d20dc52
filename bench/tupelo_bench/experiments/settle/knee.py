"""The knee: the number of clients beyond which only the response time rises, and what it rests on.

A knee that was seen in three points, or by the last one alone, is a guess; the report says so
beside it. All clients are active at once (`windows`), so the number of active clients is the same
for every system. Means are judged, so `RISE` has to be more than they vary from run to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tupelo_bench.experiments.settle.metrics import (
    KNEE,
    KNEE_BEFORE,
    KNEE_POINTS,
    RESPONSE,
    SHORTEST,
    THROUGHPUT,
    TOGETHER,
)
from tupelo_bench.experiments.workload import KINDS
from tupelo_bench.harness.record import Measure
from tupelo_bench.presentation.printed import Printed
from tupelo_bench.presentation.units import digits, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo_bench.harness.record import Run

RISE = 1.05  # what counts as a rise, of throughput and of response time
POINTS_ENOUGH = 4  # of the curve: with fewer nobody can tell a knee from a bad point

Points = list[tuple[float, float, float]]
"""(clients, mean throughput, mean response time), in the order of the clients."""


@dataclass(frozen=True)
class Knee:
    """Where the knee of a curve is, if it has one, and how well that is known."""

    clients: float | None
    """None if throughput rises to the end, or response time does not."""
    points: int
    """How many the curve has."""
    clients_without_last: float | None
    """Where it would be if the last point had not been measured."""

    @property
    def doubts(self) -> list[str]:
        """Why not to rely on it, in words; empty if there is no reason known."""
        found = []
        if self.points < POINTS_ENOUGH:
            found.append(f"{self.points} points only")
        if self.clients is not None and self.clients_without_last != self.clients:
            there = self.clients_without_last
            elsewhere = "gone" if there is None else f"at {there:.0f}"
            found.append(f"{elsewhere} without the last point")
        return found


def knee_of(points: Points) -> Knee:
    """The knee of a curve, and what it rests on."""
    return Knee(knee(points), len(points), knee(points[:-1]))


def knee(points: Points) -> float | None:
    """The number of clients beyond which throughput does not rise, and response time does.

    None if there is none: throughput rises to the end, or response time does not.
    """
    for (clients, throughput, response_s), *later in (points[n:] for n in range(len(points) - 1)):
        if all(more <= RISE * throughput for _, more, _ in later) and all(
            longer >= RISE * response_s for _, _, longer in later
        ):
            return clients
    return None


def points_of(run: Run, backend: str, kind: str = "Null") -> Points:
    """The curve of a backend: its clients all at once, in a new space, of a kind of entry."""
    fixed = {"series": TOGETHER, "entry": kind}
    found: dict[float, list[float]] = {}
    for metric in (THROUGHPUT, RESPONSE):
        for measure in run.find("settle", metric, **fixed):
            if measure.backend == backend:
                found.setdefault(measure.parameters["clients"], []).append(measure.summary.mean)
    return [(clients, *pair) for clients, pair in sorted(found.items()) if len(pair) == 2]  # type: ignore[misc]  # noqa: PLR2004


# --- what follows ---


def derived(run: Run, backend: str) -> Iterator[Measure]:
    """A knee as measures: so whoever reads the record sees what it rests on, too."""
    for kind in KINDS:
        points = points_of(run, backend, kind)
        if not points:
            continue
        found = knee_of(points)
        parameters = {"series": TOGETHER, "entry": kind}
        for metric, unit, value in (
            (KNEE, "clients", found.clients),
            (KNEE_POINTS, "", found.points),
            (KNEE_BEFORE, "clients", found.clients_without_last),
        ):
            if value is not None:
                yield Measure("settle", backend, parameters, metric, unit, [value], derived=True)


def table(run: Run, backends: Sequence[str]) -> Printed:
    """The knees, beside that of the paper."""
    heads = (
        *("", "knee, as printed", "knee here", "it rests on"),
        "throughput with most clients, of the best",
        f"{SHORTEST}, of all cells",
    )
    curves = [
        (backend, kind, points_of(run, backend, kind)) for kind in KINDS for backend in backends
    ]
    rows = tuple(_row(run, *curve) for curve in curves if curve[-1])
    return Printed(KNEE, "Where throughput no longer rises", heads, rows, 1)


def _row(run: Run, backend: str, kind: str, points: Points) -> tuple[str, ...]:
    best = max(throughput for _, throughput, _ in points)
    found, most = knee_of(points), points[-1][0]
    fixed = {"series": TOGETHER, "entry": kind}
    windows = [m for m in run.find("settle", SHORTEST, **fixed) if m.backend == backend]
    shortest_s = [measure.summary.least for measure in windows]
    return (
        backend if kind == "Null" else f"{backend}, {kind}",
        "8 to 14 (JavaSpaces)",
        f"none within {most:.0f}" if found.clients is None else f"{found.clients:.0f}",
        "; ".join(found.doubts) or f"{found.points} points",
        f"{digits(100 * points[-1][1] / best)} %",
        quantity(min(shortest_s), "s") if shortest_s else "-",
    )
