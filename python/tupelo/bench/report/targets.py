"""What the results were to show, and whether they do: computed from the record, target by target.

A peer with a server is compared at its best placement, on one processor or on two. That alone makes
a factor of two to five, and nobody who knows would choose the worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tupelo.bench.experiments.base import OURS
from tupelo.bench.experiments.cases.visits import CASE as VISITS
from tupelo.bench.experiments.cases.visits import SEEDS, comparisons
from tupelo.bench.harness.placement import PLACEMENTS
from tupelo.bench.harness.runner import told
from tupelo.bench.harness.statistics import differ
from tupelo.bench.report.tables import Table, is_same_work
from tupelo.bench.report.units import digits, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo.bench.harness.record import Measure, Run

SMALL = ("Null", "Integer", "Char 32", "Double 32")  # up to 256 bytes
LARGE = ("Double 2048",)  # 16 KiB
FACTORS = ((SMALL, 100.0, "up to 256 bytes"), (LARGE, 20.0, "of 16 KiB"))
FILLED_MAX = 1.5
THROUGHPUT_LEAST = 0.8
COORDINATION_FROM = 0.2
NAMED_MAX = 3  # examples in a cell of a table


@dataclass(frozen=True)
class Verdict:
    """A target, and what became of it."""

    what: str
    target: str
    measured: str
    reached: bool | None
    """None if it was not measured, or not enough of it to tell."""


def targets(run: Run) -> Table:
    """All targets whose experiment was run."""
    found = [verdict for judge, of in JUDGES if run.of(of) for verdict in judge(run)]
    return Table(
        "What it was to show",
        ("", "target", "measured", "reached"),
        tuple((v.what, v.target, v.measured, _word(v)) for v in found),
    )


def _word(verdict: Verdict) -> str:
    if verdict.reached is None:
        return "not measured" if verdict.measured == "-" else "too little to tell"
    return "yes" if verdict.reached else "**no**"


def _reached(reached: bool, *, is_whole: bool) -> bool | None:  # noqa: FBT001 - the verdict so far
    """The verdict on a target, of which a part was not measured if not `is_whole`."""
    return reached if is_whole or not reached else None


def best(run: Run, metric: str, backend: str, **parameters: Any) -> Measure | None:
    """The measure of a backend at the placement that suits it best."""
    found = [m for m in run.find("mem", metric, **parameters) if m.backend == backend]
    return min(found, key=lambda measure: measure.summary.mean, default=None)


def fill_max(run: Run, entry: str) -> int:
    """The fullest space with such entries in which we were measured."""
    fills = [
        measure.parameters["fill"]
        for measure in run.find("mem", "take", entry=entry)
        if measure.backend == OURS
    ]
    return max(fills, default=0)


def _faster(run: Run) -> Iterator[Verdict]:
    for peer in ("javaspaces", "redis"):
        for entries, factor, size in FACTORS:
            ratios = []
            for metric in ("put", "take"):
                for entry in entries:
                    ours = best(run, metric, OURS, entry=entry, fill=0)
                    theirs = best(run, metric, peer, entry=entry, fill=0)
                    if ours and theirs:
                        ratio = theirs.summary.mean / ours.summary.mean
                        where = theirs.parameters["placement"]
                        ratios.append((ratio, f"{metric} {entry}, {peer} {where}"))
            least, which = min(ratios, default=(0.0, ""))
            if len(ratios) < 2 * len(entries):
                which += f"; {len(ratios)} of {2 * len(entries)} cells"
            yield Verdict(
                f"put and take, entries {size}, against {peer}",
                f"{factor:.0f} x as fast",
                f"{digits(least)} x at least ({which})" if ratios else "-",
                least >= factor if ratios else None,
            )


def _filled(run: Run) -> Iterator[Verdict]:
    pairs = []
    for metric in ("put", "take"):
        for full in run.find("mem", metric):
            fixed = {**full.parameters, "fill": 0}
            empty = run.find_one("mem", metric, OURS, **fixed)
            if full.backend == OURS and full.parameters["fill"] and empty:
                entry, there = full.parameters["entry"], whole(full.parameters["fill"])
                pairs.append((f"{metric} {entry}, {there} there", full, empty))
    yield _ratios("a space with tuples of an entry, against an empty one", pairs)
    fill = fill_max(run, "key last")
    last, first = (
        best(run, "take", OURS, entry=entry, fill=fill) for entry in ("key last", "key first")
    )
    what = f"take by the last field out of {whole(fill)}, against the first"
    yield _ratios(what, [("take", last, first)])


def _ratios(what: str, pairs: Sequence[tuple[str, Measure | None, Measure | None]]) -> Verdict:
    ratios = [
        (one.summary.mean / other.summary.mean, which)
        for which, one, other in pairs
        if one and other
    ]
    above = sorted((pair for pair in ratios if pair[0] > FILLED_MAX), reverse=True)
    named = above[:NAMED_MAX] or sorted(ratios, reverse=True)[:1]
    measured = "; ".join(f"{digits(ratio)} x ({which})" for ratio, which in named)
    if len(ratios) > 1:
        measured += f"; {len(ratios) - len(above)} of {len(ratios)} within it"
    return Verdict(what, f"{FILLED_MAX} x at most", measured or "-", not above if ratios else None)


def _knee(run: Run) -> Iterator[Verdict]:
    found = {
        measure.parameters["clients"]: measure.summary.mean
        for measure in run.find("settle", "throughput", series="overlapping")
        if measure.backend == OURS
    }
    most = max(found, default=0)
    share = found[most] / max(found.values()) if found else 0.0
    yield Verdict(
        f"throughput with {most} clients that overlap, against its maximum",
        f"{THROUGHPUT_LEAST:.0%} at least",
        f"{share:.0%}" if found else "-",
        share >= THROUGHPUT_LEAST if found else None,
    )


def _cases(run: Run) -> Iterator[Verdict]:
    pairs = list(_beside_us(run, "cases", "total"))
    yield _none_faster(
        "peers that are significantly faster in a case, size and number of workers",
        pairs,
        _missing(run, "cases"),
    )
    shares = {
        (m.backend, told(m.parameters)): m.summary.mean for m in run.find("cases", "coordination")
    }
    chatty = [
        (ours, theirs)
        for ours, theirs in pairs
        if max(shares.get((m.backend, told(m.parameters)), 0.0) for m in (ours, theirs))
        > COORDINATION_FROM
    ]
    slower = [theirs for ours, theirs in chatty if ours.summary.mean >= theirs.summary.mean]
    yield Verdict(
        f"peers that are not slower where over {COORDINATION_FROM:.0%} is coordination",
        "none",
        _listed(slower, len(chatty)) if chatty else "-",
        not slower if chatty else None,
    )


def _visits(run: Run) -> Iterator[Verdict]:
    found = [each for each in comparisons(run) if each.parameters["case"] == VISITS]
    outcomes = [each.outcome for each in found]
    told_of = ", ".join(f"{outcomes.count(each)} {each}" for each in dict.fromkeys(outcomes))
    # A difference that the test does not see can still be there with every single seed.
    worst = max(found, key=lambda each: each.seeds_with_more or 0, default=None)
    if worst is not None and worst.seeds_with_more:
        told_of += (
            f"; with {worst.seeds_with_more} of {SEEDS} seeds more, where the tuples are"
            f" {worst.parameters['tuples']}: {digits(worst.learned.summary.mean)} for"
            f" {digits(worst.in_turn.summary.mean)}"
        )
    yield Verdict(
        f"visited spaces of a search by success factor, against in turn, of {SEEDS} seeds",
        "not significantly more",
        told_of or "-",
        "more" not in outcomes if found else None,
    )


def _calls(run: Run) -> Iterator[Verdict]:
    for where in PLACEMENTS:
        for peer, sizes in (("grpc", None), ("udp", (256,))):
            ratios = [
                (ours.summary.mean / theirs.summary.mean, ours.parameters["bytes"])
                for ours, theirs in _beside_us(run, "rpc", "round trip", placement=where)
                if theirs.backend == peer and sizes in (None, (ours.parameters["bytes"],))
            ]
            most = max(ratios, key=lambda pair: pair[0], default=(0.0, ""))
            ours = {
                measure.parameters["bytes"]
                for measure in run.find("rpc", "round trip", placement=where)
                if measure.backend == OURS
            }
            of = len(sizes or ours)
            measured = f"{digits(most[0])} x at most ({most[1]} bytes)"
            if len(ratios) < of:
                measured += f"; {len(ratios)} of {of} payloads"
            yield Verdict(
                f"a round trip, client and server {where}, against {peer}",
                "below it at 256 bytes" if sizes else "below it at every payload",
                measured if ratios else "-",
                _reached(most[0] < 1, is_whole=len(ratios) >= of) if ratios else None,
            )


def _sorts(run: Run) -> Iterator[Verdict]:
    pairs = [p for p in _beside_us(run, "sort", "response time") if p[1].backend == "grpc"]
    yield _none_faster(
        "sizes and numbers of workers at which gRPC sorts significantly faster",
        pairs,
        _missing(run, "sort", "grpc"),
    )


def _missing(run: Run, experiment: str, peer: str | None = None) -> int:
    """How many cells of peers, or of one, were over their share of the time."""
    return sum(
        remark.experiment == experiment
        and remark.why == "over budget"
        and (remark.backend == peer if peer else not remark.backend.startswith("tupelo"))
        for remark in run.remarks
    )


def _none_faster(what: str, pairs: Sequence[tuple[Measure, Measure]], missing: int) -> Verdict:
    """Whether no peer is significantly faster; unknown if one is and there are too few repeats."""
    judged = [(theirs, _is_faster(theirs, ours)) for ours, theirs in pairs]
    faster = [theirs for theirs, is_faster in judged if is_faster]
    perhaps = [theirs for theirs, is_faster in judged if is_faster is None]
    measured = _listed(faster, len(pairs)) if pairs else "-"
    if perhaps:
        measured += f"; perhaps {_listed(perhaps, len(pairs))}"
    if missing:
        measured += f"; {missing} more were over the budget"
    is_known = bool(faster) or (bool(pairs) and not perhaps)
    return Verdict(what, "none", measured, not faster if is_known else None)


def _beside_us(
    run: Run, experiment: str, metric: str, **fixed: Any
) -> Iterator[tuple[Measure, Measure]]:
    """Ours and each peer's, at the same parameters."""
    found = list(run.find(experiment, metric, **fixed))
    ours = {told(measure.parameters): measure for measure in found if measure.backend == OURS}
    for measure in found:
        same = ours.get(told(measure.parameters))
        if same is not None and not measure.backend.startswith("tupelo"):
            yield same, measure


def _is_faster(one: Measure, other: Measure) -> bool | None:
    """Whether one is significantly faster than the other; None if it is, by too few repeats."""
    if one.summary.mean >= other.summary.mean:
        return False
    return differ(one.independent, other.independent)


def _listed(found: Sequence[Measure], of: int) -> str:
    named = [f"{m.backend} {told(m.parameters)}" for m in found[:NAMED_MAX]]
    more = [f"{len(found) - NAMED_MAX} more"] if len(found) > NAMED_MAX else []
    return "; ".join([f"{len(found)} of {of} comparisons", *named, *more])


def faster_peers(run: Run) -> Table:
    """Every cell of a time in which a peer is faster than we are, unless it is by chance.

    A question mark says that there are too few repeats to tell. Not where their work differs.
    """
    rows = []
    for experiment, metric in (
        ("mem", "put"), ("mem", "take"), ("settle", "response time"), ("cases", "total"),
        ("rpc", "round trip"), ("rpc", "latency under load p99"), ("rpc", "one to many"),
        ("rpc", "undirected"), ("sort", "response time"),
    ):  # fmt: skip
        for ours, theirs in _beside_us(run, experiment, metric):
            is_faster = _is_faster(theirs, ours)
            if is_same_work(theirs) and is_faster is not False:
                ratio = digits(ours.summary.mean / theirs.summary.mean)
                where = f"{experiment} {told(theirs.parameters)}"
                doubt = "" if is_faster else "?"
                rows.append((where, metric, theirs.backend, f"{doubt}{ratio} x"))
    heads = ("", "metric", "peer", "as fast as we are")
    return Table("Where a peer is faster", heads, tuple(rows))


JUDGES = (
    (_faster, "mem"),
    (_filled, "mem"),
    (_knee, "settle"),
    (_cases, "cases"),
    (_visits, "cases"),
    (_calls, "rpc"),
    (_sorts, "sort"),
)
