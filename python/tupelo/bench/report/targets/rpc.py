"""What RPC was to show: a call of two tuples that costs less than a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo.bench.experiments.base import OURS
from tupelo.bench.harness.placement import PLACEMENTS
from tupelo.bench.report.beside import beside_us
from tupelo.bench.report.targets.verdict import Verdict
from tupelo.bench.report.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo.bench.harness.record import Run


def calls(run: Run) -> Iterator[Verdict]:
    """How a round trip stands beside that of a peer, at the payload that suits us least."""
    for where in PLACEMENTS:
        for peer, sizes in (("grpc", None), ("udp", (256,))):
            ratios = [
                (ours.summary.mean / theirs.summary.mean, ours.parameters["bytes"])
                for ours, theirs in beside_us(run, "rpc", "round trip", placement=where)
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


def _reached(reached: bool, *, is_whole: bool) -> bool | None:  # noqa: FBT001 - the verdict so far
    """The verdict on a target, of which a part was not measured if not `is_whole`."""
    return reached if is_whole or not reached else None
