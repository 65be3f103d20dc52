"""`bench settle`: many clients that begin one after the other, and spaces that are not new.

Fiedler, Walcott, Richardson, Kapfhammer, Amer, Chrysanthis: Towards the Measurement of Tuple Space
Performance, 2005. A client writes objects, pauses, and takes as many. Client j begins a delay after
client j - 1. Two series, since the paper's delays are longer than a phase takes today, so that its
clients do not meet: "paper" has its delays; in "overlapping" a phase of a client alone lasts a
second (or half a million objects), and the delay is half of that. The knee is looked for in the
second.

Before a run a space may be aged: populated by a workload that was generated from frequencies, or
recorded (`tupelo record`). Afterwards it is cleaned. Both are timed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Schema, Shape
from tupelo.bench.experiments.base import Experiment
from tupelo.bench.experiments.workload import KINDS, Workload, fields_of, generated, template_of
from tupelo.bench.harness.record import Measure
from tupelo.bench.harness.runner import Job
from tupelo.bench.harness.workers import WrongResultError
from tupelo.bench.report.figure import Figure, lines
from tupelo.bench.report.printed import Printed
from tupelo.bench.report.units import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.bench.backends.base import Peer
    from tupelo.bench.harness.record import Run
    from tupelo.bench.harness.runner import Options, Stage
    from tupelo.bench.harness.workers import Bench

SPACE = "settle"
SHARE = "share of aging and cleaning"
DELAY_MIN_S, DELAY_SPREAD_S = 0.200, 0.050
OBJECTS = 1_000
CLIENTS = (2, 8, 14, 22)
CLIENTS_AGED = (8, 14)
WORKLOADS = (1_000, 3_000, 6_000, 12_000)
PHASE_S = 1.0  # of a client alone, in the overlapping series
OBJECTS_MAX = 500_000  # of a client, so that those of all fit into the memory of a small machine
CALIBRATION_OBJECTS = 200
REPEATS = 3  # a run with 22 clients lasts long, and its clients are many samples in themselves
RISE = 1.05  # what counts as a rise, of throughput and of response time
TUPLE_BYTES = 4_500  # of the largest kind
NULL_BYTES = 50  # beside what a system needs for any tuple
SHAPES = tuple(Shape(kind, 1 if kind == "Null" else 2) for kind in KINDS)


@dataclass(frozen=True)
class Plan:
    """One cell."""

    kind: str
    clients: int
    quick: bool
    overlapping: bool = False
    workload: Workload | None = None

    @property
    def objects_max(self) -> int:
        """The most that a client puts."""
        if not self.overlapping:
            return OBJECTS
        return OBJECTS_MAX // 25 if self.quick else OBJECTS_MAX

    def delays_s(self, stage: Stage, phase_s: float) -> list[float]:
        """A delay per client: before its start after the one before, and between its phases."""
        choice = stage.random
        if self.overlapping:
            return [phase_s / 2] * self.clients
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
    main = ("throughput", "response time")

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        return [peer for peer in super().peers(all_peers) if peer.name != "tupelo-mem"]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        del peer
        quick = options.quick
        counts = (2, 3) if quick else CLIENTS
        plans = [
            ("paper", Plan(kind, clients, quick))
            for kind in (("Null", "Array") if quick else KINDS)
            for clients in counts
        ]
        plans += [
            ("overlapping", Plan("Null", clients, quick, overlapping=True)) for clients in counts
        ]
        workloads = [generated(size, options.seed) for size in ((100,) if quick else WORKLOADS)]
        if options.workload:
            workloads = [options.workload]
        plans += [
            ("aged", Plan("Null", clients, quick, overlapping=True, workload=workload))
            for workload in workloads
            for clients in ((2,) if quick else CLIENTS_AGED)
        ]
        return [job(series, plan) for series, plan in plans]

    def derive(self, run: Run) -> list[Measure]:
        """The knee of each backend, where there is one."""
        found = []
        for backend in dict.fromkeys(measure.backend for measure in run.of(self.name)):
            points = _points(run, backend)
            place = knee(points)
            if place is not None:
                parameters = {"series": "overlapping", "entry": "Null"}
                found.append(Measure(self.name, backend, parameters, "knee", "clients", [place]))
        return found

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
        rows = []
        for backend in dict.fromkeys(measure.backend for measure in run.of(self.name)):
            points = _points(run, backend)
            if not points:
                continue
            best = max(throughput for _, throughput, _ in points)
            place = knee(points)
            most = points[-1][0]
            rows.append(
                (
                    backend,
                    "8 to 14 (JavaSpaces)",
                    f"none within {most}" if place is None else f"{place:.0f}",
                    f"{digits(100 * points[-1][1] / best)} %",
                )
            )
        heads = ("", "knee, as printed", "knee here", "throughput with most clients, of the best")
        return [Printed("Where throughput no longer rises", heads, tuple(rows), 1)]


def job(series: str, plan: Plan) -> Job:
    """A cell."""
    parameters: dict[str, Any] = {"series": series, "entry": plan.kind, "clients": plan.clients}
    if plan.workload is not None:
        parameters["aged by"] = len(plan.workload)
    return Job(
        parameters,
        partial(once, plan=plan),
        family=f"{series} {plan.kind}",
        schema=Schema(SHAPES, outlive=plan.workload is not None),
        spaces=(SPACE,),
        size_bytes=plan.objects_max
        * plan.clients
        * (NULL_BYTES if plan.overlapping else TUPLE_BYTES)
        + len(plan.workload or ()) * TUPLE_BYTES,
        repeats=REPEATS,
        weight=1 + plan.clients * (1.5 if plan.overlapping else 0.3),
    )


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: age, run all clients, clean."""
    objects = OBJECTS // 10 if plan.quick else OBJECTS
    phase_s = 0.0
    if plan.overlapping:
        ((alone_s,), _) = stage.run((calibrate, (stage.peer, plan.kind)))
        objects = max(CALIBRATION_OBJECTS, int((0.02 if plan.quick else PHASE_S) / alone_s))
        objects = min(objects, plan.objects_max)
        phase_s = objects * alone_s
    age_s = 0.0
    if plan.workload is not None:
        ((age_s,), _) = stage.run((age, (stage.peer, plan.workload)))
    delays = plan.delays_s(stage, phase_s)
    clients = [
        (
            client,
            (stage.peer, Part(plan.kind, objects, sum(delays[1 : number + 1]), delays[number])),
        )
        for number in range(plan.clients)
    ]
    spans, profilers = stage.run(*clients)
    ((clean_s, left),), _ = stage.run((clean, (stage.peer,)))
    expected = plan.workload.left() if plan.workload is not None else 0
    if left != expected:
        message = f"{expected} tuples should be left for cleaning, there are {left}"
        raise WrongResultError(message)
    run_s = max(end for _, end in spans) - min(begin for begin, _ in spans)
    stage.note("throughput", "operations/s", [2 * objects * plan.clients / run_s])
    stage.note("response time", "s", [profiler.tracks["phase"].total_s for profiler in profilers])
    stage.note("objects", "", [objects])
    if plan.workload is not None:
        stage.note("aging", "s", [age_s])
        stage.note("cleaning", "s", [clean_s])
        share = (age_s + clean_s) / (age_s + clean_s + run_s)
        stage.note(SHARE, "", [share])


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


def client(bench: Bench, backend: Backend, part: Part) -> tuple[float, float]:
    """Write, pause, take; when it began and ended."""
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
    with bench.profiler.time("phase", objects):
        for _ in range(objects):
            take(*template)
    end = time.perf_counter()
    space.close()
    return begin, end


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
