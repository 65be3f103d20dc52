"""One repeat of a cell of `bench settle`: clients that put and take, and what is checked of it."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.settle.aging import age, clean
from tupelo_bench.experiments.settle.metrics import (
    AGING,
    CLEANING,
    RESPONSE,
    SHARE,
    SPACE,
    THROUGHPUT,
)
from tupelo_bench.experiments.settle.phases import (
    Taken,
    check_whole,
    fetch,
    warm_in_cycles,
    write,
)
from tupelo_bench.experiments.warming import note_warming
from tupelo_bench.experiments.workload import ENTRIES, fields_of, seed_of, template_of
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tupelo_bench.backends.base import Backend
    from tupelo_bench.experiments.settle.plan import Part, Plan
    from tupelo_bench.experiments.workload import Entry, Workload
    from tupelo_bench.harness.profiler import Profiler
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: warm up, age, run all clients with the paper's delays, clean."""
    parts = plan.parts(stage)
    objects = parts[0].objects
    targets: list[Target] = [(client, (stage.peer, part)) for part in parts]
    age_s, outcomes, profilers = run_clients(stage, plan.workload, targets)
    clean_s, left = run_clean(stage, plan.entries)
    check(plan, objects, [taken for *_, taken in outcomes], left)
    run_s = max(end for _, end, _ in outcomes) - min(begin for begin, *_ in outcomes)
    stage.note(THROUGHPUT, "operations/s", [2 * objects * plan.clients / run_s])
    stage.note(RESPONSE, "s", [busy_s(profiler) for profiler in profilers])
    stage.note("objects", "", [objects])
    if plan.workload is not None:
        stage.note(AGING, "s", [age_s])
        stage.note(CLEANING, "s", [clean_s])
        stage.note(SHARE, "", [(age_s + clean_s) / (age_s + clean_s + run_s)])


def run_clients(
    stage: Stage, workload: Workload | None, clients: Sequence[Target], barriers: int = 0
) -> tuple[float, list[Any], list[Profiler]]:
    """How long it took to age the space, if that is planned, and what each client did.

    The clients meet at so many further barriers when the space is aged.
    """
    targets = list(clients)
    if workload is not None:
        targets.append((age, (stage.peer, workload, barriers)))
    results, profilers = stage.run(*targets)
    age_s = results.pop() if workload is not None else 0.0
    note_warming(stage, profilers)
    return age_s, results, profilers[: len(clients)]


def run_clean(stage: Stage, entries: Sequence[Entry]) -> tuple[float, int]:
    """Take all that is left; how long that took, and how much it was."""
    ((cleaned,), _) = stage.run((clean, (stage.peer, entries)))
    clean_s, left = cleaned
    return clean_s, left


def busy_s(profiler: Profiler) -> float:
    """How long a client was in its phases, of both kinds."""
    return profiler.tracks["phase"].total_s


def check_left(plan: Plan, left: int) -> None:
    """See that what aged the space is left, and nothing else."""
    expected = plan.workload.left() if plan.workload is not None else 0
    if left != expected:
        message = f"{expected} tuples should be left for cleaning, there are {left}"
        raise WrongResultError(message)


def check(plan: Plan, objects: int, taken: Sequence[Counter[int]], left: int) -> None:
    """See that what all have taken and what is left is what all have put.

    An aged space has tuples of the same kind, any of which may be taken: there only the number
    has to be right.
    """
    check_left(plan, left)
    together = sum(taken, Counter())
    marks: Counter[int] = Counter()
    for number in range(plan.clients):
        marks[0 if plan.kind == "Null" else number] += objects
    if together.total() != marks.total() or (plan.workload is None and together != marks):
        message = f"{marks.total()} entries were put, by client {marks}, but {together} were taken"
        raise WrongResultError(message)


Target = tuple["Callable[..., Any]", tuple[Any, ...]]
Outcome = tuple[float, float, "Counter[int]"]
"""When a client began and ended, and how many entries of each client it has taken: all as of the
first where nothing tells them apart."""


def client(bench: Bench, backend: Backend, part: Part) -> Outcome:
    """Write, pause, take."""
    space = backend.open(SPACE)
    entry, objects = ENTRIES[part.kind], part.objects
    fields = fields_of(backend, entry, bench.number)
    template = template_of(backend, entry)
    taken = Taken()
    bench.start.wait()
    write(space, fields, part.warm_up)
    fetch(space, template, part.warm_up)
    if part.until_steady:
        warm_in_cycles(bench, space, fields, template)
    bench.start.wait()
    if part.aged:
        bench.start.wait()
    time.sleep(part.start_s)
    begin = time.perf_counter()
    with bench.profiler.time("phase", objects):
        write(space, fields, objects)
    time.sleep(part.pause_s)
    with bench.profiler.time("phase", objects):
        fetch(space, template, objects, taken.keep)
    end = time.perf_counter()
    space.close()
    check_whole(backend, entry, taken.last)
    return begin, end, Counter(seed_of(backend, entry, each) for each in taken.last)
