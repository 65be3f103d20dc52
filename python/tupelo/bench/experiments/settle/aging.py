"""Spaces that are not new: populated before the clients begin, cleaned when they have ended."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tupelo.bench.experiments.settle.metrics import (
    ADDED,
    ADDED_THROUGHPUT,
    AGING,
    CLEANING,
    RESPONSE,
    SPACE,
    THROUGHPUT,
)
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
from tupelo.bench.report.tables import sign
from tupelo.bench.report.units import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo.bench.backends.base import Backend, Fields
    from tupelo.bench.harness.record import Run
    from tupelo.bench.harness.runner import Options
    from tupelo.bench.harness.workers import Bench

WORKLOADS = (1_000, 3_000, 6_000, 12_000)
PRINTED_WORKLOAD = 3_000
QUICK_WORKLOAD = 100
NOTE_FRESH = "0: the same clients in a new space."
NOTE_SHARE = (
    "Of a run without the paper's delays, in proportion to its 1 000 objects of a client: who is"
    " done with those sooner has the greater share. Beside a run with the delays, as the printed"
    " share is, it stands in the table of what aging adds."
)


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


def against_fresh(run: Run, metric: str) -> Iterator[tuple[Measure, Measure]]:
    """A metric of the same clients in a new space, and in each aged one."""
    for aged in run.find("settle", metric, series="aged"):
        fresh = run.find_one(
            "settle", metric, aged.backend,
            series="overlapping", clients=aged.parameters["clients"],
        )  # fmt: skip
        if fresh is not None:
            yield fresh, aged


def added(fresh: Measure, aged: Measure) -> float:
    """What an aged space adds to a figure of a new one, as a share."""
    return aged.summary.mean / fresh.summary.mean - 1


def told_added(fresh: Measure, aged: Measure) -> str:
    """The same as text, with a sign where it can be by chance: "~+10 %"."""
    return f"{sign(fresh, aged)}{round(100 * added(fresh, aged)):+d} %"


def added_by_aging(run: Run) -> Iterator[Measure]:
    """What aging adds, for the record: a figure of two cells, so it has no repeats of its own."""
    for metric, name in ((RESPONSE, ADDED), (THROUGHPUT, ADDED_THROUGHPUT)):
        for fresh, aged in against_fresh(run, metric):
            value = [added(fresh, aged)]
            yield Measure("settle", aged.backend, aged.parameters, name, "", value, derived=True)


def not_aged(run: Run, metric: str, clients: int) -> list[Measure]:
    """The new spaces that the aged ones are compared with, as aged by no operation."""
    found = {
        fresh.backend: replace(fresh, parameters={**fresh.parameters, "aged by": 0})
        for fresh, aged in against_fresh(run, metric)
        if aged.parameters["clients"] == clients
    }
    return list(found.values())


def shares(run: Run, backend: str) -> Iterator[float]:
    """To age and to clean, as a share of a run of as many clients with the paper's delays.

    That run is a cell of its own, in a new space: what aging adds to it is nothing beside delays of
    200 ms. An aged run itself has no such delays; without them a thousand objects of each client
    may take two milliseconds, and the share of whatever comes before is nearly all.
    """
    for aging in run.find("settle", AGING, series="aged", entry="Null"):
        clients = aging.parameters["clients"]
        papers = {"series": "paper", "entry": "Null", "clients": clients}
        throughput, objects = (
            run.find_one("settle", metric, backend, **papers) for metric in (THROUGHPUT, "objects")
        )
        cleaning = run.find_one("settle", CLEANING, backend, **aging.parameters)
        if aging.backend == backend and throughput and objects and cleaning:
            beside_s = aging.summary.mean + cleaning.summary.mean
            run_s = 2 * objects.summary.mean * clients / throughput.summary.mean
            yield beside_s / (beside_s + run_s)


def table(run: Run, backends: Sequence[str]) -> Printed:
    """What aging adds, beside what the paper prints."""
    heads = (
        *("", "added to the response time, as printed", "at most of the time, as printed"),
        *("added here by", "to the response time", "to the throughput"),
        "at most of the time of a run with the paper's delays",
    )
    aged = {each.backend for each in run.find("settle", AGING, series="aged")}
    rows = tuple(_row(run, each) for each in backends if each in aged)
    return Printed(AGING, "What aging adds", heads, rows, 2)


def _row(run: Run, backend: str) -> tuple[str, ...]:
    """The workload of the paper's figure, or the nearest that was measured."""
    responses, throughputs = (
        [pair for pair in against_fresh(run, metric) if pair[1].backend == backend]
        for metric in (RESPONSE, THROUGHPUT)
    )
    near = min(responses, key=_from_printed, default=None)
    return (
        backend,
        "30 % by 3 000 operations (NullIO)",
        "31 %",
        f"{whole(near[1].parameters['aged by'])} operations" if near else "-",
        told_added(*near) if near else "-",
        told_added(*min(throughputs, key=_from_printed)) if throughputs else "-",
        next((f"{100 * share:.0f} %" for share in sorted(shares(run, backend))[-1:]), "-"),
    )


def _from_printed(pair: tuple[Measure, Measure]) -> int:
    return abs(int(pair[1].parameters["aged by"]) - PRINTED_WORKLOAD)
