"""The open questions of the literature, and the figures of a record that answer them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tupelo.bench.experiments.cases import visits
from tupelo.bench.experiments.settle import Settle
from tupelo.bench.experiments.settle.metrics import ADDED, AGING, KNEE
from tupelo.bench.harness.parameters import told
from tupelo.bench.harness.placement import PLACEMENTS
from tupelo.bench.report.beside import best, fill_max
from tupelo.bench.report.tables import Table, mean_of, sign
from tupelo.bench.report.units import digits, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tupelo.bench.experiments.base import Experiment
    from tupelo.bench.harness.record import Measure, Run

ROWS_CASE = {"case": "matrix rows", "rows": "uniform"}


Key = tuple[str, str]
"""An experiment, and one of its tables with printed numbers."""
KNEES: Key = (Settle.name, KNEE)
AGED: Key = (Settle.name, AGING)


class NoSuchTableError(Exception):
    """A question asks for a table that its experiment does not make: one of both was renamed."""


@dataclass(frozen=True)
class Question:
    """A question, how it is answered here, and the figures."""

    title: str
    how: str
    tables: tuple[Table, ...]
    printed: tuple[Key, ...] = ()
    """Which of the tables with printed numbers are among them."""


def questions(run: Run, experiments: Sequence[Experiment]) -> list[Question]:
    """Those for which something was measured."""
    found = [
        Question(
            "Does filling a space slow it down?",
            "[SETTLE] says yes, [MEM] says no. One client puts and takes Integers, while so many"
            " others lie there; behind each time, how many times that of the empty space it is."
            " Client and server on two processors.",
            tuple(_by_fill(run, metric) for metric in ("put", "take")),
        ),
        Question(
            "Where is the knee?",
            "Clients begin one after the other, half a phase apart, so that they overlap. The knee"
            " is the number of clients beyond which throughput rises by no more than 5 % and"
            " response time does.",
            (*_printed(run, experiments, KNEES), _by_clients(run)),
            (KNEES,),
        ),
        Question(
            "What does aging cost?",
            "Before the clients begin, the space is populated by so many operations. What that adds"
            " to the mean response time, against the same clients in a new space.",
            (*_printed(run, experiments, AGED), _by_workload(run)),
            (AGED,),
        ),
        Question(
            "What does a remote read cost on one host?",
            "The space of another process is remote, also on the same machine. Reads of the matrix"
            " by rows, which looks into all workers' spaces; and a call and its answer between two"
            " processes, on two processors and on one.",
            (_remote(run),),
        ),
        Question(
            "Does the field order of a template matter?",
            "In the literature it does where a system hashes the first field only. A take by a key"
            " in the first and in the last field, out of as many tuples as were tried; and the"
            " password search with its key as the first and as the second field.",
            (_field_order(run),),
        ),
        Question(
            "Which space should a search ask first?",
            "Who does not know where a tuple is looks into one space after the other: in turn, or"
            " first where most searches for such a tuple ended so far (success factor). Visited"
            f" spaces by search, of {visits.SEEDS} seeds; in the ocean model, of its repeats. p is"
            " how likely so large a difference is by chance (Mann-Whitney, two-sided). It does not"
            " know that both orders had the same seeds: with how many of them success factor"
            " visits more says more of small differences.",
            (_visits(run),),
        ),
        Question(
            "How much memory does a tuple take?",
            "What a system says it holds after a fill, less what it held before, by tuple: the"
            " operating system's figure for a server that can not tell. Entries of 0, 4, 32, 256,"
            " 2 048 and 16 384 bytes.",
            (_memory(run),),
        ),
    ]
    kept = []
    for question in found:
        tables = tuple(table for table in question.tables if table.rows)
        if tables:
            kept.append(replace(question, tables=tables))
    return kept


def _printed(run: Run, experiments: Sequence[Experiment], key: Key) -> list[Table]:
    """That table of an experiment; none if the experiment is not of this run.

    Raises:
        NoSuchTableError: the experiment has no such table.
    """
    name, wanted = key
    for experiment in experiments:
        if experiment.name == name:
            tables = {table.key: table for table in experiment.printed(run)}
            if wanted not in tables:
                message = f"{name} has no table {wanted!r} among {', '.join(tables) or 'none'}"
                raise NoSuchTableError(message)
            return [Table(tables[wanted].title, tables[wanted].heads, tables[wanted].rows)]
    return []


def backends(measures: Iterable[Measure]) -> list[str]:
    """Whose measures these are, in their order."""
    return list(dict.fromkeys(measure.backend for measure in measures))


def text(measure: Measure | None) -> str:
    """The mean, between the least and the greatest of the repeats, or a dash."""
    return mean_of(measure) if measure else "-"


def against(measure: Measure | None, yardstick: Measure | None) -> str:
    """The mean, and how many times the yardstick's it is."""
    if measure is None or yardstick is None or not yardstick.summary.mean:
        return text(measure)
    ratio = digits(measure.summary.mean / yardstick.summary.mean)
    return f"{text(measure)}, {sign(yardstick, measure)}{ratio} x"


def grid(
    title: str,
    measures: Iterable[Measure],
    column: Callable[[Measure], Any],
    head: Callable[[Any], str],
    cell: Callable[[dict[Any, Measure], Any], str] = lambda row, at: text(row.get(at)),
) -> Table:
    """A row per backend, and a column per value of what `column` says."""
    rows: dict[str, dict[Any, Measure]] = {}
    for measure in measures:
        rows.setdefault(measure.backend, {})[column(measure)] = measure
    columns = sorted({at for row in rows.values() for at in row})
    return Table(
        title,
        ("", *map(head, columns)),
        tuple((backend, *(cell(row, at) for at in columns)) for backend, row in rows.items()),
    )


def _by_fill(run: Run, metric: str) -> Table:
    def cell(row: dict[Any, Measure], fill: int) -> str:
        return against(row.get(fill), row.get(0)) if fill else text(row.get(0))

    return grid(
        f"{metric} of an Integer, by the tuples that are there",
        run.find("mem", metric, entry="Integer", placement="apart"),
        lambda measure: measure.parameters["fill"],
        whole,
        cell,
    )


def _by_clients(run: Run) -> Table:
    return grid(
        "throughput by clients",
        run.find("settle", "throughput", series="overlapping"),
        lambda measure: measure.parameters["clients"],
        lambda clients: f"{clients} clients",
    )


def _by_workload(run: Run) -> Table:
    def cell(row: dict[Any, Measure], at: Any) -> str:
        return f"{row[at].summary.mean:+.0%}" if at in row else "-"

    return grid(
        "added to the response time",
        run.find("settle", ADDED),
        lambda measure: (measure.parameters["clients"], measure.parameters["aged by"]),
        lambda at: f"{at[0]} clients, {whole(at[1])} operations",
        cell,
    )


def _memory(run: Run) -> Table:
    found = list(run.find("mem", "memory per tuple", placement="apart"))
    order = list(dict.fromkeys(measure.parameters["entry"] for measure in found))
    return grid(
        "memory per tuple",
        found,
        lambda m: (order.index(m.parameters["entry"]), m.parameters["fill"]),
        lambda at: f"{order[at[0]]}, {whole(at[1])}",
    )


def _remote(run: Run) -> Table:
    reads = list(run.find("cases", "remote reading", **ROWS_CASE))
    size = max((m.parameters["size"] for m in reads), default=0)
    workers = [m.parameters["workers"] for m in reads if m.parameters["size"] == size]
    wanted = {**ROWS_CASE, "size": size, "workers": 5 if 5 in workers else max(workers, default=0)}  # noqa: PLR2004
    calls = list(run.find("rpc", "round trip", bytes=256))
    rows = [
        (
            backend,
            text(run.find_one("cases", "local reading", backend, **wanted)),
            text(run.find_one("cases", "remote reading", backend, **wanted)),
            *(
                text(run.find_one("rpc", "round trip", backend, bytes=256, placement=where))
                for where in PLACEMENTS
            ),
        )
        for backend in backends([*reads, *calls])
    ]
    pings = [
        text(run.find_one("yardsticks", "ping-pong", "machine", placement=where))
        for where in PLACEMENTS
    ]
    if rows:
        rows.append(("a byte through a pipe and back", "-", "-", *pings))
    heads = ("", "local read", "remote read", "call of 256 bytes, apart", "together")
    cell = f"matrix {size} x {size}, {wanted['workers']} workers" if size else "calls only"
    return Table(f"reads ({cell})", heads, tuple(rows))


def _visits(run: Run) -> Table:
    rows = tuple(
        (
            told(each.parameters),
            each.in_turn.backend,
            text(each.in_turn),
            text(each.learned),
            str(len(each.learned.independent)),
            f"{each.p:.2g}",
            each.outcome,
            "-"
            if each.seeds_with_more is None
            else f"{each.seeds_with_more} of {len(each.learned.samples)}",
        )
        for each in visits.comparisons(run)
    )
    heads = ("", "", *visits.ORDERS, "repeats", "p", "by success factor", "more with seeds")
    return Table("visited spaces of a search", heads, rows)


def _field_order(run: Run) -> Table:
    rows = []
    fill = fill_max(run, "key last")
    for backend in backends(run.find("mem", "take", entry="key last")):
        first = best(run, "take", backend, entry="key first", fill=fill, placement="apart")
        last = best(run, "take", backend, entry="key last", fill=fill, placement="apart")
        rows.append((f"take out of {whole(fill)}", backend, text(first), against(last, first)))
    sizes = [m.parameters["size"] for m in run.find("cases", "total", case="password", key="first")]
    for backend in backends(run.find("cases", "total", case="password", key="first")):
        size = max(sizes)
        for measure in run.find("cases", "total", case="password", key="first", size=size):
            if measure.backend == backend:
                workers = measure.parameters["workers"]
                wanted = {"case": "password", "key": "second", "size": size, "workers": workers}
                second = run.find_one("cases", "total", backend, **wanted)
                what = f"password search, {whole(size)}, {workers} workers"
                rows.append((what, backend, text(measure), against(second, measure)))
    return Table("by field", ("", "", "key first", "key last or second"), tuple(rows))
