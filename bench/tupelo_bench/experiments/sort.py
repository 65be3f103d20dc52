"""`bench sort`: parallel insertion sort, by a space and by calls to workers.

Ahuja, Eggen, Jha: A performance evaluation of distributed algorithms on shared memory and message
passing middleware platforms, 2005. A master splits n numbers into P parts, P workers sort them, the
master merges. Splitting an O(n²) sort cuts the work itself by P; the work-normalised speed-up
counts only what is left after that. (So it is the same number as the efficiency, which is speed-up
by P; the efficiency that is left of it is speed-up by P².)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, ClassVar

from tupelo_bench.backends.base import Backend, Peer
from tupelo_bench.backends.calls import Caller, NativeCaller
from tupelo_bench.backends.space_calls import SCHEMA, SPACE
from tupelo_bench.experiments import native
from tupelo_bench.experiments.base import OURS, Experiment
from tupelo_bench.experiments.checked import check_sorted
from tupelo_bench.experiments.insertion import insertion_sort, is_compiled, prepare
from tupelo_bench.experiments.rpc.calls import calls
from tupelo_bench.experiments.warming import WarmUp, note_warming, warm_until_steady
from tupelo_bench.harness.record import Measure
from tupelo_bench.harness.workers import WrongResultError
from tupelo_bench.presentation.figure import Figure, Point, Series, lines
from tupelo_bench.presentation.printed import Printed
from tupelo_bench.presentation.tables import mean_of, sign
from tupelo_bench.presentation.units import digits, whole
from tupelo_bench.runner import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from tupelo_bench.backends.calls import Client
    from tupelo_bench.harness.record import Run
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Options, Stage

SIZES = (8 << 10, 16 << 10, 32 << 10, 64 << 10)
WORKERS = (1, 2, 4, 8)
DTYPE = "i8"
RESPONSE = "response time"
SPEED_UP, WORK_NORMALISED = "speed-up", "work-normalised speed-up"
WARM_UP = 100  # calls, where time is short
CYCLE = 50  # calls of a cycle, each a put and a take of the master

# Milliseconds of 2005, for 1, 2, 4 and 8 workers.
JAVASPACES = {
    8 << 10: (4_636, 3_726, 3_451, 3_573),
    16 << 10: (10_744, 6_701, 4_898, 4_465),
    32 << 10: (34_223, 17_529, 10_459, 7_488),
    64 << 10: (128_508, 47_488, 20_003, 12_056),
}
CORBA = {
    8 << 10: (7_947, 6_438, 5_941, 6_399),
    16 << 10: (14_747, 8_839, 7_395, 7_263),
    32 << 10: (39_599, 18_816, 11_097, 9_282),
    64 << 10: (139_199, 66_365, 35_280, 20_119),
}


@dataclass(frozen=True)
class Plan:
    """One cell."""

    size: int
    workers: int
    seed: int
    warm_up: WarmUp
    """Calls that come before the one that counts, of all workers together."""

    def numbers(self) -> np.ndarray:
        """What is to be sorted."""
        import numpy as np

        return np.random.default_rng(self.seed).integers(1, 1 << 31, self.size, DTYPE)

    @classmethod
    def of(cls, stage: Stage, size: int, workers: int) -> Plan:
        """That of a repeat."""
        # A call is a put and a take of the master.
        count = WARM_UP if stage.quick else max(WARM_UP, stage.peer.warm_up // 2)
        warm_up = WarmUp(count, until_steady=stage.peer.compiles and not stage.quick)
        return cls(size, workers, stage.seed, warm_up)


class Sort(Experiment):
    """Parallel insertion sort."""

    name = "sort"
    title = "Parallel insertion sort"
    source = (
        "Ahuja, Eggen, Jha: A performance evaluation of distributed algorithms on shared memory"
        " and message passing middleware platforms, 2005"
    )
    question = "How much faster do P workers sort, and does the way to tell them matter?"
    share = 0.1
    weights: ClassVar = {"grpc": 2.0}
    main = (RESPONSE, SPEED_UP, WORK_NORMALISED)

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        return [
            peer
            for peer in self.meant(all_peers)
            if not (peer.one_process or peer.name == "sqlite-durable")
            and (
                issubclass(peer, Backend | NativeCaller)
                or (issubclass(peer, Caller) and peer.bytes_max is None)
            )
        ]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        is_native = issubclass(peer, NativeCaller)
        language = "C" if is_native or is_compiled() else "Python"
        run = once_natively if is_native else once
        return [
            Job(
                {"size": size, "workers": workers, "sort": language},
                partial(run, size=size, workers=workers),
                "sort",
                SCHEMA,
                (SPACE,),
                4 * 8 * size,
                weight=1 + size / SIZES[0] / workers,
                # The ends of the curves come first.
                rank=0 if size in SIZES[::3] and workers in WORKERS[::3] else 1,
            )
            for size in ((1 << 10,) if options.quick else SIZES)
            for workers in ((1, 2) if options.quick else WORKERS)
        ]

    def derive(self, run: Run) -> list[Measure]:
        """Speed-up and efficiency: ratios of the mean response times.

        A value each, without repeats: a spread would have to be that of both times, and what is
        significant is told of the times themselves. A mean of ratios would be larger.
        """
        found = []
        times = {
            (measure.backend, measure.parameters["size"], measure.parameters["workers"]): measure
            for measure in run.find(self.name, RESPONSE)
        }
        for (backend, size, workers), measure in times.items():
            alone = times.get((backend, size, 1))
            if alone is None:
                continue
            alone_s = alone.summary.mean
            for metric, divisor in (
                (SPEED_UP, 1),
                ("efficiency", workers),
                (WORK_NORMALISED, workers),
                ("work-normalised efficiency", workers**2),
            ):
                value = [alone_s / measure.summary.mean / divisor]
                found.append(
                    Measure(self.name, backend, measure.parameters, metric, "", value, derived=True)
                )
        return found

    def figures(self, run: Run) -> list[Figure]:
        found = []
        sizes = sorted({measure.parameters["size"] for measure in run.of(self.name)})
        for metric in self.main:
            for size in sizes:
                figure = lines(
                    run, self.name, metric, "workers", fixed={"size": size},
                    title=f"{whole(size)} numbers: {metric}", log_y=metric == RESPONSE,
                )  # fmt: skip
                found.append(figure if metric == RESPONSE else with_ideal(run, figure))
        one = lines(
            run, self.name, RESPONSE, "size", fixed={"workers": 1},
            title=f"One worker: {RESPONSE}", log_x=True, note="Figure 7 of RPC",
        )  # fmt: skip
        return [*found, one]

    def printed(self, run: Run) -> list[Printed]:
        columns = (OURS, "javaspaces", "grpc", "omniorb")
        rows = []
        for size in SIZES:
            for place, workers in enumerate(WORKERS):
                measures = run.find(self.name, RESPONSE, size=size, workers=workers)
                here = {m.backend: m for m in measures}
                there = (JAVASPACES[size][place], CORBA[size][place])
                rows.append(
                    (
                        f"{size // 1024}K, {workers} workers",
                        *(f"{whole(each_ms)} ms" for each_ms in there),
                        f"{digits(there[1] / there[0])} x",
                        *(mean_of(here[each]) if each in here else "-" for each in columns),
                        *(ratio(here, "omniorb", space) for space in ("javaspaces", OURS)),
                    )
                )
        heads = (
            *("", "JavaSpaces", "CORBA", "CORBA to JavaSpaces"),
            *(*columns, "omniorb to javaspaces", f"omniorb to {OURS}"),
        )
        return [Printed(RESPONSE, "Response time, as printed and here", heads, tuple(rows), 3)]


def ratio(measures: Mapping[str, Measure], one: str, other: str) -> str:
    """How many times the mean of another system that of one is; with its sign if it may be chance.

    "-" if one of them was not measured.
    """
    if one not in measures or other not in measures:
        return "-"
    of, to = measures[one], measures[other]
    return f"{sign(of, to)}{digits(of.summary.mean / to.summary.mean)} x"


def with_ideal(run: Run, figure: Figure) -> Figure:
    """A figure of a speed-up with what it would be at best on the processors of this machine.

    Of P parts on C processors, min(P, C) are worked on at a time; and all P are a P-th of the work.
    """
    processors = len(run.machine.get("processors", ())) or 1
    points = tuple(
        Point(parts, min(parts, processors) * (1 if figure.y_label == WORK_NORMALISED else parts),
              None)
        for parts in sorted(figure.values)
    )  # fmt: skip
    note = f"All workers share {processors} processors."
    if figure.y_label == SPEED_UP:
        note += " P parts are a P-th of the work of a sort in O(n²), so the ideal is above P."
    ideal = Series(f"ideal on {processors} processors", points, dashes=":", is_reference=True)
    return replace(figure, series=(*figure.series, ideal), note=note)


def once(stage: Stage, size: int, workers: int) -> None:
    """One repeat: the workers, and the master as the last process."""
    plan = Plan.of(stage, size, workers)
    _, profilers = stage.run(*[(worker, (stage.peer,))] * workers, (master, (stage.peer, plan)))
    note_warming(stage, profilers)
    stage.note(RESPONSE, "s", [profilers[-1].tracks[RESPONSE].total_s])


def once_natively(stage: Stage, size: int, workers: int) -> None:
    """The same by programs that time themselves: the way from the master to its own is left out."""
    plan = Plan.of(stage, size, workers)
    _, profilers = stage.run(
        *[(native.serve, (stage.peer,))] * workers, (native_master, (stage.peer, plan))
    )
    stage.note(RESPONSE, "s", [profilers[-1].tracks[RESPONSE].total_s])


def worker(bench: Bench, peer: Any) -> None:
    """Sort what comes."""
    import numpy as np

    prepare()
    servant = calls(peer).servant(bench.number)
    bench.start.wait()
    bench.start.wait()  # the master has connected
    servant.serve(lambda part: insertion_sort(np.frombuffer(part, DTYPE)).tobytes())


def master(bench: Bench, peer: Any, plan: Plan) -> None:
    """Split, ask, merge, check."""
    import numpy as np

    numbers = plan.numbers()
    bench.start.wait()
    client: Client = calls(peer).client(plan.workers)
    bench.start.wait()
    warm(bench, plan, client.call_many)
    with bench.profiler.time(RESPONSE):
        parts = client.call_many([p.tobytes() for p in np.array_split(numbers, plan.workers)])
        answers = [np.frombuffer(part, DTYPE) for part in parts]
        together = merged(answers)
    check_sorted(answers, together, numbers)
    client.stop(plan.workers)
    client.close()


def warm(bench: Bench, plan: Plan, call_many: Callable[[list[bytes]], list[bytes]]) -> None:
    """Have a part of one number sorted by each, again and again.

    In the one call that counts, whoever connects at the first call, or compiles itself, would be
    timed doing so.
    """
    import numpy as np

    parts = [np.array([1], DTYPE).tobytes()] * plan.workers

    def call(count: int) -> None:
        for _ in range(max(1, count // plan.workers)):
            answers = call_many(parts)
            if answers != parts:
                message = f"a part of one number came back as {answers!r:.100}"
                raise WrongResultError(message)

    call(plan.warm_up.operations)
    if plan.warm_up.until_steady:
        warm_until_steady(bench.profiler, lambda: call(CYCLE))


def native_master(bench: Bench, peer: NativeCaller, plan: Plan) -> None:
    """Split, have a program ask, merge, check."""
    import numpy as np

    numbers = plan.numbers()
    bench.start.wait()
    client = peer.client(plan.workers)
    warm(
        bench,
        plan,
        lambda parts: [
            answer.tobytes()
            for answer in client.sort([np.frombuffer(part, DTYPE) for part in parts])[0]
        ],
    )
    begin = perf_counter_ns()
    parts = np.array_split(numbers, plan.workers)
    split_ns = perf_counter_ns() - begin
    answers, asked_ns = client.sort(parts)
    begin = perf_counter_ns()
    together = merged(answers)
    bench.profiler.add(RESPONSE, split_ns + asked_ns + perf_counter_ns() - begin)
    check_sorted(answers, together, numbers)
    client.stop()


def merged(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Sorted parts as one."""
    import numpy as np

    together = np.concatenate(parts)
    together.sort(kind="stable")  # which finds the sorted runs, and merges them
    return together
