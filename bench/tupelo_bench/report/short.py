"""The results in short: what a newcomer reads first, on one screen.

How many claims hold, and a figure or two of each experiment beside the best of the other systems.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.registry import PEERS
from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.cases.skeleton import TOTAL
from tupelo_bench.experiments.rpc.calls import ROUND_TRIP
from tupelo_bench.experiments.settle.metrics import THROUGHPUT, TOGETHER
from tupelo_bench.experiments.sort import RESPONSE
from tupelo_bench.report.beside import is_peer
from tupelo_bench.report.faster import Comparison, comparisons
from tupelo_bench.report.tables import Table
from tupelo_bench.report.units import digits, quantity, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tupelo_bench.harness.record import Measure, Run

HOW = (
    "Behind a figure stands how many times better Tupelo's is: below 1, the other is better. A"
    " tilde says that the repeats do not tell the two apart, a question mark that there are too few"
    " of them, and a dash that it was not measured."
)
VERDICTS = ("confirmed", "in part", "refuted", "not shown", "too little to tell", "not tested")
REFERENCE = "javaspaces"
"""The system of the literature that runs here."""
# They share the memory of the program that measures: no other process could use them.
PRIVATE = frozenset(peer.name for peer in PEERS if peer.one_process)


@dataclass(frozen=True)
class Headline:
    """A figure that stands for an experiment."""

    what: str
    experiment: str
    metric: str
    parameters: dict[str, Any]


def _program(what: str, case: str, size: int, **others: Any) -> Headline:
    return Headline(f"{what}, 5 workers", "cases", TOTAL, {"case": case, "size": size, "workers": 5,
                                                          **others})  # fmt: skip


HEADLINES = (
    Headline("a put of an integer", "mem", "put", {"entry": "Integer", "fill": 0}),
    Headline("a take of an integer", "mem", "take", {"entry": "Integer", "fill": 0}),
    Headline(
        "a call of 256 bytes and its answer", "rpc", ROUND_TRIP,
        {"bytes": 256, "placement": "apart"},
    ),
    Headline(
        "operations of 8 clients that are all active at once", "settle", THROUGHPUT,
        {"series": TOGETHER, "entry": "Null", "clients": 8},
    ),
    _program("password search, 100 000 pairs", "password", 100_000, key="second"),
    _program("sorting 1 000 000 numbers", "sorting", 1_000_000),
    _program("ocean model, 600 x 600", "ocean", 600, search="round robin"),
    _program(
        "matrix of order 100 by rows", "matrix rows", 100, rows="uniform", search="round robin",
    ),
    _program("matrix of order 100 by blocks of 10 x 10", "matrix blocks", 100, block=10),
    Headline(
        "insertion sort of 65 536 numbers, 4 workers", "sort", RESPONSE,
        {"size": 65_536, "workers": 4},
    ),
)  # fmt: skip


def in_short(run: Run, verdicts: Iterable[str]) -> tuple[list[str], Table]:
    """What stands first: sentences, and a table of headlines; the verdicts are those of claims."""
    counts = Counter(verdicts)
    found = []
    if counts:
        words = ", ".join(f"{counts[word]} {word}" for word in VERDICTS if counts[word])
        found.append(f"Of the {counts.total()} rows of claims of the literature below: {words}.")
    every = list(comparisons(run))
    sure = [each for each in every if each.doubt == ""]
    lost = sum(each.theirs_is_better for each in sure)
    if every:
        found.append(
            f"Of {whole(len(every))} comparisons with another system, Tupelo is significantly"
            f" better in {whole(len(sure) - lost)}, and the other in {whole(lost)}. In the"
            f" remaining {whole(len(every) - len(sure))} the repeats can not tell them apart."
        )
    if left_out := sum(remark.why == "over budget" for remark in run.left_out):
        found.append(f"There was no time for {whole(left_out)} cells; they are named at the end.")
    found.append(HOW)
    rows = [row for row in (_row(run, headline) for headline in HEADLINES) if row is not None]
    return found, Table(
        "In short", ("", "Tupelo", "the best of the others", REFERENCE), tuple(rows)
    )


def _row(run: Run, headline: Headline) -> tuple[str, ...] | None:
    """Tupelo's figure, and those of the others with how many times better ours is."""
    of_all = list(run.find(headline.experiment, headline.metric, **headline.parameters))
    ours = _best([m for m in of_all if m.backend == OURS], headline)
    if ours is None:
        return None
    others = [m for m in of_all if is_peer(m.backend) and m.backend not in PRIVATE]
    best = _best(others, headline)
    reference = _best([m for m in others if m.backend == REFERENCE], headline)
    return (
        headline.what,
        quantity(ours.summary.mean, ours.unit),
        f"{best.backend}: {_beside(best, ours, headline)}" if best else "-",
        _beside(reference, ours, headline) if reference else "-",
    )


def _best(found: Sequence[Measure], headline: Headline) -> Measure | None:
    """Less is better, but for a throughput."""
    sign = -1 if headline.metric == THROUGHPUT else 1
    return min(found, key=lambda measure: sign * measure.summary.mean, default=None)


def _beside(theirs: Measure, ours: Measure, headline: Headline) -> str:
    found = Comparison(headline.experiment, headline.metric, ours, theirs)
    ratio = f", {found.doubt}{digits(1 / found.ratio)} x" if found.ratio else ""
    return f"{quantity(theirs.summary.mean, theirs.unit)}{ratio}"
