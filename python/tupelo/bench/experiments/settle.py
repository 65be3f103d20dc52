"""`bench settle`: many clients that begin one after the other, and spaces that are not new.

Fiedler, Walcott, Richardson, Kapfhammer, Amer, Chrysanthis: Towards the Measurement of Tuple Space
Performance, 2005. A client writes objects, pauses, and takes as many. Client j begins a delay after
client j - 1. Two series, since the paper's delays are longer than a phase takes today, so that its
clients do not meet: "paper" has its delays; in "overlapping" a phase of a client alone lasts a
second (or half a million objects), and the delay is half of that. A run with less time than five
hours has shorter phases, in proportion. How many objects that is is found once per peer, so
that all its cells do the same work. The knee is looked for in the second.

Before a run a space may be aged: populated by a workload that was generated from frequencies, or
recorded (`tupelo record`). Afterwards it is cleaned. Both are timed.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Schema, Shape
from tupelo.bench.experiments.base import Experiment
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
    from tupelo.bench.harness.record import Run
    from tupelo.bench.harness.runner import Options, Stage
    from tupelo.bench.harness.workers import Bench

SPACE = "settle"
SHARE = "share of aging and cleaning"
ADDED = "response time added by aging"
ALONE = "phase of a client alone"
DELAY_MIN_S, DELAY_SPREAD_S = 0.200, 0.050
OBJECTS = 1_000
CLIENTS = (2, 8, 14, 22)
CLIENTS_BETWEEN = 14  # tell least about the knee
CLIENTS_AGED = (8, 14)
WORKLOADS = (1_000, 3_000, 6_000, 12_000)
PRINTED_WORKLOAD = 3_000
QUICK_WORKLOAD = 100
QUICK_PHASE_S = 0.02
PHASE_S = 1.0  # of a client alone, in the overlapping series
PHASE_MIN_S = 0.05
FULL_S = 18_000.0  # of a run that has time for such phases, three times for every peer
OBJECTS_MAX = 500_000  # of a client, so that those of all fit into the memory of a small machine
CALIBRATION_OBJECTS = 200
LOOKED_AT = 10_000  # empty entries that are checked of those that a client took: the last ones
RISE = 1.05  # what counts as a rise, of throughput and of response time
TUPLE_BYTES = 4_500  # of the largest kind
NULL_BYTES = 50  # beside what a system needs for any tuple
SHAPES = tuple(Shape(kind, 1 if kind == "Null" else 2) for kind in KINDS)


@dataclass
class Load:
    """How much work the clients of one peer do in the overlapping series: found once."""

    phase_s: float
    """How long a phase of a client alone is to take."""
    objects_max: int
    objects: int = 0
    alone_s: float = 0.0
    """Per operation."""

    def find(self, stage: Stage) -> None:
        """Time a client alone, if that was not done yet."""
        if self.objects:
            return
        ((self.alone_s,), _) = stage.run((calibrate, (stage.peer, "Null")))
        self.objects = max(CALIBRATION_OBJECTS, int(self.phase_s / self.alone_s))
        self.objects = min(self.objects, self.objects_max)


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

    def delays_s(self, stage: Stage) -> list[float]:
        """A delay per client: before its start after the one before, and between its phases."""
        choice = stage.random
        if self.load is not None:
            return [self.load.objects * self.load.alone_s / 2] * self.clients
        scale = 0.1 if self.quick else 1.0
        return [
            scale * (DELAY_MIN_S + choice.uniform(0, DELAY_SPREAD_S)) for _ in range(self.clients)
        ]


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
        return [peer for peer in super().peers(all_peers) if not peer.one_process]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        del peer
        quick = options.quick
        counts = (2, 3) if quick else CLIENTS
        phase_s = PHASE_S * min(1.0, (options.budget_s or FULL_S) / FULL_S)
        load = Load(max(PHASE_MIN_S, phase_s), OBJECTS_MAX)
        if quick:
            load = Load(QUICK_PHASE_S, OBJECTS_MAX // 25)
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
        """The knee of each backend, where there is one, and what aging adds."""
        found = []
        for backend in dict.fromkeys(measure.backend for measure in run.of(self.name)):
            place = knee(_points(run, backend))
            if place is not None:
                parameters = {"series": "overlapping", "entry": "Null"}
                found.append(
                    Measure(
                        self.name, backend, parameters, "knee", "clients", [place], derived=True
                    )
                )
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
            if points := _points(run, backend):
                knees.append(_knee_row(run, backend, points))
            if run.find_one(self.name, SHARE, backend):
                aging.append(_aging_row(run, backend))
        best = "throughput with most clients, of the best"
        alone = ("phase of a client alone", "objects of a client")
        heads = ("", "knee, as printed", "knee here", best, *alone)
        aged = ("", "added to the response time, as printed", "at most of the time, as printed")
        return [
            Printed("Where throughput no longer rises", heads, tuple(knees), 1),
            Printed(
                "What aging adds",
                (*aged, "added here by", "", "at most of the time here"),
                tuple(aging),
                2,
            ),
        ]


def _knee_row(run: Run, backend: str, points: Points) -> tuple[str, ...]:
    best = max(throughput for _, throughput, _ in points)
    place, most = knee(points), points[-1][0]
    fixed = {"series": "overlapping"}
    phase = run.find_one("settle", ALONE, backend, **fixed)
    objects = run.find_one("settle", "objects", backend, **fixed)
    return (
        backend,
        "8 to 14 (JavaSpaces)",
        f"none within {most:.0f}" if place is None else f"{place:.0f}",
        f"{digits(100 * points[-1][1] / best)} %",
        quantity(phase.summary.mean, "s") if phase else "-",
        whole(objects.summary.mean) if objects else "-",
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
    objects = OBJECTS // 10 if plan.quick else OBJECTS
    if plan.load is not None:
        plan.load.find(stage)
        objects = plan.load.objects
        stage.note(ALONE, "s", [objects * plan.load.alone_s])
    age_s = 0.0
    if plan.workload is not None:
        ((age_s,), _) = stage.run((age, (stage.peer, plan.workload)))
    delays = plan.delays_s(stage)
    clients = [
        (
            client,
            (stage.peer, Part(plan.kind, objects, sum(delays[1 : number + 1]), delays[number])),
        )
        for number in range(plan.clients)
    ]
    outcomes, profilers = stage.run(*clients)
    ((clean_s, left),), _ = stage.run((clean, (stage.peer,)))
    check(plan, objects, [taken for *_, taken in outcomes], left)
    run_s = max(end for _, end, _ in outcomes) - min(begin for begin, *_ in outcomes)
    stage.note("throughput", "operations/s", [2 * objects * plan.clients / run_s])
    stage.note("response time", "s", [profiler.tracks["phase"].total_s for profiler in profilers])
    stage.note("objects", "", [objects])
    if plan.workload is not None:
        stage.note("aging", "s", [age_s])
        stage.note("cleaning", "s", [clean_s])
        share = (age_s + clean_s) / (age_s + clean_s + run_s)
        stage.note(SHARE, "", [share])


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


def calibrate(bench: Bench, backend: Backend, kind: str) -> float:
    """The time of a put or a take of a client alone, whichever is shorter."""
    del bench
    space = backend.open(SPACE)
    fields, template = fields_of(backend, kind, 0), template_of(backend, kind)
    best = float("inf")
    for _ in range(3):
        for operation, arguments in ((space.put, fields), (space.take, template)):
            begin = perf_counter_ns()
            for _ in range(CALIBRATION_OBJECTS):
                operation(*arguments)
            best = min(best, (perf_counter_ns() - begin) / CALIBRATION_OBJECTS / 1e9)
    space.close()
    return best


@dataclass(frozen=True)
class Part:
    """What one client does, and when."""

    kind: str
    objects: int
    start_s: float
    """After the start of all."""
    pause_s: float
    """Between its phases."""


Outcome = tuple[float, float, "Counter[int]"]
"""When a client began and ended, and how many entries of each other client it has taken."""


def client(bench: Bench, backend: Backend, part: Part) -> Outcome:
    """Write, pause, take."""
    space = backend.open(SPACE)
    kind, objects = part.kind, part.objects
    fields = fields_of(backend, kind, bench.number)
    template = template_of(backend, kind)
    put, take = space.put, space.take
    bench.start.wait()
    time.sleep(part.start_s)
    begin = time.perf_counter()
    with bench.profiler.time("phase", objects):
        for _ in range(objects):
            put(*fields)
    time.sleep(part.pause_s)
    # An entry that is empty has nothing to tell it from another: half a million need not be kept.
    taken: deque[Fields] = deque(maxlen=LOOKED_AT if kind == "Null" else None)
    keep = taken.append
    with bench.profiler.time("phase", objects):
        for _ in range(objects):
            keep(take(*template))
    end = time.perf_counter()
    space.close()
    if kind == "Null":
        check_empty(fields, taken)
        return begin, end, Counter({mark_of(kind, 0): objects})
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


# --- the knee ---

Points = list[tuple[float, float, float]]


def _points(run: Run, backend: str) -> Points:
    """(clients, mean throughput, mean response time) of the overlapping series, in order."""
    fixed = {"series": "overlapping", "entry": "Null"}
    found: dict[float, list[float]] = {}
    for metric in ("throughput", "response time"):
        for measure in run.find("settle", metric, **fixed):
            if measure.backend == backend:
                found.setdefault(measure.parameters["clients"], []).append(measure.summary.mean)
    return [(clients, *pair) for clients, pair in sorted(found.items()) if len(pair) == 2]  # type: ignore[misc]  # noqa: PLR2004


def knee(points: Points) -> float | None:
    """The number of clients beyond which throughput does not rise, and response time does.

    None if there is none: throughput rises to the end, or response time does not.
    """
    for (clients, throughput, response_s), *later in (points[n:] for n in range(len(points) - 1)):
        if all(more <= RISE * throughput for _, more, _ in later) and all(
            longer >= RISE * response_s for _, _, longer in later
        ):
            return clients
    return None
