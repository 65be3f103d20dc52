"""Spaces that are not new: populated before the clients begin, cleaned when they have ended.

Twice, since one run can not show both figures. "paper aged" has the paper's delays and its 1 000
objects, beside which 3 000 operations are many: what aging adds to the response time is read there,
and its throughput is that of the delays. "all at once, aged" has clients that are active at once in
windows of a second, with perhaps a hundred times more objects: there is the throughput.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tupelo_bench.experiments.settle.metrics import (
    ADDED,
    ADDED_THROUGHPUT,
    AGING,
    PAPER,
    PAPER_AGED,
    RESPONSE,
    SHARE,
    SPACE,
    THROUGHPUT,
    TOGETHER,
    TOGETHER_AGED,
)
from tupelo_bench.experiments.workload import (
    KIND_SHARES,
    OPERATION_SHARES,
    Workload,
    fields_of,
    generated,
    template_of,
)
from tupelo_bench.harness.record import Measure
from tupelo_bench.presentation.printed import Printed
from tupelo_bench.presentation.tables import sign
from tupelo_bench.presentation.units import digits, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tupelo_bench.backends.base import Backend, Fields
    from tupelo_bench.experiments.workload import Entry
    from tupelo_bench.harness.record import Run
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Options

WORKLOADS = (1_000, 3_000, 6_000, 12_000)
PRINTED_WORKLOAD = 3_000
QUICK_WORKLOAD = 100
NOTE_FRESH = "0: the same clients in a new space."


def workloads(options: Options) -> list[Workload]:
    """What ages the spaces: the history that was asked for, or generated operations."""
    if options.workload:
        return [options.workload]
    frequencies = (options.operations or OPERATION_SHARES, options.kinds or KIND_SHARES)
    in_order = sorted(WORKLOADS, key=lambda size: size != PRINTED_WORKLOAD)
    sizes = [QUICK_WORKLOAD] if options.quick else in_order
    return [generated(size, options.seed, *frequencies) for size in sizes]


def age(bench: Bench, backend: Backend, workload: Workload, barriers: int) -> float:
    """Do a workload while the clients wait, who meet at so many barriers later; how long it took.

    They have warmed up before it: the oldest tuples are taken first, so that what they put and take
    afterwards would leave nothing old for those phases that count.
    """
    space = backend.open(SPACE)
    _templates(backend, workload.entries)
    bench.start.wait()
    bench.start.wait()
    begin = time.perf_counter()
    workload.run(backend, space)
    aged_s = time.perf_counter() - begin
    for _ in range(1 + barriers):
        bench.start.wait()
    space.close()
    return aged_s


def clean(bench: Bench, backend: Backend, entries: Sequence[Entry]) -> tuple[float, int]:
    """Take everything of these kinds; how long it took, and how much there was."""
    del bench
    space = backend.open(SPACE)
    templates = _templates(backend, entries)
    begin = time.perf_counter()
    taken = 0
    for template in templates:
        while space.try_take(*template) is not None:
            taken += 1
    cleaned_s = time.perf_counter() - begin
    space.close()
    return cleaned_s, taken


def _templates(backend: Backend, entries: Sequence[Entry]) -> list[Fields]:
    """The template of each kind; an entry of each was made, so that no import is timed."""
    for entry in entries:
        fields_of(backend, entry, 0)
    return [template_of(backend, entry) for entry in entries]


# --- what follows ---


NEW_SPACES = {PAPER_AGED: PAPER, TOGETHER_AGED: TOGETHER}
"""Where the same clients do the same in a new space, of systems without a control."""
CONTROL = 0
"""The operations that age a space in the cell that the others of a series are compared with.

It is a new space, which has its repeats in turns with them.
"""
COMPARED = ((RESPONSE, PAPER_AGED), (RESPONSE, TOGETHER_AGED), (THROUGHPUT, TOGETHER_AGED))
"""What aging can change: where all wait for the delays, it can not change the throughput."""


def is_control(measure: Measure) -> bool:
    """Whether it is of a new space that has its repeats in turns with aged ones."""
    return measure.parameters.get("aged by") == CONTROL


def against_fresh(
    run: Run, metric: str, series: str, **cells: Any
) -> Iterator[tuple[Measure, Measure]]:
    """A metric of the same clients in a new space, and in each of these aged ones of a series."""
    for aged in run.find("settle", metric, series=series, **cells):
        if is_control(aged):
            continue
        same = {name: aged.parameters[name] for name in ("entry", "clients")}
        controls = {"series": series, "aged by": CONTROL}, {"series": NEW_SPACES[series]}
        found = (
            run.find_one("settle", metric, aged.backend, **same, **control) for control in controls
        )
        fresh = next((measure for measure in found if measure is not None), None)
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
    names = {RESPONSE: ADDED, THROUGHPUT: ADDED_THROUGHPUT}
    for metric, series in COMPARED:
        name = names[metric]
        for fresh, aged in against_fresh(run, metric, series):
            value = [added(fresh, aged)]
            yield Measure("settle", aged.backend, aged.parameters, name, "", value, derived=True)


def not_aged(run: Run, metric: str, cells: Mapping[str, Any]) -> list[Measure]:
    """The new spaces that these aged ones are compared with, but for those of the same series."""
    found = {
        fresh.backend: replace(fresh, parameters={**fresh.parameters, "aged by": CONTROL})
        for fresh, aged in against_fresh(run, metric, **cells)
        if "aged by" not in fresh.parameters
    }
    return list(found.values())


def table(run: Run, backends: Sequence[str]) -> Printed:
    """What aging adds, beside what the paper prints."""
    heads = (
        *("", "added to the response time, as printed", "at most of the time, as printed"),
        *("added here by", "to the response time, as there", "to that of clients all at once"),
        "to their throughput",
        "at most of the time of a run with the paper's delays",
    )
    aged = {
        each.backend for series in NEW_SPACES for each in run.find("settle", AGING, series=series)
    }
    rows = tuple(_row(run, each) for each in backends if each in aged)
    return Printed(AGING, "What aging adds", heads, rows, 2)


def _row(run: Run, backend: str) -> tuple[str, ...]:
    """The workload of the paper's figure, or the nearest that was measured."""
    pairs = [
        min(
            (
                pair
                for pair in against_fresh(run, *compared, entry="Null")
                if pair[1].backend == backend
            ),
            key=_from_printed,
            default=None,
        )
        for compared in COMPARED
    ]
    near = next((pair for pair in pairs if pair), None)
    of_all = run.find("settle", SHARE, series=PAPER_AGED, entry="Null")
    shares = [each.summary.mean for each in of_all if each.backend == backend]
    return (
        backend,
        "30 % by 3 000 operations (NullIO)",
        "31 %",
        f"{whole(near[1].parameters['aged by'])} operations" if near else "-",
        *(told_added(*pair) if pair else "-" for pair in pairs),
        f"{digits(100 * max(shares))} %" if shares else "-",
    )


def _from_printed(pair: tuple[Measure, Measure]) -> int:
    return abs(int(pair[1].parameters["aged by"]) - PRINTED_WORKLOAD)
