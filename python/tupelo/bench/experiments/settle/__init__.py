"""`bench settle`: many clients that begin one after the other, and spaces that are not new.

Fiedler, Walcott, Richardson, Kapfhammer, Amer, Chrysanthis: Towards the Measurement of Tuple Space
Performance, 2005. A client writes objects, pauses, and takes as many. Client j begins a delay after
client j - 1. Two series, since the paper's delays are longer than a phase takes today, so that its
clients do not meet: "paper" has its delays; in "overlapping" a phase of a client alone lasts a
second, or less where that can not be (`load`), and the delay is half of that. The knee is looked
for in the second (`knee`).

Before a run a space may be aged: populated by a workload that was generated from frequencies, or
recorded (`tupelo record`). Afterwards it is cleaned. Both are timed.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Schema, Shape
from tupelo.bench.experiments.base import Experiment
from tupelo.bench.experiments.settle.knee import knee_of, points_of
from tupelo.bench.experiments.settle.load import SPACE, Load, quick_load
from tupelo.bench.experiments.workload import (
    KIND_SHARES,
    KINDS,
    OPERATION_SHARES,
    Workload,
    fields_of,
    generated,
    seed_of,
    template_of,
)
from tupelo.bench.harness.record import Measure
from tupelo.bench.harness.runner import Job
from tupelo.bench.harness.workers import WrongResultError
from tupelo.bench.report.figure import Figure, lines
from tupelo.bench.report.printed import Printed
from tupelo.bench.report.units import digits, quantity, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tupelo.bench.backends.base import Fields, Peer
    from tupelo.bench.experiments.settle.knee import Knee, Points
    from tupelo.bench.harness.profiler import Profiler
    from tupelo.bench.harness.record import Run
    from tupelo.bench.harness.runner import Options, Stage
    from tupelo.bench.harness.workers import Bench

SHARE = "share of aging and cleaning"
ADDED = "response time added by aging"
ALONE = "phase of a client alone"
LASTED = "shortest phases of a client"
KNEE = "knee"
AGING = "aging"
KNEE_POINTS = "points of the knee"
KNEE_BEFORE = "knee without the last point"
DELAY_MIN_S, DELAY_SPREAD_S = 0.200, 0.050
OBJECTS = 1_000
CLIENTS = (2, 8, 14, 22)
CLIENTS_BETWEEN = 14  # tell least about the knee
CLIENTS_AGED = (8, 14)
WORKLOADS = (1_000, 3_000, 6_000, 12_000)
PRINTED_WORKLOAD = 3_000
QUICK_WORKLOAD = 100
LOOKED_AT = 10_000  # empty entries that are checked of those that a client took: the last ones
TUPLE_BYTES = 4_500  # of the largest kind
NULL_BYTES = 50  # beside what a system needs for any tuple
SHAPES = tuple(Shape(kind, 1 if kind == "Null" else 2) for kind in KINDS)


@dataclass(frozen=True)
class Plan:
    """One cell."""

    kind: str
    clients: int
    quick: bool
    load: Load | None = None
    """Of the overlapping series; None for the paper's delays."""
    workload: Workload | None = None

    @property
    def objects_max(self) -> int:
        """The most that a client puts."""
        return OBJECTS if self.load is None else self.load.objects_max

    def parts(self, stage: Stage) -> list[Part]:
        """What each client does, and when."""
        if self.load is not None:
            rounds = self.load.rounds(self.clients, len(stage.placement.client))
            delay_s = self.load.phase_s / 2
            # With more rounds all starts later, so that the clients overlap as much as with one.
            return [
                Part(
                    self.kind,
                    self.load.objects,
                    rounds,
                    number * rounds * delay_s,
                    delay_s,
                    self.load.warms_up,
                )
                for number in range(self.clients)
            ]
        choice = stage.random
        scale, objects = (0.1, OBJECTS // 10) if self.quick else (1.0, OBJECTS)
        delays_s = [
            scale * (DELAY_MIN_S + choice.uniform(0, DELAY_SPREAD_S)) for _ in range(self.clients)
        ]
        return [
            Part(self.kind, objects, 1, sum(delays_s[1 : number + 1]), delays_s[number])
            for number in range(self.clients)
        ]


@dataclass(frozen=True)
class Part:
    """What one client does, and when."""

    kind: str
    objects: int
    """In a round."""
    rounds: int
    start_s: float
    """After the start of all."""
    pause_s: float
    """Between the phases of a round. Rounds follow each other at once: so the share of the pauses
    is the same, however many there are."""
    warms_up: bool = False
    """Whether a round of all clients at once comes first, which does not count."""


class Settle(Experiment):
    """Clients one after the other."""

    name = "settle"
    title = "More and more clients, and aged spaces"
    source = (
        "Fiedler, Walcott, Richardson, Kapfhammer, Amer, Chrysanthis: Towards the Measurement of"
        " Tuple Space Performance, 2005"
    )
    question = "Where is the knee: from how many clients on does only the response time rise?"
    main = ("throughput", "response time", ADDED)
    share = 0.3

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        return [peer for peer in super().peers(all_peers) if peer.name != "tupelo-mem"]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        del peer
        quick = options.quick
        counts = (2, 3) if quick else CLIENTS
        make = quick_load if quick else Load
        load = make(counts, options.repeats_least)
        plans = [
            ("paper", Plan(kind, clients, quick))
            for kind in (("Null", "Array") if quick else KINDS)
            for clients in counts
        ]
        plans += [("overlapping", Plan("Null", clients, quick, load)) for clients in counts]
        frequencies = (options.operations or OPERATION_SHARES, options.kinds or KIND_SHARES)
        workloads = [
            generated(size, options.seed, *frequencies)
            for size in ((QUICK_WORKLOAD,) if quick else WORKLOADS)
        ]
        if options.workload:
            workloads = [options.workload]
        plans += [
            ("aged", Plan("Null", clients, quick, load, workload))
            for workload in workloads
            for clients in ((2,) if quick else CLIENTS_AGED)
        ]
        return [job(series, plan) for series, plan in plans]

    def derive(self, run: Run) -> list[Measure]:
        """The knee of each backend with what it rests on, and what aging adds."""
        found: list[Measure] = []
        for backend in dict.fromkeys(measure.backend for measure in run.of(self.name)):
            points = points_of(run, backend)
            if points:
                found += _knee_measures(backend, knee_of(points))
        return [*found, *_added_by_aging(run)]

    def figures(self, run: Run) -> list[Figure]:
        found = []
        for series, kinds in (("paper", KINDS), ("overlapping", ("Null",))):
            for kind in kinds:
                for metric in ("throughput", "response time"):
                    fixed = {"series": series, "entry": kind}
                    title = f"{kind}, {series} delays: {metric}"
                    found.append(lines(run, self.name, metric, "clients", fixed=fixed, title=title))
        for clients in (2,) if run.quick else CLIENTS_AGED:
            aged: dict[str, Any] = {"series": "aged", "clients": clients}
            for metric in ("throughput", "response time", SHARE):
                title = f"{clients} clients, aged: {metric}"
                log_y = metric != SHARE
                found.append(
                    lines(run, self.name, metric, "aged by", fixed=aged, title=title, log_y=log_y)
                )
        return found

    def printed(self, run: Run) -> list[Printed]:
        knees, aging = [], []
        for backend in dict.fromkeys(measure.backend for measure in run.of(self.name)):
            if points := points_of(run, backend):
                knees.append(_knee_row(run, backend, points))
            if run.find_one(self.name, SHARE, backend):
                aging.append(_aging_row(run, backend))
        best = "throughput with most clients, of the best"
        alone = (ALONE, "objects of a client", f"{LASTED}, of all cells")
        heads = ("", "knee, as printed", "knee here", "it rests on", best, *alone)
        aged = ("", "added to the response time, as printed", "at most of the time, as printed")
        return [
            Printed(KNEE, "Where throughput no longer rises", heads, tuple(knees), 1),
            Printed(
                AGING,
                "What aging adds",
                (*aged, "added here by", "", "at most of the time here"),
                tuple(aging),
                2,
            ),
        ]


def _knee_measures(backend: str, found: Knee) -> Iterator[Measure]:
    """A knee as measures: so whoever reads the record sees what it rests on, too."""
    parameters = {"series": "overlapping", "entry": "Null"}
    for metric, unit, value in (
        (KNEE, "clients", found.clients),
        (KNEE_POINTS, "", found.points),
        (KNEE_BEFORE, "clients", found.clients_without_last),
    ):
        if value is not None:
            yield Measure("settle", backend, parameters, metric, unit, [value], derived=True)


def _knee_row(run: Run, backend: str, points: Points) -> tuple[str, ...]:
    best = max(throughput for _, throughput, _ in points)
    found, most = knee_of(points), points[-1][0]
    fixed = {"series": "overlapping"}
    phase = run.find_one("settle", ALONE, backend, **fixed)
    objects = run.find_one("settle", "objects", backend, **fixed)
    lasted = [m.summary.least for m in run.find("settle", LASTED, **fixed) if m.backend == backend]
    return (
        backend,
        "8 to 14 (JavaSpaces)",
        f"none within {most:.0f}" if found.clients is None else f"{found.clients:.0f}",
        "; ".join(found.doubts) or f"{found.points} points",
        f"{digits(100 * points[-1][1] / best)} %",
        quantity(phase.summary.mean, "s") if phase else "-",
        whole(objects.summary.mean) if objects else "-",
        quantity(min(lasted), "s") if lasted else "-",
    )


def _aging_row(run: Run, backend: str) -> tuple[str, ...]:
    """The workload of the paper's figure, or the nearest that was measured."""
    added = [m for m in run.find("settle", ADDED) if m.backend == backend]
    shares = [m.summary.mean for m in run.find("settle", SHARE) if m.backend == backend]
    near = min(added, key=lambda m: abs(m.parameters["aged by"] - PRINTED_WORKLOAD), default=None)
    return (
        backend,
        "30 % by 3 000 operations (NullIO)",
        "31 %",
        f"{whole(near.parameters['aged by'])} operations" if near else "-",
        f"{digits(100 * near.summary.mean)} %" if near else "-",
        f"{digits(100 * max(shares))} %",
    )


def _added_by_aging(run: Run) -> Iterator[Measure]:
    """How much longer the clients take than in a new space, as a share."""
    for measure in run.find("settle", "response time", series="aged"):
        fresh = run.find_one(
            "settle", "response time", measure.backend,
            series="overlapping", clients=measure.parameters["clients"],
        )  # fmt: skip
        if fresh is not None:
            mean_s = fresh.summary.mean
            added = [aged_s / mean_s - 1 for aged_s in measure.independent]
            yield Measure(
                "settle", measure.backend, measure.parameters, ADDED, "", added, derived=True
            )


def job(series: str, plan: Plan) -> Job:
    """A cell."""
    parameters: dict[str, Any] = {"series": series, "entry": plan.kind, "clients": plan.clients}
    if plan.workload is not None:
        parameters["aged by"] = len(plan.workload)
    overlaps = plan.load is not None
    return Job(
        parameters,
        partial(once, plan=plan),
        family=f"{series} {plan.kind}",
        schema=Schema(SHAPES, outlive=plan.workload is not None),
        spaces=(SPACE,),
        size_bytes=plan.objects_max * plan.clients * (NULL_BYTES if overlaps else TUPLE_BYTES)
        + len(plan.workload or ()) * TUPLE_BYTES,
        weight=1 + plan.clients * (1.5 if overlaps else 0.3),
        rank=_rank(series, plan),
    )


def _rank(series: str, plan: Plan) -> int:
    """The knee first, then what aging costs, as the paper prints it, then all the rest."""
    if series == "overlapping":
        return 1 if plan.clients == CLIENTS_BETWEEN else 0
    if series == "aged":
        near = len(plan.workload or ()) in (PRINTED_WORKLOAD, QUICK_WORKLOAD)
        return 1 if near and plan.clients <= CLIENTS_AGED[0] else 3
    return 2 if plan.kind == "Null" else 3


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: age, run all clients, clean."""
    if plan.load is not None:
        plan.load.find(stage)
        stage.note(ALONE, "s", [plan.load.phase_s])
    age_s = 0.0
    if plan.workload is not None:
        ((age_s,), _) = stage.run((age, (stage.peer, plan.workload)))
    parts = plan.parts(stage)
    rounds, objects = parts[0].rounds, parts[0].objects
    outcomes, profilers = stage.run(*[(client, (stage.peer, part)) for part in parts])
    ((clean_s, left),), _ = stage.run((clean, (stage.peer,)))
    check(plan, objects * rounds, [taken for *_, taken in outcomes], left)
    run_s = max(end for _, end, _ in outcomes) - min(begin for begin, *_ in outcomes)
    stage.note("throughput", "operations/s", [2 * objects * rounds * plan.clients / run_s])
    stage.note("response time", "s", [busy_s(profiler) / rounds for profiler in profilers])
    stage.note("objects", "", [objects])
    stage.note("rounds", "", [rounds])
    stage.note(LASTED, "s", [min(busy_s(profiler) for profiler in profilers) / 2])
    if plan.workload is not None:
        stage.note(AGING, "s", [age_s])
        stage.note("cleaning", "s", [clean_s])
        # Of a run of one round: more of them are there to measure better, not to do more.
        share = (age_s + clean_s) / (age_s + clean_s + run_s / rounds)
        stage.note(SHARE, "", [share])


def busy_s(profiler: Profiler) -> float:
    """How long a client was in its phases, of both kinds."""
    return profiler.tracks["phase"].total_s


def check(plan: Plan, objects: int, taken: Sequence[Counter[int]], left: int) -> None:
    """See that what all have taken and what is left is what all have put.

    An aged space has tuples of the same kind, any of which may be taken: there only the number
    has to be right.
    """
    expected = plan.workload.left() if plan.workload is not None else 0
    if left != expected:
        message = f"{expected} tuples should be left for cleaning, there are {left}"
        raise WrongResultError(message)
    together = sum(taken, Counter())
    marks = Counter({mark_of(plan.kind, number): 0 for number in range(plan.clients)})
    for number in range(plan.clients):
        marks[mark_of(plan.kind, number)] += objects
    if together.total() != marks.total() or (plan.workload is None and together != marks):
        message = f"{marks.total()} entries were put, by client {marks}, but {together} were taken"
        raise WrongResultError(message)


def check_empty(fields: Fields, taken: Iterable[Fields]) -> None:
    """See that entries that are all alike are as they were put."""
    wrong = next((each for each in taken if tuple(each) != tuple(fields)), None)
    if wrong is not None:
        message = f"{fields!r} was put, but {wrong!r:.300} was taken"
        raise WrongResultError(message)


def mark_of(kind: str, number: int) -> int:
    """What tells the entries of a client from those of another; an entry that is empty has none."""
    return 0 if kind == "Null" else number


Outcome = tuple[float, float, "Counter[int]"]
"""When a client began and ended, and how many entries of each other client it has taken."""


def client(bench: Bench, backend: Backend, part: Part) -> Outcome:
    """Write, pause, take; as often as there are rounds."""
    space = backend.open(SPACE)
    kind, objects = part.kind, part.objects
    fields = fields_of(backend, kind, bench.number)
    template = template_of(backend, kind)
    put, take = space.put, space.take
    # An entry that is empty has nothing to tell it from another: half a million need not be kept.
    taken: deque[Fields] = deque(maxlen=LOOKED_AT if kind == "Null" else None)
    keep = taken.append
    bench.start.wait()
    if part.warms_up:
        for _ in range(objects):
            put(*fields)
        for _ in range(objects):
            take(*template)
        bench.start.wait()
    time.sleep(part.start_s)
    begin = time.perf_counter()
    for _ in range(part.rounds):
        with bench.profiler.time("phase", objects):
            for _ in range(objects):
                put(*fields)
        time.sleep(part.pause_s)
        with bench.profiler.time("phase", objects):
            for _ in range(objects):
                keep(take(*template))
    end = time.perf_counter()
    space.close()
    if kind == "Null":
        check_empty(fields, taken)
        return begin, end, Counter({mark_of(kind, 0): objects * part.rounds})
    return begin, end, Counter(seed_of(backend, kind, each) for each in taken)


def age(bench: Bench, backend: Backend, workload: Workload) -> float:
    """Do a workload; how long it took."""
    del bench
    space = backend.open(SPACE)
    begin = time.perf_counter()
    workload.run(backend, space)
    aged_s = time.perf_counter() - begin
    space.close()
    return aged_s


def clean(bench: Bench, backend: Backend) -> tuple[float, int]:
    """Take everything; how long it took, and how much there was."""
    del bench
    space = backend.open(SPACE)
    begin = time.perf_counter()
    taken = 0
    for kind in KINDS:
        template = template_of(backend, kind)
        while space.try_take(*template) is not None:
            taken += 1
    cleaned_s = time.perf_counter() - begin
    space.close()
    return cleaned_s, taken
