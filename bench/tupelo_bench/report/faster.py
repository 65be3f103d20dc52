"""Where a peer is better than we are, in all that was measured: faster, or with less memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from tupelo_bench.experiments import native, sort
from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.cases.skeleton import (
    LOCAL_HIT,
    OPERATIONS,
    REMOTE_HIT,
    SEARCH,
    TOTAL,
)
from tupelo_bench.experiments.mem.memory import METRIC as MEMORY
from tupelo_bench.experiments.rpc.calls import ROUND_TRIP
from tupelo_bench.experiments.rpc.load import UNDER_LOAD
from tupelo_bench.experiments.rpc.many import ONE_TO_MANY, UNDIRECTED
from tupelo_bench.experiments.settle.aging import is_control
from tupelo_bench.experiments.settle.metrics import (
    RESPONSE,
    THROUGHPUT,
    TOGETHER,
    TOGETHER_AGED,
)
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.quantiles import QUANTILES
from tupelo_bench.harness.statistics import (
    SIGNIFICANCE,
    can_tell,
    differ,
    holm,
    is_mostly_below,
    mann_whitney_p,
    share_below,
)
from tupelo_bench.presentation.tables import EXACT, Table, is_same_work, sign
from tupelo_bench.presentation.units import digits
from tupelo_bench.report.beside import beside_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo_bench.harness.record import Measure, Run

ROWS_LEAST = 5  # of what is won
# Of all but a throughput less is better.
COMPARED = (
    ("mem", "put"), ("mem", "take"), ("settle", RESPONSE), ("cases", TOTAL),
    *(("cases", each) for each in (*OPERATIONS, SEARCH, LOCAL_HIT, REMOTE_HIT)),
    ("rpc", ROUND_TRIP), *(("rpc", f"{UNDER_LOAD} {name}") for name, _ in QUANTILES),
    ("rpc", ONE_TO_MANY), ("rpc", UNDIRECTED), ("sort", sort.RESPONSE),
    ("settle", THROUGHPUT), ("mem", MEMORY),
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Our cell and that of a peer."""

    experiment: str
    metric: str
    ours: Measure
    theirs: Measure

    @property
    def less_and_more(self) -> tuple[Measure, Measure]:
        """As they stand if the peer is better: what is less is better, but for a throughput."""
        both = (self.theirs, self.ours)
        return (both[1], both[0]) if self.metric == THROUGHPUT else both

    @property
    def by_ranks_alone(self) -> bool:
        """Whether the peer is better by the test, and not by the mean."""
        return _is_better_by_ranks_alone(*self.less_and_more)

    @property
    def theirs_is_better(self) -> bool:
        """Whether it is, by the mean or by the test."""
        less, more = self.less_and_more
        return self.by_ranks_alone or less.summary.mean < more.summary.mean

    @property
    def doubt(self) -> str:
        """A tilde if the two do not differ significantly, a question mark if nobody can tell."""
        return "" if self.by_ranks_alone else sign(self.ours, self.theirs)

    @property
    def ratio(self) -> float:
        """How many times better the peer is; below 1 where we are."""
        less, more = self.less_and_more
        return more.summary.mean / less.summary.mean if less.summary.mean else math.inf

    @property
    def p(self) -> float | None:
        """Of the test; None where the measure is exact, or there are too few repeats to tell."""
        counts = (len(self.ours.independent), len(self.theirs.independent))
        if self.metric in EXACT or not can_tell(*counts):
            return None
        return mann_whitney_p(self.ours.independent, self.theirs.independent)

    @property
    def effect(self) -> float:
        """How often a repeat of the peer is better than one of ours: 1 if each is (A of Vargha)."""
        less, more = self.less_and_more
        return share_below(less.independent, more.independent)


def comparisons(run: Run) -> Iterator[Comparison]:
    """Every cell that we and a peer have of what is compared.

    No times of different work; but latency under every load, as half of each system's own rate, and
    a throughput, which is of any work. Nothing counts twice: a throughput and a response time that
    are of the same windows are one comparison. A control does what another cell has done.
    """
    for experiment, metric in COMPARED:
        for ours, theirs in beside_us(run, experiment, metric):
            of_any_work = metric == THROUGHPUT or metric.startswith(UNDER_LOAD)
            is_first = not _is_said_by_throughput(ours) and not is_control(ours)
            if (of_any_work or is_same_work(theirs)) and is_first:
                yield Comparison(experiment, metric, ours, theirs)
    yield from _beside_native(run)


def _is_said_by_throughput(measure: Measure) -> bool:
    """Whether it is a response time in windows, whose throughput is compared, too."""
    in_windows = measure.parameters.get("series") in (TOGETHER, TOGETHER_AGED)
    return measure.metric == RESPONSE and in_windows


def _beside_native(run: Run) -> Iterator[Comparison]:
    """Round trips of programs in another language, which time themselves, beside our Python's."""
    for theirs in run.find("rpc", native.ROUND_TRIP):
        ours = run.find_one("rpc", ROUND_TRIP, OURS, **theirs.parameters)
        if ours is not None:
            yield Comparison("rpc", ROUND_TRIP, ours, theirs)


def corrected(found: Sequence[Comparison]) -> dict[int, float]:
    """The p of each comparison by Holm's correction; those of an experiment are a family."""
    families: dict[str, list[Comparison]] = {}
    for each in found:
        if each.p is not None:
            families.setdefault(each.experiment, []).append(each)
    return {
        id(each): p
        for family in families.values()
        for each, p in zip(family, holm([each.p or 0.0 for each in family]), strict=True)
    }


def faster_peers(run: Run) -> tuple[str, Table]:
    """Every cell in which a peer is better than we are by its mean or its ranks; how many are sure.

    Those that are first; with a tilde those that do not differ significantly, with a question mark
    those with too few repeats to tell.
    """
    every = list(comparisons(run))
    by_holm = corrected(every)
    rows: dict[str, list[tuple[str, ...]]] = {"": [], "~": [], "?": []}
    better = [each for each in every if each.theirs_is_better]
    for each in better:
        ratio = digits(each.ratio) if math.isfinite(each.ratio) else "∞"
        p = by_holm.get(id(each))
        rows[each.doubt].append(
            (
                f"{each.experiment} {told(each.theirs.parameters)}",
                each.metric,
                each.theirs.backend,
                f"{each.doubt}{ratio} x",
                "-" if p is None else f"{p:.2g}",
                f"{each.effect:.2f}",
            )
        )
    counts = {doubt: len(found) for doubt, found in rows.items()}
    sure = [each for each in better if each.doubt == "" and id(each) in by_holm]
    text = (
        f"In {len(better)} of {len(every)} comparisons the mean of a peer is better"
        f" than ours: in {counts['']} significantly, in {counts['~']} not (a tilde), in"
        f" {counts['?']} there are too few repeats to tell (a question mark)."
    )
    by_ranks = sum(each.by_ranks_alone for each in better)
    if by_ranks:
        text += f" In {by_ranks} it is so by the test, and the reverse by the mean (below 1 x)."
    if sure:
        kept = sum(by_holm[id(each)] < SIGNIFICANCE for each in sure)
        text += (
            f" Of the {len(sure)} that were tested, {kept} are significant also by Holm's"
            " correction over all comparisons of the experiment. The effect is how often a repeat"
            " of the peer is better than one of ours."
        )
    ours = [e for e in every if not e.theirs_is_better and e.doubt == "" and id(e) in by_holm]
    if ours:
        kept = sum(by_holm[id(each)] < SIGNIFICANCE for each in ours)
        text += f" Of the {len(ours)} in which Tupelo is better by the test, {kept} are so, too."
    heads = ("", "metric", "peer", "better than ours by", "p by Holm", "effect")
    return text, Table("Where a peer is faster", heads, tuple(chain.from_iterable(rows.values())))


def wins_and_losses(run: Run) -> tuple[Table, Table]:
    """Where Tupelo is significantly better, and where a peer is: all losses, and as many wins.

    A row is a metric beside a peer, those with the greatest ratio first.
    """
    sure = [each for each in comparisons(run) if each.doubt == ""]
    losses = _grouped([each for each in sure if each.theirs_is_better], losing=True)
    wins = _grouped([each for each in sure if not each.theirs_is_better], losing=False)
    shown = max(len(losses), ROWS_LEAST)
    heads = ("", "beside", "in cells", "at most by", "there")
    of_all = f": the first {shown} of {len(wins)} rows" if len(wins) > shown else ""
    return (
        Table(f"Where Tupelo wins{of_all}", heads, tuple(wins[:shown])),
        Table("Where Tupelo loses", heads, tuple(losses)),
    )


def _grouped(found: Sequence[Comparison], *, losing: bool) -> list[tuple[str, ...]]:
    groups: dict[tuple[str, str, str], list[tuple[float, Comparison]]] = {}
    for each in found:
        ratio = each.ratio if losing else 1 / each.ratio if each.ratio else math.inf
        group = (each.experiment, each.metric, each.theirs.backend)
        groups.setdefault(group, []).append((ratio, each))
    rows = []
    for (experiment, metric, backend), members in groups.items():
        ratio, most = max(members, key=lambda pair: pair[0])
        row = (f"{experiment}, {metric}", backend, str(len(members)), f"{digits(ratio)} x",
               told(most.theirs.parameters))  # fmt: skip
        rows.append((ratio, row))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def _is_better_by_ranks_alone(less: Measure, more: Measure) -> bool:
    """Whether the test says for sure what the means deny: that the first is mostly below."""
    if less.summary.mean < more.summary.mean:
        return False
    apart = differ(less.independent, more.independent)
    return bool(apart) and is_mostly_below(less.independent, more.independent)
