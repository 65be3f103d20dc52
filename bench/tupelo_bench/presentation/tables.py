"""Tables of a record: per metric a row per set of parameters, a column per backend.

A figure is the mean, where there is room with the least and the greatest of the repeats; behind it
stands how many times that of the first column it is: ours, or whose is asked for. A tilde says that
the two do not differ significantly, or the other way round, a question mark that there are too few
repeats to tell. Where there is no figure it says why, as the record does ("can not", "over
budget"), if that knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.statistics import can_tell, differ, is_mostly_below
from tupelo_bench.presentation.units import between, digits, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tupelo_bench.harness.record import Measure, Run


@dataclass(frozen=True)
class Table:
    """Heads and rows of text."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


OWN_WORK = ("load", "half of its own")
"""Where each system has half as much to do as it can: their times are of different work."""
EXACT = {"memory per tuple"}
"""What hardly differs between repeats, since it is counted and not timed."""


def is_same_work(measure: Measure) -> bool:
    """Whether all systems did the same for a measure, so that their times can be compared."""
    return OWN_WORK not in measure.parameters.items()


def metrics(measures: Sequence[Measure]) -> list[str]:
    """The metrics, in the order of their first measure."""
    return list(dict.fromkeys(measure.metric for measure in measures))


def mean_of(measure: Measure) -> str:
    """The mean, and the least and the greatest mean of a repeat if there are several."""
    mean, repeats = measure.summary.mean, measure.repeats
    if repeats.count == 1:
        return quantity(mean, measure.unit)
    return between(mean, repeats.least, repeats.greatest, measure.unit)


def tables(
    run: Run,
    experiment: str,
    only: Sequence[str] | None = None,
    *,
    narrow: bool = False,
    against: str | None = None,
) -> list[Table]:
    """A table per metric of an experiment; of some metrics only if they are named.

    A `narrow` one has means alone. All are compared with the backend `against`, which comes first
    where it has figures; else with the first of the record.
    """
    measures = run.of(experiment)
    wanted = metrics(measures) if only is None else [m for m in metrics(measures) if m in only]
    reasons = {
        (told(remark.parameters), remark.backend): remark.why
        for remark in run.left_out
        if remark.experiment == experiment
    }
    return [
        _table(
            [m for m in measures if m.metric == metric],
            metric,
            reasons,
            narrow=narrow,
            against=against,
        )
        for metric in wanted
    ]


def machine(run: Run) -> Table:
    """What a run was made on: the machine, and a row for each version."""
    of, versions = run.machine, sorted(run.versions.items())
    virtual = ", virtual" if of["virtual"] else ""
    # An older record has no more of its processors than their name.
    details = ((of.get("mhz"), " MHz"), (of.get("cache"), " of cache"), (of.get("governor"), ""))
    detail = "".join(f", {told}{unit}" for told, unit in details if told)
    rows = (
        ("processor", f"{of['processor']}, {len(of['processors'])} processors{virtual}{detail}"),
        ("memory", quantity(of["memory_bytes"], "bytes")),
        ("kernel", of["kernel"]),
        ("load when it began", f"{of['load_1min']}"),
        *((name, version) for name, version in versions if version),
    )
    return Table("", ("machine and versions", ""), rows)


def repeats(run: Run) -> Table:
    """How often the cells of each experiment were repeated, and how many too seldom to tell."""
    rows = []
    for experiment in dict.fromkeys(measure.experiment for measure in run.measures):
        cells: dict[tuple[str, str], tuple[int, int]] = {}
        for measure in run.of(experiment):
            if not measure.derived:
                cell = (measure.backend, told(measure.parameters))
                here = (len(measure.independent), len(measure.samples))
                # Some metrics are of the first repeat only: the one with most repeats tells.
                cells[cell] = max(cells.get(cell, here), here)
        counts = [count for count, _ in cells.values()]
        few = sum(not can_tell(count, count) for count in counts)
        rows.append(
            (
                experiment,
                str(len(cells)),
                span(counts),
                span([samples for _, samples in cells.values()]),
                str(few) if few else "none",
            )
        )
    heads = (
        "",
        "cells",
        "repeats of a cell",
        "samples (mem: cycles)",
        "cells with too few to tell",
    )
    return Table("Repeats", heads, tuple(rows))


def span(counts: Sequence[int]) -> str:
    """The least and the greatest: "5 to 10"."""
    least, greatest = min(counts), max(counts)
    return str(least) if least == greatest else f"{least} to {greatest}"


def _table(
    measures: Sequence[Measure],
    metric: str,
    reasons: Mapping[tuple[str, str], str],
    *,
    narrow: bool,
    against: str | None,
) -> Table:
    rows: dict[str, dict[str, Measure]] = {}
    for measure in measures:
        rows.setdefault(told(measure.parameters), {})[measure.backend] = measure
    present = [measure.backend for measure in measures]
    absent = [backend for parameters, backend in reasons if parameters in rows]
    first = [against] if against in present else []
    backends = list(dict.fromkeys([*first, *present, *absent]))
    return Table(
        title=metric,
        heads=("", *backends),
        rows=tuple(
            (
                parameters,
                *(
                    _cell(
                        cells,
                        (backend, backends[0]),
                        reasons.get((parameters, backend), "-"),
                        narrow=narrow,
                    )
                    for backend in backends
                ),
            )
            for parameters, cells in rows.items()
        ),
    )


def _cell(cells: dict[str, Measure], pair: tuple[str, str], reason: str, *, narrow: bool) -> str:
    backend, first = pair
    if backend not in cells:
        return reason
    measure = cells[backend]
    text = quantity(measure.summary.mean, measure.unit) if narrow else mean_of(measure)
    if backend == first or first not in cells:
        return text
    yardstick = cells[first]
    mean = yardstick.summary.mean
    # A share of a share says nothing, nor does a number of objects.
    has_ratio = measure.unit != "" and (measure.unit != "s" or is_same_work(measure))
    if not mean or not has_ratio:
        return text
    return f"{text}  {sign(yardstick, measure)}{digits(measure.summary.mean / mean)} x"


def sign(one: Measure, other: Measure) -> str:
    """A tilde if they do not differ significantly, a question mark if nobody can tell.

    A tilde also where the test finds the reverse of what the means say: it supports no such ratio.
    What is exact needs no test: one sample of each is enough.
    """
    if one.metric in EXACT:
        return ""
    apart = differ(one.independent, other.independent)
    if apart is None:
        return "?"
    as_the_means = (one.summary.mean < other.summary.mean) == is_mostly_below(
        one.independent, other.independent
    )
    return "" if apart and as_the_means else "~"
