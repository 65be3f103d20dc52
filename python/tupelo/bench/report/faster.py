"""Where a peer is faster than we are, in everything that was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo.bench.harness.parameters import told
from tupelo.bench.report.beside import beside_us, is_faster_than
from tupelo.bench.report.tables import Table, is_same_work
from tupelo.bench.report.units import digits

if TYPE_CHECKING:
    from tupelo.bench.harness.record import Run


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
        for ours, theirs in beside_us(run, experiment, metric):
            is_faster = is_faster_than(theirs, ours)
            if is_same_work(theirs) and is_faster is not False:
                ratio = digits(ours.summary.mean / theirs.summary.mean)
                where = f"{experiment} {told(theirs.parameters)}"
                doubt = "" if is_faster else "?"
                rows.append((where, metric, theirs.backend, f"{doubt}{ratio} x"))
    heads = ("", "metric", "peer", "as fast as we are")
    return Table("Where a peer is faster", heads, tuple(rows))
