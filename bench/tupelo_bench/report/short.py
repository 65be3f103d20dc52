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
from tupelo_bench.experiments.warming import STEADY
from tupelo_bench.harness.sittings import YARDSTICKS, cell_of
from tupelo_bench.presentation.tables import Table, is_same_work
from tupelo_bench.presentation.units import digits, quantity, whole
from tupelo_bench.report.beside import beside_us, is_peer
from tupelo_bench.report.faster import Comparison, comparisons

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tupelo_bench.harness.record import Measure, Run

HOW = (
    "Behind a figure stands how many times better Tupelo's is: below 1, the other is better. A"
    " tilde says that the repeats do not tell the two apart, a question mark that there are too few"
    " of them, and a dash that it was not measured. The last column has the least and the greatest"
    " ratio to the best of the others, over all cells of that program or operation."
)
WHO = (
    "All programs are in Python, but for omniORB's. Tupelo is linked into them, and its tuples are"
    " in memory that the processes share; most of the others are behind a socket. What one process"
    " has for itself alone, as a list behind a lock, does not count among the others in the table"
    " below."
)
VERDICTS = ("confirmed", "in part", "refuted", "not shown", "too little to tell", "not tested")
REFERENCE = "javaspaces"
"""The system of the literature that runs here."""
# They share the memory of the program that measures: no other process could use them.
PRIVATE = frozenset(peer.name for peer in PEERS if peer.one_process)
TITLES = {peer.name: peer.title for peer in PEERS}


@dataclass(frozen=True)
class Headline:
    """A figure that stands for an experiment."""

    what: str
    experiment: str
    metric: str
    parameters: dict[str, Any]
    family: tuple[str, ...] = ()
    """The parameters that all cells of this program or operation have in common with it."""


def _program(what: str, case: str, size: int, **others: Any) -> Headline:
    parameters = {"case": case, "size": size, "workers": 5, **others}
    return Headline(f"{what}, 5 workers", "cases", TOTAL, parameters, ("case",))


HEADLINES = (
    Headline("a put of an integer", "mem", "put", {"entry": "Integer", "fill": 0}),
    Headline("a take of an integer", "mem", "take", {"entry": "Integer", "fill": 0}),
    Headline(
        "a call of 256 bytes and its answer", "rpc", ROUND_TRIP,
        {"bytes": 256, "placement": "apart"},
    ),
    Headline(
        "operations of 8 clients that are all active at once", "settle", THROUGHPUT,
        {"series": TOGETHER, "entry": "Null", "clients": 8}, ("series",),
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
    measured = {cell_of(m) for m in run.measures if not m.derived and m.experiment != YARDSTICKS}
    left_out = sum(remark.why == "over budget" for remark in run.left_out)
    lost_text = f" There was no time for {whole(left_out)} more; they are named at the end."
    found.append(f"{whole(len(measured))} cells were measured.{lost_text if left_out else ''}")
    found += [*_more_clients(run), *_not_warm(run), WHO, HOW]
    rows = [row for row in (_row(run, headline) for headline in HEADLINES) if row is not None]
    heads = ("", "Tupelo", "the best of the others", TITLES[REFERENCE], "in all cells of it")
    return found, Table("In short", heads, tuple(rows))


def _more_clients(run: Run) -> Iterator[str]:
    """What the throughput of one client becomes with the most."""
    rates = {
        measure.parameters["clients"]: measure
        for measure in run.find("settle", THROUGHPUT, series=TOGETHER, entry="Null")
        if measure.backend == OURS
    }
    if 1 in rates and len(rates) > 1:
        one, most = (rates[clients].summary.mean for clients in (1, max(rates)))
        yield (
            f"One client of Tupelo does {quantity(one, '')} operations a second, and {max(rates)}"
            f" that are active at once do {quantity(most, '')} together."
        )


def _not_warm(run: Run) -> Iterator[str]:
    """How much of what the reference did was done by programs that still compiled."""
    shares = [
        share
        for measure in run.measures
        if measure.metric == STEADY and measure.backend == REFERENCE
        for share in measure.samples
    ]
    if shares:
        cold = 100 * (1 - sum(shares) / len(shares))
        yield (
            f"The virtual machines of {TITLES[REFERENCE]} warm up before their times count, but"
            f" {cold:.0f} % of them had not become steady by then."
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
        f"{TITLES.get(best.backend, best.backend)}: {_beside(best, ours, headline)}"
        if best
        else "-",
        _beside(reference, ours, headline) if reference else "-",
        _everywhere(run, headline),
    )


def _everywhere(run: Run, headline: Headline) -> str:
    """The least and the greatest ratio to the best of the others, of all cells of the family."""
    fixed = {name: headline.parameters[name] for name in headline.family}
    best: dict[int, float] = {}
    for ours, theirs in beside_us(run, headline.experiment, headline.metric, **fixed):
        if theirs.backend not in PRIVATE and is_same_work(theirs):
            ratio = Comparison(headline.experiment, headline.metric, ours, theirs).ratio
            best[id(ours)] = max(ratio, best.get(id(ours), 0.0))
    if not best:
        return "-"
    ratios = [1 / ratio for ratio in best.values()]
    return f"{digits(min(ratios))} to {digits(max(ratios))} x, {len(ratios)} cells"


def _best(found: Sequence[Measure], headline: Headline) -> Measure | None:
    """Less is better, but for a throughput."""
    sign = -1 if headline.metric == THROUGHPUT else 1
    return min(found, key=lambda measure: sign * measure.summary.mean, default=None)


def _beside(theirs: Measure, ours: Measure, headline: Headline) -> str:
    found = Comparison(headline.experiment, headline.metric, ours, theirs)
    ratio = f", {found.doubt}{digits(1 / found.ratio)} x" if found.ratio else ""
    return f"{quantity(theirs.summary.mean, theirs.unit)}{ratio}"
