"""Where a peer is better than we are, in all that was measured: faster, or with less memory."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from tupelo_bench.experiments.cases.skeleton import (
    LOCAL_HIT,
    OPERATIONS,
    REMOTE_HIT,
    SEARCH,
    TOTAL,
)
from tupelo_bench.experiments.mem.memory import METRIC as MEMORY
from tupelo_bench.experiments.round_trips import QUANTILES
from tupelo_bench.experiments.rpc.load import UNDER_LOAD
from tupelo_bench.experiments.settle.metrics import THROUGHPUT
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.statistics import differ, is_mostly_below
from tupelo_bench.report.beside import beside_us
from tupelo_bench.report.tables import Table, is_same_work, sign
from tupelo_bench.report.units import digits

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Measure, Run

# Of all but a throughput less is better.
COMPARED = (
    ("mem", "put"), ("mem", "take"), ("settle", "response time"), ("cases", TOTAL),
    *(("cases", each) for each in (*OPERATIONS, SEARCH, LOCAL_HIT, REMOTE_HIT)),
    ("rpc", "round trip"), *(("rpc", f"{UNDER_LOAD} {name}") for name, _ in QUANTILES),
    ("rpc", "one to many"), ("rpc", "undirected"), ("sort", "response time"),
    ("settle", THROUGHPUT), ("mem", MEMORY),
)  # fmt: skip


def faster_peers(run: Run) -> tuple[str, Table]:
    """Every cell in which a peer is better than we are by its mean or its ranks; how many are sure.

    Those that are first; with a tilde those that do not differ significantly, with a question mark
    those with too few repeats to tell. No times of different work; but latency under every load, as
    half of each system's own rate, and a throughput, which is of any work.
    """
    rows: dict[str, list[tuple[str, ...]]] = {"": [], "~": [], "?": []}
    by_ranks = 0
    compared = 0
    for experiment, metric in COMPARED:
        for ours, theirs in beside_us(run, experiment, metric):
            of_any_work = metric == THROUGHPUT or metric.startswith(UNDER_LOAD)
            if not (of_any_work or is_same_work(theirs)):
                continue
            compared += 1
            less, more = (ours, theirs) if metric == THROUGHPUT else (theirs, ours)
            reverse = _is_better_by_ranks_alone(less, more)
            if not reverse and less.summary.mean >= more.summary.mean:
                continue
            by_ranks += reverse
            doubt = "" if reverse else sign(ours, theirs)
            mean = less.summary.mean
            ratio = digits(more.summary.mean / mean) if mean else "∞"
            where = f"{experiment} {told(theirs.parameters)}"
            rows[doubt].append((where, metric, theirs.backend, f"{doubt}{ratio} x"))
    counts = {doubt: len(found) for doubt, found in rows.items()}
    text = (
        f"In {sum(counts.values())} of {compared} comparisons the mean of a peer is better"
        f" than ours: in {counts['']} significantly, in {counts['~']} not (a tilde), in"
        f" {counts['?']} there are too few repeats to tell (a question mark)."
    )
    if by_ranks:
        text += f" In {by_ranks} it is so by the test, and the reverse by the mean (below 1 x)."
    heads = ("", "metric", "peer", "better than ours by")
    return text, Table("Where a peer is faster", heads, tuple(chain.from_iterable(rows.values())))


def _is_better_by_ranks_alone(less: Measure, more: Measure) -> bool:
    """Whether the test says for sure what the means deny: that the first is mostly below."""
    if less.summary.mean < more.summary.mean:
        return False
    apart = differ(less.independent, more.independent)
    return bool(apart) and is_mostly_below(less.independent, more.independent)
