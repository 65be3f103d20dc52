"""`bench settle`: many clients that begin one after the other, and spaces that are not new.

Fiedler, Walcott, Richardson, Kapfhammer, Amer, Chrysanthis: Towards the Measurement of Tuple Space
Performance, 2005. A client writes objects, pauses, and takes as many. Two series. "paper" has the
delays of the paper, which are longer than a phase takes today, so that its clients do not meet. In
"all at once" all clients are active at the same time, in windows of a second (`windows`). The knee
is looked for in the second (`knee`).

Before a run a space may be aged: populated by a workload that was generated from frequencies, or
recorded (`tupelo record`). Afterwards it is cleaned. Both are timed. Each series is run so, too.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Schema
from tupelo_bench.experiments.base import Experiment
from tupelo_bench.experiments.settle import aging, knee, windows
from tupelo_bench.experiments.settle.clients import once
from tupelo_bench.experiments.settle.metrics import (
    ADDED,
    AGING,
    CLEANING,
    PAPER,
    PAPER_AGED,
    RESPONSE,
    SHARE,
    SPACE,
    THROUGHPUT,
    TOGETHER,
    TOGETHER_AGED,
)
from tupelo_bench.experiments.settle.plan import OBJECTS, Plan
from tupelo_bench.experiments.workload import KINDS
from tupelo_bench.presentation.figure import Figure, bars, lines, with_beside
from tupelo_bench.presentation.units import whole
from tupelo_bench.runner import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.backends.base import Peer
    from tupelo_bench.harness.record import Measure, Run
    from tupelo_bench.presentation.printed import Printed
    from tupelo_bench.runner import Options

CLIENTS = (2, 8, 14, 22)  # with the delays of the paper
CLIENTS_TOGETHER = (1, 2, 4, 8, 14, 22)
CLIENTS_BETWEEN = (4, 14)  # tell least about the knee
CLIENTS_SPAN = (1, 8, 22)  # make a line: the fewest, those at the knee of the paper, and the most
WINDOWS_WEIGHT = 5.0  # of a cell of windows, however many clients it has
CLIENTS_AGED = (8, 14)
KINDS_QUICK = ("Null", "Array")
AGED = (PAPER_AGED, TOGETHER_AGED)
AGED_RANK = 1  # of the aged cells of the paper's figure
TUPLE_BYTES = 4_500  # of the largest kind, whose one field is as large as any of a recorded one
NULL_BYTES = 50  # beside what a system needs for any tuple
NOTE_TOGETHER = "All clients are active at once, in windows of a second."
# A put of a `multiprocessing.Queue` returns when the tuple is in a list of the putting process. A
# thread sends it when the pipe has room, which is when somebody takes. Its users know, and write no
# thousands of tuples before any is taken. A window of writing would time that list.
WITHOUT_STORE = ("mp-queue",)
NOTE_WITHOUT_STORE = "multiprocessing.Queue is left out: its puts end in the putting process."
NOTE_RESPONSE = " The time is that of a thousand objects, written and taken."


class Settle(Experiment):
    """Clients one after the other."""

    name = "settle"
    title = "More and more clients, and aged spaces"
    source = (
        "Fiedler, Walcott, Richardson, Kapfhammer, Amer, Chrysanthis: Towards the Measurement of"
        " Tuple Space Performance, 2005"
    )
    question = "Where is the knee: from how many clients on does only the response time rise?"
    main = (THROUGHPUT, RESPONSE, ADDED)
    share = 0.25

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        shared = [peer for peer in super().peers(all_peers) if not peer.one_process]
        return [peer for peer in shared if peer.name not in WITHOUT_STORE]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        del peer
        quick = options.quick
        kinds = KINDS_QUICK if quick else KINDS
        plans = [
            (series, Plan(kind, clients, quick))
            for series, counts in ((PAPER, CLIENTS), (TOGETHER, CLIENTS_TOGETHER))
            for kind, clients in product(kinds, (2, 3) if quick else counts)
        ]
        # A quick run compares nothing: it has no control.
        workloads = [*([] if quick else [None]), *aging.workloads(options)]
        plans += [
            (series, Plan(kind, clients, quick, workload))
            for kind, workload, clients in product(
                kinds, workloads, (2,) if quick else CLIENTS_AGED
            )
            for series in AGED
        ]
        return [job(series, plan) for series, plan in plans]

    def derive(self, run: Run) -> list[Measure]:
        """The knee of each backend with what it rests on, and what aging adds."""
        knees = (knee.derived(run, backend) for backend in self._backends(run))
        return [*chain.from_iterable(knees), *aging.added_by_aging(run)]

    def figures(self, run: Run) -> list[Figure]:
        found = [
            _by_clients(run, series, kind, metric)
            for series, kind, metric in product((PAPER, TOGETHER), KINDS, (THROUGHPUT, RESPONSE))
        ]
        for kind, clients in product(KINDS, (2,) if run.quick else CLIENTS_AGED):
            # Of the other kinds what the paper prints: the response time, with its delays.
            all_of = (*aging.COMPARED, (SHARE, PAPER_AGED))
            found += [
                _aged(run, series, kind, clients, metric)
                for metric, series in (all_of if kind == "Null" else all_of[:1])
            ]
        return [*found, *_cost_of_aging(run)]

    def printed(self, run: Run) -> list[Printed]:
        backends = self._backends(run)
        return [knee.table(run, backends), aging.table(run, backends)]

    def _backends(self, run: Run) -> list[str]:
        return list(dict.fromkeys(measure.backend for measure in run.of(self.name)))


def _by_clients(run: Run, series: str, kind: str, metric: str) -> Figure:
    """What more and more clients find in a new space."""
    note = NOTE_TOGETHER if series == TOGETHER else "The delays of the paper, and its objects."
    if (series, metric) == (TOGETHER, RESPONSE):
        note += NOTE_RESPONSE
    if not any(measure.backend in WITHOUT_STORE for measure in run.of(Settle.name)):
        note = f"{NOTE_WITHOUT_STORE} {note}"  # an older record has it
    name = "all at once" if series == TOGETHER else "paper delays"
    return lines(
        run, Settle.name, metric, "clients", fixed={"series": series, "entry": kind},
        title=f"{kind}, {name}: {metric}", note=note,
    )  # fmt: skip


def _aged(run: Run, series: str, kind: str, clients: int, metric: str) -> Figure:
    """What so many clients find in aged spaces of a series."""
    delays = ", paper delays" if series == PAPER_AGED else ", all at once"
    fixed = {"series": series, "entry": kind, "clients": clients}
    title = f"{kind}, {clients} clients, aged{delays}: {metric}"
    note = "" if metric == SHARE else aging.NOTE_FRESH
    fresh = aging.not_aged(run, metric, fixed)
    return lines(run, Settle.name, metric, "aged by", fixed=fixed, title=title,
                 log_y=metric != SHARE, note=note, also=fresh)  # fmt: skip


def _cost_of_aging(run: Run) -> list[Figure]:
    """How long it takes to age a space and to clean it, and which part of a run that is."""
    workload = aging.QUICK_WORKLOAD if run.quick else aging.PRINTED_WORKLOAD
    clients = 2 if run.quick else CLIENTS_AGED[0]
    fixed = {"series": PAPER_AGED, "entry": "Null", "clients": clients}
    of = f"{clients} clients, {whole(workload)} operations"
    times, clean, share = (
        bars(run, Settle.name, metric, "aged by", (workload,), fixed=fixed, title=title,
             log_y=metric != SHARE)
        for metric, title in (
            (AGING, f"Null, {of}: to age a space and to clean it"),
            (CLEANING, ""),
            (SHARE, f"Null, {of}: aging and cleaning as a share of a run with the paper's delays"),
        )
    )  # fmt: skip
    return [with_beside(times, clean, "to clean it"), share]


def job(series: str, plan: Plan) -> Job:
    """A cell."""
    parameters: dict[str, Any] = {"series": series, "entry": plan.kind, "clients": plan.clients}
    if series in AGED:
        parameters["aged by"] = len(plan.workload or ())
    together = series in (TOGETHER, TOGETHER_AGED)
    objects = windows.stock_max(plan) if together else OBJECTS * plan.clients
    tuple_bytes = NULL_BYTES if together and plan.kind == "Null" else TUPLE_BYTES
    rank = _rank(series, plan)
    return Job(
        parameters,
        partial(windows.once if together else once, plan=plan),
        family=f"{series} {plan.kind}",
        schema=Schema(tuple(e.shape for e in plan.entries), outlive=plan.workload is not None),
        spaces=(SPACE,),
        size_bytes=objects * tuple_bytes
        + (plan.workload.fields * TUPLE_BYTES if plan.workload else 0),
        weight=WINDOWS_WEIGHT if together else 1 + plan.clients * 0.3,
        rank=rank,
        in_turns=_turns(series, plan),
    )


def _turns(series: str, plan: Plan) -> str:
    """With which others it is repeated in turns: those that it is compared with."""
    if series in AGED:
        return f"{series}, {plan.kind}, {plan.clients}"
    return series if series == TOGETHER and plan.kind == "Null" else ""


def _rank(series: str, plan: Plan) -> int:
    """The knee first, then what aging costs, then what makes each line of the paper a line."""
    if series in AGED:
        return _rank_aged(series, plan)
    if plan.kind != "Null":
        return 2 if series == TOGETHER and plan.clients in CLIENTS_SPAN else 3
    if series == TOGETHER:
        return 1 if plan.clients in CLIENTS_BETWEEN else 0
    return AGED_RANK if plan.clients == CLIENTS_AGED[0] else 2


def _rank_aged(series: str, plan: Plan) -> int:
    """The paper's figure, then the same of clients that are all active, then of other kinds."""
    if plan.kind != "Null":
        return 4
    if plan.clients != CLIENTS_AGED[0]:
        return 3
    return AGED_RANK if series == PAPER_AGED else 2
