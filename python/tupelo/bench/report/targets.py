"""What the results were to show, and whether they do: computed from the record, target by target.

A peer with a server is compared at its best placement, on one processor or on two. That alone makes
a factor of two to five, and nobody who knows would choose the worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tupelo.bench.harness.runner import told
from tupelo.bench.harness.statistics import differ
from tupelo.bench.report.tables import Table
from tupelo.bench.report.units import digits, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo.bench.harness.record import Measure, Run

OURS = "tupelo-shm"
SMALL = ("Null", "Integer", "Char 32", "Double 32")  # up to 256 bytes
LARGE = ("Double 2048",)  # 16 KiB
FACTORS = ((SMALL, 100.0, "up to 256 bytes"), (LARGE, 20.0, "of 16 KiB"))
FILLED_MAX = 1.5
THROUGHPUT_LEAST = 0.8
COORDINATION_FROM = 0.2
PLACEMENTS = ("apart", "together")
OWN_WORK = {("series", "overlapping"), ("load", "half of its own")}
"""Where each system has as much to do as it can: their times are of different work."""
NAMED_MAX = 3  # examples in a cell of a table


@dataclass(frozen=True)
class Verdict:
    """A target, and what became of it."""

    what: str
    target: str
    measured: str
    reached: bool | None
    """None if it was not measured, or not often enough to tell."""


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
        return "not measured" if verdict.measured == "-" else "too few repeats to tell"
    return "yes" if verdict.reached else "**no**"


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
    fill = fill_max(run, "Integer")
    yield _ratios(
        f"a space with {whole(fill)} tuples, against an empty one",
        [
            (metric, best(run, metric, OURS, entry="Integer", fill=fill),
             best(run, metric, OURS, entry="Integer", fill=0))
            for metric in ("put", "take")
        ],
    )  # fmt: skip
    fill = fill_max(run, "key last")
    yield _ratios(
        f"take by the last field out of {whole(fill)}, against the first",
        [
            ("take", best(run, "take", OURS, entry="key last", fill=fill),
             best(run, "take", OURS, entry="key first", fill=fill))
        ],
    )  # fmt: skip


def _ratios(what: str, pairs: Sequence[tuple[str, Measure | None, Measure | None]]) -> Verdict:
    ratios = [
        (one.summary.mean / other.summary.mean, metric)
        for metric, one, other in pairs
        if one and other
    ]
    return Verdict(
        what,
        f"{FILLED_MAX} x at most",
        ", ".join(f"{metric} {digits(ratio)} x" for ratio, metric in ratios) or "-",
        max(ratios)[0] <= FILLED_MAX if ratios else None,
    )


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
        "peers that are significantly faster in a case, size and number of workers", pairs
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


def _calls(run: Run) -> Iterator[Verdict]:
    for where in PLACEMENTS:
        for peer, sizes in (("grpc", None), ("udp", (256,))):
            ratios = [
                (ours.summary.mean / theirs.summary.mean, ours.parameters["bytes"])
                for ours, theirs in _beside_us(run, "rpc", "round trip", placement=where)
                if theirs.backend == peer and sizes in (None, (ours.parameters["bytes"],))
            ]
            most = max(ratios, key=lambda pair: pair[0], default=(0.0, ""))
            yield Verdict(
                f"a round trip, client and server {where}, against {peer}",
                "below it at 256 bytes" if sizes else "below it at every payload",
                f"{digits(most[0])} x at most ({most[1]} bytes)" if ratios else "-",
                most[0] < 1 if ratios else None,
            )


def _sorts(run: Run) -> Iterator[Verdict]:
    pairs = [p for p in _beside_us(run, "sort", "response time") if p[1].backend == "grpc"]
    yield _none_faster(
        "sizes and numbers of workers at which gRPC sorts significantly faster", pairs
    )


def _none_faster(what: str, pairs: Sequence[tuple[Measure, Measure]]) -> Verdict:
    """Whether no peer is significantly faster; unknown if one is and there are too few repeats."""
    judged = [(theirs, _is_faster(theirs, ours)) for ours, theirs in pairs]
    faster = [theirs for theirs, is_faster in judged if is_faster]
    perhaps = [theirs for theirs, is_faster in judged if is_faster is None]
    measured = _listed(faster, len(pairs)) if pairs else "-"
    if perhaps:
        measured += f"; perhaps {_listed(perhaps, len(pairs))}"
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
            is_same_work = OWN_WORK.isdisjoint(theirs.parameters.items())
            if is_same_work and is_faster is not False:
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
    (_calls, "rpc"),
    (_sorts, "sort"),
)
