"""A record that is made in several sittings: what it has already, and how a sitting is added.

A cell gets further repeats, with seeds of their own, until it has as many as are wanted. What was
over budget in one sitting may be measured in the next. A sitting on another machine, or with other
versions, is added too, and the record says so at its top. There an experiment is better measured as
a whole: what the record has of it is left out first. That of one system alone can be left out, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tupelo_bench.harness.histogram import Histogram, merged
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.record import BadRecordError, Measure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tupelo_bench.harness.record import Remark, Run

YARDSTICKS = "yardsticks"
Cell = tuple[str, str, str]
"""Experiment, backend, and parameters as told."""
FINGERPRINT = ("processor", "processors", "memory_bytes", "kernel", "virtual")
KEPT = ("wrong result", "repeat stopped")  # of a cell that was measured all the same
LISTED_MAX = 6  # differences of versions in a caveat


def cell_of(measure: Measure | Remark) -> Cell:
    """The cell that a measure or a remark is of."""
    return measure.experiment, measure.backend, told(measure.parameters)


def repeats_before(run: Run) -> dict[Cell, int]:
    """How many repeats each cell of a record has: those of the metric with the most."""
    found: Counter[Cell] = Counter()
    for measure in run.measures:
        if not measure.derived:
            cell = cell_of(measure)
            found[cell] = max(found[cell], len(measure.independent))
    return dict(found)


def require_same_plan(old: Run, *, quick: bool, seed: int) -> None:
    """See that a sitting can be added to a record.

    Raises:
        BadRecordError: it has other sizes, or other random input.
    """
    if old.quick != quick:
        sizes = "with --quick" if old.quick else "without --quick"
        message = f"the record was made {sizes}: resume it so, or name another folder"
        raise BadRecordError(message)
    if old.seed != seed:
        message = f"the record has the seed {old.seed}: type --seed {old.seed} to resume it"
        raise BadRecordError(message)


def without(run: Run, experiments: Collection[str], backends: Collection[str] | None = None) -> Run:
    """The record as if these experiments had not been measured yet.

    `backends` are the only ones that are left out of them; None for all.
    """

    def is_left_out(experiment: str, backend: str) -> bool:
        return experiment in experiments and (backends is None or backend in backends)

    measures = [m for m in run.measures if not is_left_out(m.experiment, m.backend)]
    gone = set(experiments) - {measure.experiment for measure in measures}
    spent_s = {
        experiment: {name: s for name, s in each.items() if not is_left_out(experiment, name)}
        for experiment, each in run.spent_s.items()
        if experiment not in gone
    }
    return replace(
        run,
        measures=measures,
        remarks=[r for r in run.remarks if not is_left_out(r.experiment, r.backend)],
        spent_s=spent_s,
        placements={name: at for name, at in run.placements.items() if name not in gone},
    )


def added(old: Run, new: Run) -> Run:
    """The record with a further sitting in it; what follows from measures is left out."""
    measures = {measure.key(): measure for measure in old.measures if not measure.derived}
    for each in new.measures:
        if each.derived:
            continue
        measure = _of_its_machine(each, old, new)
        before = measures.get(measure.key())
        measures[measure.key()] = _joined(before, measure) if before else measure
    measured = {cell_of(measure) for measure in measures.values()}
    remarks = [*_still_true(old.remarks, new, measured), *new.remarks]
    return replace(
        old,
        measures=list(measures.values()),
        remarks=[remark for remark in remarks if not _is_made_good(remark, measured)],
        versions={**old.versions, **new.versions},
        notes={**old.notes, **new.notes},
        duration_s=round(old.duration_s + new.duration_s, 1),
        spent_s=_together(old.spent_s, new.spent_s),
        placements={**old.placements, **new.placements},
        caveats=[*old.caveats, *_differences(old, new)],
        sittings=[*(old.sittings or [sitting(old)]), sitting(new)],
    )


def sitting(run: Run) -> str:
    """A sitting in a line: when, how long, on which machine, and by which command."""
    of = run.machine
    cache = f" with {of['cache']} of cache" if of.get("cache") else ""
    where = f"{of['processor']}{cache}, load {of.get('load_1min')}"
    return f"{run.begin}, {run.duration_s / 60:.0f} minutes, {where}: {' '.join(run.command)}"


def _of_its_machine(measure: Measure, old: Run, new: Run) -> Measure:
    """The measure of a new sitting; a yardstick of another machine stands for itself."""
    if measure.experiment != YARDSTICKS or not _changed(_fingerprint(old), _fingerprint(new)):
        return measure
    return replace(measure, parameters={**measure.parameters, "of": new.machine["processor"]})


def _joined(before: Measure, after: Measure) -> Measure:
    """The samples of both, repeat by repeat."""
    groups = [
        *(before.groups or [1] * len(before.samples)),
        *(after.groups or [1] * len(after.samples)),
    ]
    texts = [each.histogram for each in (before, after) if each.histogram is not None]
    histogram = merged([Histogram.decoded(text) for text in texts]).encoded() if texts else None
    return replace(
        before,
        samples=[*before.samples, *after.samples],
        groups=groups if max(groups) > 1 else [],
        histogram=histogram,
        histograms=[*before.histograms, *after.histograms],
        pooled=None,
    )


def _still_true(remarks: Iterable[Remark], new: Run, measured: set[Cell]) -> Iterable[Remark]:
    """Remarks of earlier sittings, but for why a cell was not measured, if this one tells better.

    A result that was wrong once is not undone by a sitting that gets it right.
    """
    told_anew = {cell_of(remark) for remark in new.remarks} | measured
    return [
        remark
        for remark in remarks
        if remark not in new.remarks and (remark.why in KEPT or cell_of(remark) not in told_anew)
    ]


def _is_made_good(remark: Remark, measured: set[Cell]) -> bool:
    """Whether a cell was left out for lack of time, and has a measure all the same."""
    return remark.why == "over budget" and cell_of(remark) in measured


def _together(
    before: dict[str, dict[str, float]], after: dict[str, dict[str, float]]
) -> dict[str, dict[str, float]]:
    """How long each backend took, in all sittings."""
    found = {experiment: dict(spent_s) for experiment, spent_s in before.items()}
    for experiment, spent_s in after.items():
        so_far = found.setdefault(experiment, {})
        for backend, seconds in spent_s.items():
            so_far[backend] = round(so_far.get(backend, 0.0) + seconds, 1)
    return found


def _differences(old: Run, new: Run) -> list[str]:
    """What was not the same in a sitting, in words."""
    found = _changed(_fingerprint(old), _fingerprint(new)) + _changed(old.versions, new.versions)
    if not found:
        return []
    listed = "; ".join(found[:LISTED_MAX])
    more = f"; {len(found) - LISTED_MAX} more" if len(found) > LISTED_MAX else ""
    text = f"The sitting of {new.begin} differs from those before: {listed}{more}."
    both = [name for name in _experiments(new) if name in _experiments(old)]
    if both:
        return [f"{text} Its repeats of {' and '.join(both)} stand beside theirs."]
    return [f"{text} All of {' and '.join(_experiments(new))} was measured in it, and no more."]


def _fingerprint(run: Run) -> dict[str, Any]:
    return {name: run.machine.get(name) for name in FINGERPRINT}


def _experiments(run: Run) -> list[str]:
    """What was measured in a run, beside the yardsticks."""
    return [
        name for name in dict.fromkeys(m.experiment for m in run.measures) if name != YARDSTICKS
    ]


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [
        f"{name} {after[name]}, before {before[name]}"
        for name in before
        if name in after and before[name] != after[name]
    ]
