"""What RPC was to show: a call of two tuples that costs less than a call, and no longer tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.rpc.load import SAME_LOAD, UNDER_LOAD
from tupelo_bench.harness.bootstrap import quantile_ratio
from tupelo_bench.harness.histogram import Histogram
from tupelo_bench.harness.placement import PLACEMENTS
from tupelo_bench.harness.quantiles import NS_PER_S, QUANTILES
from tupelo_bench.harness.statistics import can_tell
from tupelo_bench.presentation.units import digits, quantity
from tupelo_bench.report.beside import SPINNING, beside_us, is_faster_than, is_peer
from tupelo_bench.report.targets.verdict import Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.placement import Where
    from tupelo_bench.harness.record import Measure, Run


def calls(run: Run) -> Iterator[Verdict]:
    """How a round trip stands beside that of a peer, at the payload that suits us least."""
    for where in PLACEMENTS:
        for peer, sizes in (("grpc", None), ("udp", (256,))):
            pairs = [
                (ours, theirs)
                for ours, theirs in beside_us(run, "rpc", "round trip", placement=where)
                if theirs.backend == peer and sizes in (None, (ours.parameters["bytes"],))
            ]
            ratios = [
                (ours.summary.mean / theirs.summary.mean, ours.parameters["bytes"])
                for ours, theirs in pairs
            ]
            untold = sum(is_faster_than(*pair) is None for pair in pairs)
            # A ratio of means that is a little below 1 may be chance.
            below = all(is_faster_than(*pair) is not False for pair in pairs)
            most = max(ratios, key=lambda pair: pair[0], default=(0.0, ""))
            of = len(sizes or payloads(run, where))
            measured = f"{digits(most[0])} x at most ({most[1]} bytes)"
            if len(ratios) < of:
                measured += f"; {len(ratios)} of {of} payloads"
            if untold:
                measured += f"; {untold} can not be told"
            yield Verdict(
                f"a round trip, client and server {where}, against {peer}",
                "below it at 256 bytes" if sizes else "below it at every payload",
                measured if ratios else "-",
                verdict(below, is_whole=len(ratios) >= of and not untold) if ratios else None,
            )


def tails(run: Run) -> Iterator[Verdict]:
    """The slowest calls at one rate for all, beside the sleeping peer that has the fewest.

    It is not worse unless the whole interval of the ratio is above 1.
    """
    for where in PLACEMENTS:
        at_one_rate = list(run.find("rpc", UNDER_LOAD, placement=where, load=SAME_LOAD))
        ours = [measure for measure in at_one_rate if measure.backend == OURS]
        sleeping = [m for m in at_one_rate if is_peer(m.backend) and m.backend not in SPINNING]
        for name, share in QUANTILES[1:]:
            yield Verdict(
                f"{name} of a call at {SAME_LOAD}, client and server {where},"
                " against the best peer that sleeps",
                "not worse",
                *_tail(ours, sleeping, share),
            )


def _tail(ours: list[Measure], sleeping: list[Measure], share: float) -> tuple[str, bool | None]:
    """What is said of a quantile of ours beside the least of theirs, and whether it is reached."""
    pairs = [(measure, _merged(measure)) for measure in (*ours, *sleeping)]
    calls = [(measure, merged.quantile(share)) for measure, merged in pairs if merged is not None]
    here = [pair for pair in calls if pair[0].backend == OURS]
    there = [pair for pair in calls if pair[0].backend != OURS]
    if not here or not there:
        return "-", None
    (one, ours_ns), (other, least_ns) = here[0], min(there, key=lambda pair: pair[1])
    text = (
        f"{quantity(ours_ns / NS_PER_S, 's')}, {other.backend}"
        f" {quantity(least_ns / NS_PER_S, 's')}: {digits(ours_ns / least_ns)} x"
    )
    if not (one.histograms and other.histograms):
        return f"{text}; no interval: this record has the calls of all repeats together", None
    if not can_tell(len(one.histograms), len(other.histograms)):
        return f"{text}; too few repeats for an interval", None
    low, high = quantile_ratio(
        [Histogram.decoded(each) for each in one.histograms],
        [Histogram.decoded(each) for each in other.histograms],
        share,
    )
    # A greater one whose interval holds 1 may be as good, and may not.
    reached = True if ours_ns <= least_ns else False if low > 1 else None
    return f"{text} ({digits(low)} to {digits(high)} by the bootstrap)", reached


def _merged(measure: Measure) -> Histogram | None:
    return None if measure.histogram is None else Histogram.decoded(measure.histogram)


def payloads(run: Run, where: Where) -> set[Any]:
    """What was to be exchanged there: by whomever, and whether or not there was time."""
    measured = (measure.parameters for measure in run.find("rpc", "round trip", placement=where))
    lacking = (
        remark.parameters
        for remark in run.remarks
        if remark.experiment == "rpc" and remark.parameters.get("placement") == where
    )
    cells = [*measured, *(parameters for parameters in lacking if "load" not in parameters)]
    return {parameters["bytes"] for parameters in cells}
