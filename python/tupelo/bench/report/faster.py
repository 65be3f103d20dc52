"""Where a peer is faster than we are, in everything that was measured."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tupelo.bench.harness.parameters import told
from tupelo.bench.report.beside import beside_us
from tupelo.bench.report.tables import Table, is_same_work, sign
from tupelo.bench.report.units import digits

if TYPE_CHECKING:
    from tupelo.bench.harness.record import Run

TIMES = (
    ("mem", "put"), ("mem", "take"), ("settle", "response time"), ("cases", "total"),
    ("rpc", "round trip"), ("rpc", "latency under load p99"), ("rpc", "one to many"),
    ("rpc", "undirected"), ("sort", "response time"),
)  # fmt: skip


def faster_peers(run: Run) -> tuple[str, Table]:
    """Every cell of a time in which the mean of a peer is less than ours, and how many are sure.

    Those that are first; with a tilde those that do not differ significantly, with a question mark
    those with too few repeats to tell. Not where their work differs.
    """
    rows: dict[str, list[tuple[str, ...]]] = {"": [], "~": [], "?": []}
    compared = 0
    for experiment, metric in TIMES:
        for ours, theirs in beside_us(run, experiment, metric):
            if not is_same_work(theirs):
                continue
            compared += 1
            if theirs.summary.mean < ours.summary.mean:
                doubt = sign(ours, theirs)
                ratio = digits(ours.summary.mean / theirs.summary.mean)
                where = f"{experiment} {told(theirs.parameters)}"
                rows[doubt].append((where, metric, theirs.backend, f"{doubt}{ratio} x"))
    counts = {doubt: len(found) for doubt, found in rows.items()}
    text = (
        f"In {sum(counts.values())} of {compared} comparisons of times the mean of a peer is less"
        f" than ours: in {counts['']} significantly, in {counts['~']} not (a tilde), in"
        f" {counts['?']} there are too few repeats to tell (a question mark)."
    )
    heads = ("", "metric", "peer", "as fast as we are")
    return text, Table("Where a peer is faster", heads, tuple(chain.from_iterable(rows.values())))
