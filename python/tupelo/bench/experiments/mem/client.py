"""What the one client of `bench mem` does, and what is checked of it."""

from __future__ import annotations

import random
from itertools import islice
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo.bench.experiments.mem.entries import KEYED
from tupelo.bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tupelo.bench.backends.base import Backend
    from tupelo.bench.experiments.mem.entries import EntryPlan, KeyPlan
    from tupelo.bench.harness.runner import Stage
    from tupelo.bench.harness.workers import Bench

SPACE = "mem"
BATCH = 100  # puts, then takes, of a cycle
FILL_BATCH = 1_000  # tuples at once: where `put_all` is atomic it has a limit
MEMORY_FROM = 5_000  # tuples: the memory of fewer is less than what servers take and give back


def unkeyed(stage: Stage, plan: EntryPlan) -> None:
    """All tuples alike, any of them taken."""
    note(stage, stage.run((client, (stage.peer, plan, stage.seed))))


def keyed(stage: Stage, plan: KeyPlan) -> None:
    """Every tuple has a key of its own, and is taken by it."""
    note(stage, stage.run((key_client, (stage.peer, plan, stage.seed))))


def note(stage: Stage, outcome: Any) -> None:
    """Record what the one client measured."""
    ((memory, bridge_s),), (profiler,) = outcome
    for metric in ("put", "take"):
        stage.note(metric, "s", profiler.tracks[metric].samples_s())
    if memory is not None:
        stage.note("memory per tuple", "bytes", [memory])
    if bridge_s is not None:
        stage.note("bridge", "s", [bridge_s])


Costs = tuple[float | None, float | None]
"""Bytes of memory per tuple of the fill, and seconds per tuple of the way into another language."""


def client(bench: Bench, backend: Backend, plan: EntryPlan, seed: int) -> Costs:
    """Fill the space, then put and take."""
    entry, fill = plan.entry, plan.fill
    space = backend.open(SPACE)
    fields, template = entry.fields(backend, seed), entry.template(backend)
    memory = filled(backend, space, entry.many(backend, seed, fill), fill)
    put, take = space.put, space.take
    for cycle in range(-plan.warm_up, plan.cycles):
        begin = perf_counter_ns()
        for _ in range(BATCH):
            put(*fields)
        between = perf_counter_ns()
        taken = [take(*template) for _ in range(BATCH)]
        end = perf_counter_ns()
        if cycle >= 0:  # those before are to warm up
            bench.profiler.add("put", between - begin, BATCH)
            bench.profiler.add("take", end - between, BATCH)
        if not all(same(fields, got) for got in taken):
            message = f"put {fields!r:.100}, but took {taken!r:.300}"
            raise WrongResultError(message)
    check_count(space, template, fill)
    space.close()
    return memory, backend.bridge_s(fields)


def key_client(bench: Bench, backend: Backend, plan: KeyPlan, seed: int) -> Costs:
    """Fill the space with keys, then put and take by others."""
    field, fill = plan.field, plan.fill
    space = backend.open(SPACE)
    tag = KEYED[field].tag
    choice = random.Random(seed)

    def fields(key: Any) -> tuple[Any, ...]:
        return (key, tag, 7) if field == "first" else (tag, 7, key)

    template = (int, tag, int) if field == "first" else (tag, int, int)
    keys = list(range(fill))
    choice.shuffle(keys)
    memory = filled(backend, space, map(fields, keys), fill)
    put, take = space.put, space.take
    for cycle in range(-plan.warm_up, plan.cycles):
        new = [fill + (cycle + plan.warm_up) * BATCH + number for number in range(BATCH)]
        tuples = [fields(key) for key in new]
        choice.shuffle(new)
        templates = [(key, tag, int) if field == "first" else (tag, int, key) for key in new]
        begin = perf_counter_ns()
        for each in tuples:
            put(*each)
        between = perf_counter_ns()
        taken = [take(*each) for each in templates]
        end = perf_counter_ns()
        if cycle >= 0:
            bench.profiler.add("put", between - begin, BATCH)
            bench.profiler.add("take", end - between, BATCH)
        if taken != [fields(key) for key in new]:
            message = f"asked for the keys {new}, but took {taken!r:.300}"
            raise WrongResultError(message)
    check_count(space, template, fill)
    space.close()
    return memory, None


def filled(backend: Backend, space: Any, tuples: Iterable[Any], count: int) -> float | None:
    """Put the fill; the bytes of memory per tuple of it, if there are enough to tell."""
    tells = count >= MEMORY_FROM
    before = backend.memory_bytes() if tells else None
    rest = iter(tuples)
    while batch := list(islice(rest, FILL_BATCH)):
        space.put_all(batch)
    after = backend.memory_bytes() if tells else None
    return None if before is None or after is None else (after - before) / count


def check_count(space: Any, template: tuple[Any, ...], expected: int) -> None:
    """See that the fill is still there, and nothing else."""
    found = space.count(*template)
    if found != expected:
        message = f"{expected} tuples should be left, there are {found}"
        raise WrongResultError(message)


def same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two tuples are equal, arrays element by element."""
    if len(one) != len(other) or one[0] != other[0]:
        return False
    return all(
        bytes(memoryview(a)) == bytes(memoryview(b)) if hasattr(a, "dtype") else a == b
        for a, b in zip(one[1:], other[1:], strict=True)
    )
