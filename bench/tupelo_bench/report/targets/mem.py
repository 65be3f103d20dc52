"""What MEM was to show: how much faster a put and a take are, and that filling costs little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.mem import KEYED_FILLS, memory
from tupelo_bench.experiments.mem.entries import KEYED, LARGE, SMALL
from tupelo_bench.experiments.yardsticks import DICT_PUT, DICT_TAKE
from tupelo_bench.harness.placement import PLACEMENTS
from tupelo_bench.presentation.units import digits, whole
from tupelo_bench.report.beside import best, fill_max
from tupelo_bench.report.targets.verdict import NAMED_MAX, Verdict, is_below, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo_bench.harness.record import Measure, Run

METRICS = ("put", "take")
FACTORS = ((SMALL, 100.0, "up to 256 bytes"), (LARGE, 20.0, "of 16 KiB"))
FILLED_MAX = 1.5


def faster(run: Run) -> Iterator[Verdict]:
    """How many times as fast as the peers we are: the least of all cells."""
    for peer in ("javaspaces", "redis"):
        for entries, factor, size in FACTORS:
            yield _faster(run, peer, entries, factor, size)


def _faster(run: Run, peer: str, entries: Sequence[str], factor: float, size: str) -> Verdict:
    ratios = []
    judged = []  # of each cell, whether the repeats bear it out
    half = 0  # cells at one placement of the peer: nobody knows whether it is the better one
    for metric in METRICS:
        for entry in entries:
            ours = best(run, metric, OURS, entry=entry, fill=0)
            theirs = best(run, metric, peer, entry=entry, fill=0)
            if ours and theirs:
                ratio = theirs.summary.mean / ours.summary.mean
                ratios.append((ratio, f"{metric} {entry}, {peer} {theirs.parameters['placement']}"))
                judged.append(is_below(ours, 1 / factor, theirs))
                found = run.find("mem", metric, entry=entry, fill=0)
                half += sum(measure.backend == peer for measure in found) < len(PLACEMENTS)
    least, which = min(ratios, default=(0.0, ""))
    of = len(METRICS) * len(entries)
    measured = f"{digits(least)} x at least ({which})"
    if len(ratios) < of:
        measured += f"; {len(ratios)} of {of} cells"
    if half:
        measured += f"; {half} of them with it at one placement only"
    untold = judged.count(None)
    if untold:
        measured += f"; {untold} can not be told"
    is_whole = len(ratios) == of and not half and not untold
    return Verdict(
        f"put and take, entries {size}, against {peer}",
        f"{factor:.0f} x as fast",
        measured if ratios else "-",
        verdict(False not in judged, is_whole=is_whole) if ratios else None,
    )


def filled(run: Run) -> Iterator[Verdict]:
    """What tuples that are there add to a put and a take, and a key in the last field."""
    keys = [f"key {field}" for field in KEYED]
    small = _against_empty(run, SMALL)
    yield _none_above(
        "a space with tuples of an entry up to 256 bytes, against an empty one", *small
    )
    yield _none_above(
        "a space with keys, against an empty one", *_against_empty(run, keys), _dictionary(run)
    )
    fill = fill_max(run, "key last")
    last, first = (
        best(run, "take", OURS, entry=entry, fill=fill) for entry in ("key last", "key first")
    )
    what = f"take by the last field out of {whole(fill)}, against the first"
    yield _none_above(what, [("take", last, first)], int(fill < max(KEYED_FILLS)))


Pair = tuple[str, "Measure | None", "Measure | None"]


def _against_empty(run: Run, entries: Sequence[str]) -> tuple[list[Pair], int]:
    """Each fuller space of these entries with the empty one, and how many were not measured."""
    pairs: list[Pair] = []
    for metric in METRICS:
        for full in run.find("mem", metric):
            entry, fill = full.parameters["entry"], full.parameters["fill"]
            if full.backend == OURS and entry in entries and fill:
                empty = run.find_one("mem", metric, OURS, **{**full.parameters, "fill": 0})
                pairs.append((f"{metric} {entry}, {whole(fill)} there", full, empty))
    missing = sum(empty is None for *_, empty in pairs)
    fullest = max((full.parameters["fill"] for _, full, _ in pairs if full), default=0)
    missing += int(0 < fullest < max(KEYED_FILLS))  # as in a quick run
    missing += len(METRICS) * sum(  # a cell is a put and a take
        remark.experiment == "mem"
        and remark.backend == OURS
        and remark.parameters.get("entry") in entries
        and remark.parameters.get("fill") not in (0, memory.COUNT, memory.COUNT_LARGE)
        for remark in run.left_out
    )
    return pairs, missing


def _dictionary(run: Run) -> str:
    """What as many keys add to the same in a private dictionary, of the same run."""
    told = []
    for metric, name in ((DICT_PUT, "insert"), (DICT_TAKE, "pop")):
        found = {
            m.parameters["fill"]: m.summary.mean
            for m in run.find("yardsticks", metric, of=None)  # not of another machine
            if "at" not in m.parameters
        }
        if found.get(0) and len(found) > 1:
            told.append(f"{name} {digits(found[max(found)] / found[0])} x")
    return f"; a private dictionary of Python: {', '.join(told)}" if told else ""


def _none_above(what: str, pairs: Sequence[Pair], missing: int, beside: str = "") -> Verdict:
    judged = [
        ((one.summary.mean / other.summary.mean, which), is_below(one, FILLED_MAX, other))
        for which, one, other in pairs
        if one and other
    ]
    ratios = [ratio for ratio, _ in judged]
    above = sorted((ratio for ratio, is_within in judged if is_within is False), reverse=True)
    untold = sum(is_within is None for _, is_within in judged)
    named = above[:NAMED_MAX] or sorted(ratios, reverse=True)[:1]
    measured = "; ".join(f"{digits(ratio)} x ({which})" for ratio, which in named)
    if len(ratios) > 1:
        measured += f"; {len(ratios) - len(above) - untold} of {len(ratios)} within it"
    if untold:
        measured += f"; {untold} can not be told"
    if ratios and missing:
        measured += f"; {missing} not measured"
    if ratios:
        measured += beside
    reached = verdict(not above, is_whole=not (missing or untold)) if ratios else None
    return Verdict(what, f"{FILLED_MAX} x at most", measured or "-", reached)
