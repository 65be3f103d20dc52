"""Two runs side by side: what became faster or slower, as far as the samples can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.statistics import differ, is_mostly_below
from tupelo_bench.presentation.tables import Table, is_same_work
from tupelo_bench.presentation.units import digits, quantity

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Measure, Run


def compared(old: Run, new: Run) -> Table:
    """A row per measure that both runs have and that differs; the greatest change first.

    Where there are too few repeats to tell, every difference is shown, with a question mark. What
    was derived is not shown: it has no repeats, and follows from measures that are. Nor times of
    different work, which `cautions` counts.
    """
    before = {measure.key(): measure for measure in old.measures}
    changed: list[tuple[float, tuple[str, ...]]] = []
    for measure in new.measures:
        earlier = before.get(measure.key())
        if measure.derived or earlier is None or _is_of_different_work(measure):
            continue
        if not (earlier.summary.mean and measure.summary.mean):
            continue
        ratio = measure.summary.mean / earlier.summary.mean
        change = _change(earlier, measure, ratio)
        if change:
            changed.append((max(ratio, 1 / ratio), _row(earlier, measure, change)))
    changed.sort(key=lambda pair: pair[0], reverse=True)
    return Table(
        title="changed since the old run",
        heads=("", "backend", "metric", "old", "new", "new / old"),
        rows=tuple(row for _, row in changed),
    )


def cautions(old: Run, new: Run) -> list[str]:
    """What a reader of the comparison has to know: what else is different, and what is missing."""
    found = []
    if old.quick != new.quick:
        found.append("one of the runs is quick: what they have in common is too small to tell")
    for name, here in new.machine.items():
        there = old.machine.get(name)
        if name != "load_1min" and there != here:
            found.append(f"another machine: {name} was {there}, and is {here}")
    for name, version in new.versions.items():
        if name in old.versions and old.versions[name] != version:
            found.append(f"{name} was {old.versions[name]}, and is {version}")
    keys = [{measure.key() for measure in run.measures} for run in (old, new)]
    for only, which in ((keys[0] - keys[1], "old"), (keys[1] - keys[0], "new")):
        if only:
            found.append(f"{len(only)} of {len(keys[which == 'new'])} are in the {which} run only")
    both = keys[0] & keys[1]
    times = sum(m.key() in both and _is_of_different_work(m) for m in new.measures)
    if times:
        found.append(f"not compared: {times} times, each of as much work as filled it")
    return found


def _is_of_different_work(measure: Measure) -> bool:
    """Whether it is a time in which each run did as much as it could."""
    return measure.unit == "s" and not is_same_work(measure)


def _change(old: Measure, new: Measure, ratio: float) -> str:
    """How many times the old mean the new one is; empty if the two do not differ.

    The test decides that, not the means: a single repeat during which the machine stood still turns
    these around, and would hide what became of all the others.
    """
    apart = differ(old.independent, new.independent)
    if apart is None:
        return "" if ratio == 1 else f"{digits(ratio)} x?"
    if not apart:
        return ""
    is_more = is_mostly_below(old.independent, new.independent)
    as_the_means = ratio > 1 if is_more else ratio < 1
    by_the_test = "" if as_the_means else f"; by the test it is {'more' if is_more else 'less'}"
    return f"{digits(ratio)} x{by_the_test}"


def _row(old: Measure, new: Measure, change: str) -> tuple[str, ...]:
    return (
        f"{new.experiment} {told(new.parameters)}".rstrip(),
        new.backend,
        new.metric,
        quantity(old.summary.mean, old.unit),
        quantity(new.summary.mean, new.unit),
        change,
    )
