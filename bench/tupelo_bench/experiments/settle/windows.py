"""The series in which all clients are active at once: windows of the same length for all systems.

A barrier comes before each phase. Then every client writes until a second is over, and later takes
until a second is over; what was done in these windows is counted. So the number of clients that are
active is the same for every system, however fast it is. Between the windows, each client puts as
many objects as it wrote before, so that a take finds something to the end of its window. After them
it takes back all that is left, which bounds the memory.

A client that reaches the bound before its second is over ends its window there. The report has the
shortest window. In short ones the clients may come one after the other, where they are more than
the processors. What they did is then divided by the time from the first begin to the last end.
The response time is that of equal work for all: a thousand objects, written and taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from tupelo_bench.experiments.settle.clients import check_left, run_clean, run_clients
from tupelo_bench.experiments.settle.metrics import (
    AGING,
    CLEANING,
    RESPONSE,
    SHORTEST,
    SPACE,
    THROUGHPUT,
)
from tupelo_bench.experiments.settle.phases import (
    BATCH,
    LOOKED_AT,
    Taken,
    check_whole,
    fetch,
    warm_in_cycles,
    write,
)
from tupelo_bench.experiments.workload import ENTRIES, fields_of, template_of
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tupelo_bench.backends.base import Backend
    from tupelo_bench.experiments.settle.clients import Target
    from tupelo_bench.experiments.settle.plan import Plan
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

WINDOW_S, QUICK_WINDOW_S = 1.0, 0.05
LONG_SHARE = 0.5  # of its second: a window that lasts so long meets those of the others
WARM_SHARE = 0.1  # of a window, before those that count, where a server has the tuples
# What all clients together may have put at any moment: of empty entries, and of those that have
# something in them. They fit into the memory of a small machine.
STOCK_MAX, STOCK_LARGE_MAX = 8_000_000, 200_000
QUICK_BATCH = 10  # a durable file does not take more in a short window
QUICK_PART = 25  # of the stock of a full run
RESPONSE_OBJECTS = 1_000  # whose response time is told
BARRIERS = 4  # in the windows of a client: whoever else is at the start has to come as often


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: warm up, age, run all clients at once, clean."""
    part = window_part(plan, stage.peer)
    clients: list[Target] = [(client, (stage.peer, part))] * plan.clients
    age_s, done, _ = run_clients(stage, plan.workload, clients, BARRIERS)
    clean_s, left = run_clean(stage, plan.entries)
    check(plan, done, left)
    stage.note(THROUGHPUT, "operations/s", [throughput(done)])
    stage.note(RESPONSE, "s", response_s(done))
    stage.note(SHORTEST, "s", [min(min(each.write.length_s, each.take.length_s) for each in done)])
    if plan.workload is not None:
        stage.note(AGING, "s", [age_s])
        stage.note(CLEANING, "s", [clean_s])


def stock_max(plan: Plan) -> int:
    """The most objects of all clients at any moment."""
    stock = STOCK_MAX if plan.kind == "Null" else STOCK_LARGE_MAX
    return stock // QUICK_PART if plan.quick else stock


def window_part(plan: Plan, peer: Backend) -> WindowPart:
    """What each client of a cell does."""
    length_s = QUICK_WINDOW_S if plan.quick else WINDOW_S
    return WindowPart(
        plan.kind,
        length_s,
        max(1, stock_max(plan) // (2 * plan.clients)),
        length_s * (WARM_SHARE if peer.has_server else 1.0),
        0 if plan.quick else peer.warm_up // 2,
        plan.workload is not None,
        QUICK_BATCH if plan.quick else BATCH,
        until_steady=peer.compiles and not plan.quick,
    )


@dataclass(frozen=True)
class WindowPart:
    """What one client does; all do the same."""

    kind: str
    length_s: float
    objects_max: int
    """In a window of writing."""
    warm_s: float
    """How long it writes before the windows that count."""
    warm_objects: int
    """At least so many objects it puts and takes before them, as a virtual machine needs them."""
    aged: bool
    """Whether the space is aged when all are warm, while they wait."""
    batch: int = BATCH
    """After so many operations it looks at the clock."""
    until_steady: bool = False
    """Whether it goes on to put and take until its times differ no more."""


@dataclass(frozen=True)
class Window:
    """What one client did in one window, and when, on the clock that all processes have."""

    done: int
    begin_s: float
    end_s: float
    is_long: bool
    """Whether it lasted for half of its time at least, so that it met those of the others."""

    @property
    def length_s(self) -> float:
        """How long it was."""
        return self.end_s - self.begin_s


@dataclass(frozen=True)
class Done:
    """What a client did in its windows."""

    write: Window
    take: Window
    taken_in_all: int
    """Also after the window: as many as it has put in all."""

    @property
    def is_long(self) -> bool:
        """Whether both windows are."""
        return self.write.is_long and self.take.is_long

    @property
    def operations_per_s(self) -> float:
        """How many it did in a second of its windows."""
        both = (self.write, self.take)
        return sum(w.done for w in both) / sum(w.length_s for w in both)

    @property
    def response_s(self) -> float:
        """Of a thousand objects, written and taken."""
        return RESPONSE_OBJECTS * sum(w.length_s / w.done for w in (self.write, self.take))


def throughput(done: Sequence[Done]) -> float:
    """Operations a second of all clients together."""
    if all(each.is_long for each in done):
        return sum(each.operations_per_s for each in done)
    phases = _phases(done)
    return sum(_count(phase) for phase in phases) / sum(_span_s(phase) for phase in phases)


def response_s(done: Sequence[Done]) -> list[float]:
    """The time of a thousand objects of each client, written and taken.

    Where a window was short, it follows from the throughput: that many clients are in the system.
    """
    if all(each.is_long for each in done):
        return [each.response_s for each in done]
    each_s = sum(_span_s(phase) / _count(phase) for phase in _phases(done))
    return [RESPONSE_OBJECTS * len(done) * each_s]


def _phases(done: Sequence[Done]) -> tuple[list[Window], list[Window]]:
    return [each.write for each in done], [each.take for each in done]


def _count(phase: Sequence[Window]) -> int:
    return sum(window.done for window in phase)


def _span_s(phase: Sequence[Window]) -> float:
    """From the first begin to the last end."""
    return max(window.end_s for window in phase) - min(window.begin_s for window in phase)


def check(plan: Plan, done: Sequence[Done], left: int) -> None:
    """See that each client has taken as many as it put, and that what aged the space is left.

    Raises:
        WrongResultError: tuples were lost, or came twice.
    """
    check_left(plan, left)
    for number, each in enumerate(done):
        written = each.write.done
        if each.taken_in_all != 2 * written:
            message = f"client {number} put {2 * written}, and took {each.taken_in_all}"
            raise WrongResultError(message)


def client(bench: Bench, backend: Backend, part: WindowPart) -> Done:
    """Write and take in windows, each together with all others."""
    space = backend.open(SPACE)
    entry = ENTRIES[part.kind]
    fields, template = fields_of(backend, entry, bench.number), template_of(backend, entry)
    taken = Taken(LOOKED_AT)

    def put(count: int) -> None:
        write(space, fields, count)

    def take(count: int) -> None:
        fetch(space, template, count, taken.keep)

    bench.start.wait()
    warm = until(part.warm_s, part.objects_max, put, part.batch).done
    more = max(0, part.warm_objects - warm)
    put(more)
    fetch(space, template, warm + more)
    if part.until_steady:
        warm_in_cycles(bench, space, fields, template)
    bench.start.wait()
    if part.aged:
        bench.start.wait()
    bench.start.wait()
    write_window = until(part.length_s, part.objects_max, put, part.batch)
    written = write_window.done
    bench.start.wait()
    put(written)
    bench.start.wait()
    asked = until(part.length_s, 2 * written, take, part.batch)
    take_window = replace(asked, done=taken.count)
    bench.start.wait()
    take(2 * written - asked.done)
    space.close()
    check_whole(backend, entry, taken.last)
    return Done(write_window, take_window, taken.count)


def until(length_s: float, count_max: int, do: Callable[[int], None], batch: int = BATCH) -> Window:
    """Do something, a batch at a time, until a time is over or it was done so often."""
    done = 0
    begin = now = perf_counter()
    while now - begin < length_s and done < count_max:
        count = min(batch, count_max - done)
        do(count)
        done += count
        now = perf_counter()
    return Window(done, begin, now, is_long=now - begin >= LONG_SHARE * length_s)
