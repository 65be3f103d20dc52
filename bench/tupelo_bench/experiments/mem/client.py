"""What the one client of `bench mem` does, and what is checked of it."""

from __future__ import annotations

import random
from itertools import count
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.batches import in_batches, put_each, take_each
from tupelo_bench.experiments.mem import memory
from tupelo_bench.experiments.mem.entries import by_key, key_template, key_tuple, key_tuples
from tupelo_bench.experiments.mem.memory import check_count
from tupelo_bench.experiments.warming import Warming, note_warming
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.backends.base import Backend
    from tupelo_bench.experiments.mem.entries import Entry, EntryPlan, KeyPlan
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

SPACE = "mem"
BRIDGE = "bridge"  # the way into another language and back, without an operation
BATCH = 100  # puts, then takes, of a cycle
RESULTS_BYTES = 64 * 1024
"""What is kept of the results of takes, to be looked at when the clock stands still.

Of a megabyte and more, which a program that works through its tuples does not keep, the C library
would give the memory back to the system each time, and a take would be timed with the page faults
of the next.
"""


def unkeyed(stage: Stage, plan: EntryPlan) -> None:
    """All tuples alike, any of them taken."""
    note(stage, stage.run((client, (stage.peer, plan, stage.seed))))


def keyed(stage: Stage, plan: KeyPlan) -> None:
    """Every tuple has a key of its own, and is taken by it."""
    note(stage, stage.run((key_client, (stage.peer, plan, stage.seed))))


def note(stage: Stage, outcome: Any) -> None:
    """Record what the one client measured."""
    (bridge_s,), (profiler,) = outcome
    for metric in ("put", "take"):
        stage.note(metric, "s", profiler.tracks[metric].samples_s())
    if bridge_s is not None:
        stage.note(BRIDGE, "s", [bridge_s])
    note_warming(stage, [profiler])


def client(bench: Bench, backend: Backend, plan: EntryPlan, seed: int) -> float | None:
    """Fill the space, then put and take; what the way into another language costs per tuple."""
    entry, fill = plan.entry, plan.fill
    space = backend.open(SPACE)
    fields, template = entry.fields(backend, seed), entry.template(backend)
    memory.put_batches(space, entry.many(backend, seed, fill))
    warming, counted = Warming(plan.warm_up, until_steady=plan.until_steady), 0
    while counted < plan.cycles:
        put_ns = put_each(space, [fields] * BATCH)
        take_ns = 0
        for templates in in_batches([template] * BATCH, kept(entry)):
            some_ns, taken = take_each(space, templates)
            take_ns += some_ns
            if not all(same(fields, got) for got in taken):
                message = f"put {fields!r:.100}, but took {taken!r:.300}"
                raise WrongResultError(message)
            del taken
        counted += timed(bench, warming, put_ns, take_ns)
    warming.tell(bench.profiler)
    check_count(space, template, fill)
    abandon(space)
    return backend.bridge_s(fields)


def abandon(space: Any) -> None:
    """Let go of a space, and of the fill: who sends it when it ends would send it to nobody."""
    getattr(space, "abandon", space.close)()


def kept(entry: Entry) -> int:
    """How many results of takes there are at a time."""
    return max(1, RESULTS_BYTES // max(1, entry.payload_bytes))


def key_client(bench: Bench, backend: Backend, plan: KeyPlan, seed: int) -> None:
    """Fill the space with keys, then put others, and take by any of all that are there."""
    field, fill = plan.field, plan.fill
    space = backend.open(SPACE)
    memory.put_batches(space, key_tuples(backend, seed, fill, field=field))
    warming, counted = Warming(plan.warm_up, until_steady=plan.until_steady), 0
    for new, wanted in key_cycles(fill, seed):
        if counted == plan.cycles:
            break
        tuples = [key_tuple(field, key) for key in new]
        asked = [key_tuple(field, key) for key in wanted]
        templates = [by_key(fields, field=field) for fields in asked]
        put_ns = put_each(space, tuples)
        take_ns, taken = take_each(space, templates)
        counted += timed(bench, warming, put_ns, take_ns)
        if taken != asked:
            message = f"asked for the keys {wanted}, but took {taken!r:.300}"
            raise WrongResultError(message)
    warming.tell(bench.profiler)
    check_count(space, key_template(backend, field=field), fill)
    abandon(space)


def timed(bench: Bench, warming: Warming, put_ns: int, take_ns: int) -> bool:
    """Note the times of a cycle, if it counts; whether it does."""
    if not warming.is_over():
        warming.add(put_ns + take_ns)
        return False
    bench.profiler.add("put", put_ns, BATCH)
    bench.profiler.add("take", take_ns, BATCH)
    return True


def key_cycles(fill: int, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    """For each cycle new keys, and as many to take of all that are there: of so many, and of these.

    So a take goes where nobody has been of late, as a put does; in an empty space both are close.
    """
    choice = random.Random(seed)
    there = list(range(fill))
    for first in count(fill, BATCH):
        new = list(range(first, first + BATCH))
        there += new
        yield new, [_removed(there, choice.randrange(len(there))) for _ in range(BATCH)]


def _removed(keys: list[int], place: int) -> int:
    """Take the key at a place out; the last one comes there."""
    key = keys[place]
    keys[place] = keys[-1]
    keys.pop()
    return key


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two tuples are equal, arrays element by element."""
    if len(one) != len(other) or one[0] != other[0]:
        return False
    return all(
        bytes(memoryview(a)) == bytes(memoryview(b)) if hasattr(a, "dtype") else a == b
        for a, b in zip(one[1:], other[1:], strict=True)
    )
