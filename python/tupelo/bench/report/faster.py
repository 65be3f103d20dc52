"""Where a peer is better than we are, in all that was measured: faster, or with less memory."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tupelo.bench.experiments.cases.skeleton import (
    LOCAL_HIT,
    OPERATIONS,
    REMOTE_HIT,
    SEARCH,
    TOTAL,
)
from tupelo.bench.experiments.mem.memory import METRIC as MEMORY
from tupelo.bench.experiments.settle.metrics import THROUGHPUT
from tupelo.bench.harness.parameters import told
from tupelo.bench.report.beside import beside_us
from tupelo.bench.report.tables import Table, is_same_work, sign
from tupelo.bench.report.units import digits

if TYPE_CHECKING:
    from tupelo.bench.harness.record import Run

# Of all but a throughput less is better.
COMPARED = (
    ("mem", "put"), ("mem", "take"), ("settle", "response time"), ("cases", TOTAL),
    *(("cases", each) for each in (*OPERATIONS, SEARCH, LOCAL_HIT, REMOTE_HIT)),
    ("rpc", "round trip"), ("rpc", "latency under load p99"), ("rpc", "one to many"),
    ("rpc", "undirected"), ("sort", "response time"), ("settle", THROUGHPUT), ("mem", MEMORY),
)  # fmt: skip


def faster_peers(run: Run) -> tuple[str, Table]:
    """Every cell in which the mean of a peer is better than ours, and how many are sure.

    Those that are first; with a tilde those that do not differ significantly, with a question mark
    those with too few repeats to tell. No times of different work; a throughput is of any work.
    """
    rows: dict[str, list[tuple[str, ...]]] = {"": [], "~": [], "?": []}
    compared = 0
    for experiment, metric in COMPARED:
        for ours, theirs in beside_us(run, experiment, metric):
            if metric != THROUGHPUT and not is_same_work(theirs):
                continue
            compared += 1
            less, more = ours.summary.mean, theirs.summary.mean
            if metric != THROUGHPUT:
                less, more = more, less
            if less < more:
                doubt = sign(ours, theirs)
                ratio = digits(more / less) if less else "∞"
                where = f"{experiment} {told(theirs.parameters)}"
                rows[doubt].append((where, metric, theirs.backend, f"{doubt}{ratio} x"))
    counts = {doubt: len(found) for doubt, found in rows.items()}
    text = (
        f"In {sum(counts.values())} of {compared} comparisons the mean of a peer is better"
        f" than ours: in {counts['']} significantly, in {counts['~']} not (a tilde), in"
        f" {counts['?']} there are too few repeats to tell (a question mark)."
    )
    heads = ("", "metric", "peer", "better than ours by")
    return text, Table("Where a peer is faster", heads, tuple(chain.from_iterable(rows.values())))
