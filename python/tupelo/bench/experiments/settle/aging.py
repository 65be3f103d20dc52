"""Spaces that are not new: populated before the clients begin, cleaned when they have ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tupelo.bench.experiments.settle.metrics import ADDED, AGING, RESPONSE, SHARE, SPACE
from tupelo.bench.experiments.workload import (
    KIND_SHARES,
    KINDS,
    OPERATION_SHARES,
    Workload,
    fields_of,
    generated,
    template_of,
)
from tupelo.bench.harness.record import Measure
from tupelo.bench.report.printed import Printed
from tupelo.bench.report.units import digits, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo.bench.backends.base import Backend, Fields
    from tupelo.bench.harness.record import Run
    from tupelo.bench.harness.runner import Options
    from tupelo.bench.harness.workers import Bench

WORKLOADS = (1_000, 3_000, 6_000, 12_000)
PRINTED_WORKLOAD = 3_000
QUICK_WORKLOAD = 100


def workloads(options: Options) -> list[Workload]:
    """What ages the spaces: the history that was asked for, or generated operations."""
    if options.workload:
        return [options.workload]
    frequencies = (options.operations or OPERATION_SHARES, options.kinds or KIND_SHARES)
    sizes = (QUICK_WORKLOAD,) if options.quick else WORKLOADS
    return [generated(size, options.seed, *frequencies) for size in sizes]


def age(bench: Bench, backend: Backend, workload: Workload) -> float:
    """Do a workload; how long it took."""
    del bench
    space = backend.open(SPACE)
    _meet(backend)
    begin = time.perf_counter()
    workload.run(backend, space)
    aged_s = time.perf_counter() - begin
    space.close()
    return aged_s


def clean(bench: Bench, backend: Backend) -> tuple[float, int]:
    """Take everything; how long it took, and how much there was."""
    del bench
    space = backend.open(SPACE)
    templates = _meet(backend)
    begin = time.perf_counter()
    taken = 0
    for template in templates:
        while space.try_take(*template) is not None:
            taken += 1
    cleaned_s = time.perf_counter() - begin
    space.close()
    return cleaned_s, taken


def _meet(backend: Backend) -> list[Fields]:
    """The template of each kind; an entry of each was made, so that no import is timed."""
    for kind in KINDS:
        fields_of(backend, kind, 0)
    return [template_of(backend, kind) for kind in KINDS]


# --- what follows ---


def added_by_aging(run: Run) -> Iterator[Measure]:
    """How much longer the clients take than in a new space, as a share."""
    for measure in run.find("settle", RESPONSE, series="aged"):
        fresh = run.find_one(
            "settle", RESPONSE, measure.backend,
            series="overlapping", clients=measure.parameters["clients"],
        )  # fmt: skip
        if fresh is not None:
            mean_s = fresh.summary.mean
            added = [aged_s / mean_s - 1 for aged_s in measure.independent]
            yield Measure(
                "settle", measure.backend, measure.parameters, ADDED, "", added, derived=True
            )


def table(run: Run, backends: Sequence[str]) -> Printed:
    """What aging adds, beside what the paper prints."""
    heads = (
        *("", "added to the response time, as printed", "at most of the time, as printed"),
        *("added here by", "", "at most of the time here"),
    )
    rows = tuple(_row(run, each) for each in backends if run.find_one("settle", SHARE, each))
    return Printed(AGING, "What aging adds", heads, rows, 2)


def _row(run: Run, backend: str) -> tuple[str, ...]:
    """The workload of the paper's figure, or the nearest that was measured."""
    added = [m for m in run.find("settle", ADDED) if m.backend == backend]
    shares = [m.summary.mean for m in run.find("settle", SHARE) if m.backend == backend]
    near = min(added, key=lambda m: abs(m.parameters["aged by"] - PRINTED_WORKLOAD), default=None)
    return (
        backend,
        "30 % by 3 000 operations (NullIO)",
        "31 %",
        f"{whole(near.parameters['aged by'])} operations" if near else "-",
        f"{digits(100 * near.summary.mean)} %" if near else "-",
        f"{digits(100 * max(shares))} %",
    )
