"""What RPC was to show: a call of two tuples that costs less than a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.harness.placement import PLACEMENTS
from tupelo_bench.report.beside import beside_us, is_faster_than
from tupelo_bench.report.targets.verdict import Verdict, verdict
from tupelo_bench.report.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.placement import Where
    from tupelo_bench.harness.record import Run


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
