"""`bench mem`: what a put and a take cost, by the size of the entry and by how full the space is.

Grapentin, Plauth, Polze: MemSpaces: Evaluating the Tuple Space Paradigm in the Context of
Memory-Centric Architectures, CANDAR 2017. A cycle is 100 puts in a row, then 100 takes; a sample is
the time of one half, divided by 100. The 100 cycles of the paper are spread over the repeats, each
with a process and a space of its own, since cycles of one process are alike. Extended by larger
fills, by takes that name a key in the first or in the last field, by a server on the client's
processor, and by the memory that a tuple takes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Fields, Schema, Shape
from tupelo.bench.backends.batches import put_each, take_each
from tupelo.bench.experiments import memory
from tupelo.bench.experiments.base import Experiment
from tupelo.bench.harness.runner import Job
from tupelo.bench.harness.workers import WrongResultError
from tupelo.bench.report.figure import Figure, bars, lines
from tupelo.bench.report.units import whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo.bench.backends.base import Peer
    from tupelo.bench.harness.record import Run
    from tupelo.bench.harness.runner import Options, Stage
    from tupelo.bench.harness.workers import Bench

BATCH = 100  # puts, then takes, of a cycle
CYCLES = 100  # of all repeats
REPEATS_LARGE = 3  # where the fill takes longer than the cycles
LARGE = 100_000
TUPLE_BYTES = 150  # that a system may add to the payload, when it says how much room it needs
SPACE = "mem"


@dataclass(frozen=True)
class Entry:
    """A type of entry: so many elements in one field."""

    name: str
    elements: int
    dtype: str | None
    """Of an array; None for a plain field, or for none."""

    @property
    def payload_bytes(self) -> int:
        """What is stored beside the name."""
        import numpy as np

        return self.elements * (np.dtype(self.dtype).itemsize if self.dtype else 4)

    def fields(self, backend: Backend, seed: int) -> tuple[Any, ...]:
        """A tuple of this type."""
        if self.dtype is None:
            return (self.name, *([seed % 1_000] * self.elements))
        import numpy as np

        values = np.random.default_rng(seed).integers(0, 100, self.elements)
        return (self.name, backend.array(values.astype(self.dtype)))

    def many(self, backend: Backend, seed: int, count: int) -> Iterator[tuple[Any, ...]]:
        """So many of them, each made of objects of its own.

        Of the same object again and again a pickle holds one copy, and so would a server.
        """
        if self.dtype is None:
            for _ in range(count):
                yield self.fields(backend, seed)
            return
        name, payload = self.fields(backend, seed)
        for _ in range(count):
            yield name, payload.copy() if hasattr(payload, "copy") else bytes(bytearray(payload))

    def template(self, backend: Backend) -> tuple[Any, ...]:
        """What matches all of this type."""
        if self.dtype is None:
            return (self.name, *([int] * self.elements))
        return (self.name, backend.array_kind())


ENTRIES = (
    Entry("Null", 0, None),
    Entry("Integer", 1, None),
    Entry("Char 32", 32, "u1"),
    Entry("Double 32", 32, "f8"),
    Entry("Double 256", 256, "f8"),
    Entry("Double 2048", 2_048, "f8"),
)
FILLS = (0, 10_000)
FILL_RANKS = {0: 0, 10_000: 1}
FURTHER = {"Integer": (100_000, 1_000_000), "Double 32": (100_000, 1_000_000)}
KEYED_FILLS = (0, 10_000, 1_000_000)
KEYED = {
    "first": Shape("keyed-first", 3, (0,), tag_at=1, awaited=False),
    "last": Shape("keyed-last", 3, (2,), awaited=False),
}


def entry_schema(entry: Entry) -> Schema:
    """The one shape of an entry."""
    return Schema((Shape(entry.name, 1 + min(entry.elements, 1), awaited=False),))


@dataclass(frozen=True)
class Plan:
    """What a client does."""

    fill: int
    cycles: int = 0
    warm_up: int = 0
    """Cycles that come before those that count."""
    entry: Entry = ENTRIES[0]
    field: str = ""
    """Which field has the key: first or last."""


class Mem(Experiment):
    """Puts and takes of one client."""

    name = "mem"
    title = "Entries of six types, by a single client"
    source = "Grapentin, Plauth, Polze: MemSpaces, CANDAR 2017"
    question = "What do a put and a take cost, and does a fuller space slow them down?"
    where = "apart"
    main = ("put", "take", "bridge", memory.METRIC)
    share = 0.2

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        return [peer for peer in super().peers(all_peers) if peer.name != "sqlite-durable"]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        quick = options.quick
        found = []
        for entry in ENTRIES:
            for fill in (0, 500) if quick else (*FILLS, *FURTHER.get(entry.name, ())):
                schema = entry_schema(entry)
                parameters = {"entry": entry.name, "fill": fill, "placement": "apart"}
                found.append(self._job(parameters, unkeyed, Plan(fill, entry=entry), schema))
        for field, shape in KEYED.items():
            for fill in (0, 500) if quick else KEYED_FILLS:
                parameters = {"entry": f"key {field}", "fill": fill, "placement": "apart"}
                plan = Plan(fill, field=field)
                found.append(self._job(parameters, keyed, plan, Schema((shape,))))
        if peer.has_server:
            beside = [job for job in found if job.parameters["fill"] == 0]
            found += [
                replace(
                    job, parameters={**job.parameters, "placement": "together"}, where="together"
                )
                for job in beside
            ]  # fmt: skip
        found = [self._with_cycles(job, peer, options) for job in found]
        return found + memory.jobs(peer, kinds(), options)

    def _job(self, parameters: dict[str, Any], once: Any, plan: Plan, schema: Schema) -> Job:
        fill = plan.fill
        return Job(
            parameters,
            partial(once, plan=plan),
            str(parameters["entry"]),
            schema,
            (SPACE,),
            (fill + 2 * BATCH) * (plan.entry.payload_bytes + TUPLE_BYTES),
            repeats=REPEATS_LARGE if fill >= LARGE else None,
            weight=1 + fill / 50_000,
            # Every entry in an empty space, then the paper's fill, then what goes beyond it.
            rank=FILL_RANKS.get(fill, 2 if plan.entry.name in ("Null", "Integer") else 3),
        )

    def _with_cycles(self, job: Job, peer: type[Peer], options: Options) -> Job:
        repeats = job.repeats or options.repeats
        cycles = 5 if options.quick else -(-CYCLES // repeats)
        warm_up = 1 if options.quick else max(1, peer.warm_up // BATCH)
        once: Any = job.once
        plan = replace(once.keywords["plan"], cycles=cycles, warm_up=warm_up)
        return replace(job, once=partial(once.func, plan=plan))

    def figures(self, run: Run) -> list[Figure]:
        found = []
        names = [entry.name for entry in ENTRIES]
        fills = sorted({measure.parameters["fill"] for measure in run.find(self.name, "put")})
        for metric in ("put", "take"):
            for fill in fills[:2]:
                how_full = f"{whole(fill)} tuples there" if fill else "empty space"
                title = f"Time of a {metric}, {how_full}"
                fixed: dict[str, Any] = {"fill": fill, "placement": "apart"}
                found.append(bars(run, "mem", metric, "entry", names, fixed=fixed, title=title))
            title = f"Time of a {metric}, empty space, the server on the client's processor"
            fixed = {"fill": 0, "placement": "together"}
            found.append(bars(run, "mem", metric, "entry", names, fixed=fixed, title=title))
            title = f"Time of a {metric} of an Integer, by fill"
            fixed = {"entry": "Integer", "placement": "apart"}
            found.append(lines(run, "mem", metric, "fill", fixed=fixed, title=title, log_x=True))
        if len(fills) > 1:
            keys = [f"key {field}" for field in KEYED]
            title = f"Take by a key, out of {whole(fills[-1])} tuples"
            fixed = {"fill": fills[-1], "placement": "apart"}
            found.append(bars(run, "mem", "take", "entry", keys, fixed=fixed, title=title))
        title = "Memory per tuple"
        fixed = {"placement": "apart"}
        found.append(bars(run, "mem", memory.METRIC, "entry", names, fixed=fixed, title=title))
        return found


def unkeyed(stage: Stage, plan: Plan) -> None:
    """All tuples alike, any of them taken."""
    note(stage, stage.run((client, (stage.peer, plan, stage.seed))))


def keyed(stage: Stage, plan: Plan) -> None:
    """Every tuple has a key of its own, and is taken by it."""
    note(stage, stage.run((key_client, (stage.peer, plan, stage.seed))))


def note(stage: Stage, outcome: Any) -> None:
    """Record what the one client measured."""
    (bridge_s,), (profiler,) = outcome
    for metric in ("put", "take"):
        stage.note(metric, "s", profiler.tracks[metric].samples_s())
    if bridge_s is not None:
        stage.note("bridge", "s", [bridge_s])


def client(bench: Bench, backend: Backend, plan: Plan, seed: int) -> float | None:
    """Fill the space, then put and take; what the way into another language costs per tuple."""
    entry, fill = plan.entry, plan.fill
    space = backend.open(SPACE)
    fields, template = entry.fields(backend, seed), entry.template(backend)
    memory.put_batches(space, entry.many(backend, seed, fill))
    for cycle in range(-plan.warm_up, plan.cycles):
        put_ns = put_each(space, [fields] * BATCH)
        take_ns, taken = take_each(space, [template] * BATCH)
        if cycle >= 0:  # those before are to warm up
            bench.profiler.add("put", put_ns, BATCH)
            bench.profiler.add("take", take_ns, BATCH)
        if not all(same(fields, got) for got in taken):
            message = f"put {fields!r:.100}, but took {taken!r:.300}"
            raise WrongResultError(message)
    check_count(space, template, fill)
    space.close()
    return backend.bridge_s(fields)


def key_client(bench: Bench, backend: Backend, plan: Plan, seed: int) -> None:
    """Fill the space with keys, then put and take by others."""
    field, fill = plan.field, plan.fill
    space = backend.open(SPACE)
    tag = KEYED[field].tag
    choice = random.Random(seed)

    template = (int, tag, int) if field == "first" else (tag, int, int)
    memory.put_batches(space, key_tuples(backend, seed, fill, field=field))
    for cycle in range(-plan.warm_up, plan.cycles):
        new = [fill + (cycle + plan.warm_up) * BATCH + number for number in range(BATCH)]
        tuples = [key_tuple(field, key) for key in new]
        choice.shuffle(new)
        templates = [(key, tag, int) if field == "first" else (tag, int, key) for key in new]
        put_ns = put_each(space, tuples)
        take_ns, taken = take_each(space, templates)
        if cycle >= 0:
            bench.profiler.add("put", put_ns, BATCH)
            bench.profiler.add("take", take_ns, BATCH)
        if taken != [key_tuple(field, key) for key in new]:
            message = f"asked for the keys {new}, but took {taken!r:.300}"
            raise WrongResultError(message)
    check_count(space, template, fill)
    space.close()


def key_tuple(field: str, key: int) -> tuple[Any, ...]:
    """A tuple with that key."""
    tag = KEYED[field].tag
    return (key, tag, 7) if field == "first" else (tag, 7, key)


def key_tuples(backend: Backend, seed: int, count: int, *, field: str) -> Iterator[Fields]:
    """So many of them, each with a key of its own, in no order."""
    del backend
    keys = list(range(count))
    random.Random(seed).shuffle(keys)
    return (key_tuple(field, key) for key in keys)


def kinds() -> list[memory.Kind]:
    """All tuples, as the measurement of their memory wants them."""
    return [
        *(memory.Kind(e.name, e.payload_bytes, entry_schema(e), e.many) for e in ENTRIES),
        *(
            memory.Kind(f"key {field}", 16, Schema((shape,)), partial(key_tuples, field=field))
            for field, shape in KEYED.items()
        ),
    ]


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
