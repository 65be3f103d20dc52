"""What the cases have in common: a master, workers, a space of its own for each, and the searches.

The space of another process is remote, wherever it runs. In a centralised system the local spaces
are names on the server, so that its "local" operations are as far as the remote ones.

What is timed is the operation itself: where a process finds nothing and has to wait, the time that
it waits for others is not that of a read.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean, median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Schema, Shape
from tupelo_bench.experiments.warming import WarmUp, note_warming, warm_until_steady
from tupelo_bench.harness.profiler import NS_PER_S, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tupelo_bench.backends.base import Backend, Fields, VisitOrder
    from tupelo_bench.harness.profiler import Profiler
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

MASTER = "master"
LOCAL_WRITING = "local writing"
LOCAL_READING = "local reading"
LOCAL_WITHDRAWING = "local withdrawing"
REMOTE_WRITING = "remote writing"
REMOTE_READING = "remote reading"
HANDING_OUT = "handing out"
COLLECTING = "collecting"
KEYED_READING = "local reading by a key"
KEYED_WITHDRAWING = "local withdrawing by a key"
IMBALANCE = "slowest worker's search time, against the mean"
SEARCH = "search"
SEARCH_MEDIAN = "search median"
TOTAL = "total"
COORDINATION = "coordination"
VISITED = "visited nodes"
SEARCHES = "searches"
OPERATIONS = (
    LOCAL_WRITING,
    LOCAL_READING,
    LOCAL_WITHDRAWING,
    REMOTE_WRITING,
    REMOTE_READING,
    HANDING_OUT,
    COLLECTING,
)
AFTER_THE_TOTAL = (KEYED_READING, KEYED_WITHDRAWING)
LOCAL_HIT = "a read of the own space that finds"
REMOTE_HIT = "a read of another's space that finds"
BEGIN, END = "begin", "end"
WARM = Shape("warm", 2)
"""What is put and taken before the clock runs; without a key, since not all peers have any."""
WARM_UP = 100  # operations, where time is short
CYCLE = 100  # operations of a cycle, where a system goes on until it is warm


def names(workers: int) -> tuple[str, ...]:
    """The spaces of a case: the master's, then one per worker."""
    return (MASTER, *(f"worker-{number}" for number in range(workers)))


def with_warm_up(schema: Schema) -> Schema:
    """What is in the spaces of a case: its own shapes, and that which warms up."""
    return Schema((*schema.shapes, WARM), outlive=schema.outlive)


def run_warm(
    stage: Stage, master: Callable[..., Any], worker: Callable[..., Any], plan: Any
) -> tuple[list[Any], list[Profiler]]:
    """Run the processes of a case, each told how many operations come before its clock runs.

    The fixed ones are what a virtual machine needs, divided by all processes: sixteen of them on
    two processors would take minutes, each for itself. Then each goes on until it is steady.
    """
    peer, quick = stage.peer, stage.quick
    operations = WARM_UP if quick else max(WARM_UP, peer.warm_up // (1 + plan.workers))
    warm_up = WarmUp(operations, until_steady=peer.compiles and not quick)
    arguments = (peer, plan, warm_up)
    results, profilers = stage.run((master, arguments), *[(worker, arguments)] * plan.workers)
    note_warming(stage, profilers)
    return results, profilers


def warm(bench: Bench, warm_up: WarmUp, *spaces: Any) -> None:
    """Put and take in these spaces in turn, in each of them at least once; leaves nothing there.

    A whole program is short beside what a virtual machine takes to compile itself, and the first
    operation of a process may have to connect. Others may take what this process put, but each
    takes as many as it put, after it: so there is one for everybody who waits, and none at the end.
    Who is steady before the others waits for them at the start, where it stays warm.
    """
    put_and_take(warm_up.operations, spaces)
    if warm_up.until_steady:
        warm_until_steady(bench.profiler, lambda: put_and_take(CYCLE, spaces))


def put_and_take(operations: int, spaces: Sequence[Any]) -> None:
    """So many operations, half of them puts, in these spaces in turn."""
    template = (WARM.tag, int)
    for number in range(max(len(spaces), operations // 2)):
        space = spaces[number % len(spaces)]
        space.put(WARM.tag, number)
        if space.try_take(*template) is None:
            space.take(*template)


@dataclass
class Worker:
    """A worker process: its own space, the master's, and those of the other workers."""

    bench: Bench
    backend: Backend
    number: int
    spaces: list[Any]
    """Of the workers, its own first, then the next in number, and round."""
    master: Any

    @classmethod
    def open(cls, bench: Bench, backend: Backend, workers: int) -> Worker:
        """Open all spaces; process 0 is the master, so that worker 0 is process 1."""
        number = bench.number - 1
        around = [(number + step) % workers for step in range(workers)]
        spaces = [backend.open(f"worker-{each}") for each in around]
        return cls(bench, backend, number, spaces, backend.open(MASTER))

    @property
    def own(self) -> Any:
        """The local space."""
        return self.spaces[0]

    def warm(self, warm_up: WarmUp) -> None:
        """Warm up, in all spaces."""
        warm(self.bench, warm_up, *self.spaces, self.master)

    def put_local(self, tuples: Sequence[Fields]) -> None:
        """Put into the local space, timed as one batch."""
        put = self.own.put
        begin = perf_counter_ns()
        for fields in tuples:
            put(*fields)
        self.bench.profiler.add(LOCAL_WRITING, perf_counter_ns() - begin, len(tuples))

    def put_remote(self, *fields: Any) -> None:
        """Put into the master's space."""
        begin = perf_counter_ns()
        self.master.put(*fields)
        self.bench.profiler.add(REMOTE_WRITING, perf_counter_ns() - begin)

    def take_remote(self, *template: Any) -> Fields:
        """Take from the master's space; timed if there was something to take."""
        return take_timed(self.bench.profiler, REMOTE_READING, self.master, template)

    def close(self) -> None:
        """Let go of all spaces."""
        for space in (*self.spaces, self.master):
            space.close()


def take_timed(profiler: Profiler, label: str, space: Any, template: Fields) -> Fields:
    """Take; timed if there was something to take."""
    begin = perf_counter_ns()
    found: Fields | None = space.try_take(*template)
    end = perf_counter_ns()
    if found is not None:
        profiler.add(label, end - begin)
        return found
    waited: Fields = space.take(*template)
    return waited


class Searcher:
    """Looks for a tuple that is in one of several spaces, nobody knows which.

    As in the literature: the own space first, then the others in turn, again and again until it is
    found. With "success factor", those first in which most searches of this kind ended so far. A
    backend that can search in several spaces at once does that instead.
    """

    def __init__(self, worker: Worker, order: VisitOrder = "round robin") -> None:
        self._profiler = worker.bench.profiler
        self._spaces = worker.spaces
        self._waits = worker.backend.search(worker.spaces, order)
        self._adapts = order == "success factor"
        self._order = list(range(len(worker.spaces)))
        self._found = [0] * len(worker.spaces)
        self.each_ns: list[int] = []

    def read(self, *template: Any) -> Fields:
        """Find a match and leave it where it is."""
        if self._waits is not None:
            return self._wait(template, self._waits.read)
        return self._poll(template, [space.try_read for space in self._spaces])

    def take(self, *template: Any) -> Fields:
        """Find a match and remove it."""
        if self._waits is not None:
            return self._wait(template, self._waits.take)
        return self._poll(template, [space.try_take for space in self._spaces])

    def _wait(self, template: Fields, find: Any) -> Fields:
        """Search by the system's own means; its looks are timed together, without the waiting."""
        begin = perf_counter_ns()
        found = find(*template)
        duration_ns = perf_counter_ns() - begin
        is_local = found.visited == 1 and found.space is self._spaces[0]
        looked_ns = duration_ns - round(found.waited_s * NS_PER_S)
        label = LOCAL_READING if is_local else REMOTE_READING
        # Where one call looks into all spaces it is one operation, however many those are.
        self._profiler.add(label, looked_ns, getattr(found, "trips", 1))
        self._note(duration_ns, found.visited)
        fields: Fields = found.tuple
        return fields

    def _poll(self, template: Fields, look: Sequence[Any]) -> Fields:
        add = self._profiler.add
        visited = 0
        begin = before = perf_counter_ns()
        while True:
            for place in self._order:
                found: Fields | None = look[place](*template)
                now = perf_counter_ns()
                add(REMOTE_READING if place else LOCAL_READING, now - before)
                before = now
                visited += 1
                if found is not None:
                    self._note(now - begin, visited)
                    if self._adapts:
                        self._learn(place)
                    return found

    def _note(self, duration_ns: int, visited: int) -> None:
        self._profiler.add(SEARCH, duration_ns)
        self._profiler.count(VISITED, visited)
        self._profiler.count(SEARCHES)
        self.each_ns.append(duration_ns)

    def _learn(self, place: int) -> None:
        self._found[place] += 1
        self._order.sort(key=lambda each: -self._found[each])


def begin_together(bench: Bench) -> None:
    """Begin when all are there; note when this process went on."""
    bench.start.wait()
    bench.profiler.moment(BEGIN)


def total_s(profilers: Sequence[Profiler]) -> float:
    """From when the first process went on until the master had its result.

    Where there are more processes than processors the master may be the last to go on.
    """
    begin_ns = min(profiler.moments_ns[BEGIN] for profiler in profilers)
    return (profilers[0].moments_ns[END] - begin_ns) / NS_PER_S


def note(stage: Stage, profilers: Sequence[Profiler], total_s: float) -> None:
    """Record the metrics of one repeat: the mean of each, over all processes."""
    together = merged(profilers)
    for label in (*OPERATIONS, *AFTER_THE_TOTAL, SEARCH, LOCAL_HIT, REMOTE_HIT):
        track = together.tracks.get(label)
        if track is not None and (mean_s := track.mean_s) is not None:
            stage.note(label, "s", [mean_s])
    if (track := together.tracks.get(SEARCH)) is not None:
        # The first look into a space may build its index there, and is in the mean of all.
        stage.note(SEARCH_MEDIAN, "s", [median(track.samples_s())])
    searches = together.counts.get(SEARCHES)
    if searches:
        stage.note(VISITED, "", [together.counts[VISITED] / searches])
    searching_s = [p.tracks[SEARCH].total_s for p in profilers if SEARCH in p.tracks]
    if len(searching_s) > 1:
        stage.note(IMBALANCE, "x", [max(searching_s) / mean(searching_s)])
    spent_s = sum(track.total_s for label, track in together.tracks.items() if label in OPERATIONS)
    stage.note(COORDINATION, "", [spent_s / (total_s * len(profilers))])
    stage.note(TOTAL, "s", [total_s])
