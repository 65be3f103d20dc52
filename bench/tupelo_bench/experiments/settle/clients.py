"""One repeat of a cell of `bench settle`: clients that put and take, and what is checked of it."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.settle.aging import age, clean
from tupelo_bench.experiments.settle.metrics import (
    AGING,
    ALONE,
    LASTED,
    RESPONSE,
    SHARE,
    SPACE,
    THROUGHPUT,
)
from tupelo_bench.experiments.settle.phases import fetch, write
from tupelo_bench.experiments.settle.plan import OBJECTS
from tupelo_bench.experiments.workload import ENTRIES, fields_of, is_whole, seed_of, template_of
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tupelo_bench.backends.base import Backend, Fields
    from tupelo_bench.experiments.settle.plan import Part, Plan
    from tupelo_bench.experiments.workload import Entry
    from tupelo_bench.harness.profiler import Profiler
    from tupelo_bench.harness.runner import Stage
    from tupelo_bench.harness.workers import Bench

LOOKED_AT = 1_000  # entries that are checked of those that a client took: the last ones


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: warm up, age, run all clients, clean."""
    if plan.load is not None:
        plan.load.find(stage)
        stage.note(ALONE, "s", [plan.load.phase_s])
    parts = plan.parts(stage)
    rounds, objects = parts[0].rounds, parts[0].objects
    age_s, outcomes, profilers = run_clients(stage, plan, parts)
    ((clean_s, left),), _ = stage.run((clean, (stage.peer, plan.entries)))
    check(plan, objects * rounds, [taken for *_, taken in outcomes], left)
    run_s = max(end for _, end, _ in outcomes) - min(begin for begin, *_ in outcomes)
    stage.note(THROUGHPUT, "operations/s", [2 * objects * rounds * plan.clients / run_s])
    stage.note(RESPONSE, "s", [busy_s(profiler) / rounds for profiler in profilers])
    stage.note("objects", "", [objects])
    stage.note("rounds", "", [rounds])
    stage.note(LASTED, "s", [min(busy_s(profiler) for profiler in profilers) / 2])
    if plan.workload is not None:
        stage.note(AGING, "s", [age_s])
        stage.note("cleaning", "s", [clean_s])
        # Of a run of the paper's objects: how many fill a phase is another matter for each system.
        papers_run_s = run_s * OBJECTS / (objects * rounds)
        share = (age_s + clean_s) / (age_s + clean_s + papers_run_s)
        stage.note(SHARE, "", [share])


def run_clients(
    stage: Stage, plan: Plan, parts: Sequence[Part]
) -> tuple[float, list[Outcome], list[Profiler]]:
    """How long it took to age the space, if that is planned, and what each client did."""
    targets: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (client, (stage.peer, part)) for part in parts
    ]
    if plan.workload is not None:
        targets.append((age, (stage.peer, plan.workload, parts[0].warm_up > 0)))
    results, profilers = stage.run(*targets)
    age_s = results.pop() if plan.workload is not None else 0.0
    return age_s, results, profilers[: len(parts)]


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
    marks: Counter[int] = Counter()
    for number in range(plan.clients):
        marks[0 if plan.unmarked else number] += objects
    if together.total() != marks.total() or (plan.workload is None and together != marks):
        message = f"{marks.total()} entries were put, by client {marks}, but {together} were taken"
        raise WrongResultError(message)


def check_whole(backend: Backend, entry: Entry, taken: Iterable[Fields]) -> None:
    """See that entries are such as were put: the same in all of their bytes."""
    wrong = next((each for each in taken if not is_whole(backend, entry, each)), None)
    if wrong is not None:
        message = f"{wrong!r:.300} was taken, but never put"
        raise WrongResultError(message)


class Taken:
    """What a client has taken: how many entries, and the last of them, or all."""

    def __init__(self, kept: int | None) -> None:
        self.count = 0
        self.last: deque[Fields] = deque(maxlen=kept)

    def keep(self, some: Sequence[Fields]) -> None:
        """Count these, too. Their seeds would be in the time of the phase: those come later."""
        self.count += len(some)
        self.last.extend(some)


Outcome = tuple[float, float, "Counter[int]"]
"""When a client began and ended, and how many entries of each client it has taken: all as of the
first where nothing tells them apart, or only the last ones were looked at (`Plan.unmarked`)."""


def client(bench: Bench, backend: Backend, part: Part) -> Outcome:
    """Write, pause, take; as often as there are rounds."""
    space = backend.open(SPACE)
    entry, objects = ENTRIES[part.kind], part.objects
    fields = fields_of(backend, entry, bench.number)
    template = template_of(backend, entry)
    taken = Taken(LOOKED_AT if part.sampled else None)
    bench.start.wait()
    if part.warm_up:
        write(space, fields, part.warm_up)
        fetch(space, template, part.warm_up)
        bench.start.wait()
    if part.aged:
        bench.start.wait()
    time.sleep(part.start_s)
    begin = time.perf_counter()
    for _ in range(part.rounds):
        with bench.profiler.time("phase", objects):
            write(space, fields, objects)
        time.sleep(part.pause_s)
        with bench.profiler.time("phase", objects):
            fetch(space, template, objects, taken.keep)
    end = time.perf_counter()
    space.close()
    check_whole(backend, entry, taken.last)
    if part.sampled:
        return begin, end, Counter({0: taken.count})
    return begin, end, Counter(seed_of(backend, entry, each) for each in taken.last)
