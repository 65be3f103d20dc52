"""The memory that a tuple takes, of `bench mem`: in a server that was started for nothing else.

A system reports the memory of its process, or of its heap. In a process that has held the tuples of
earlier cells, the next tuples fit into the memory that those left. They would cost nothing, or
less. So the system is started anew for each figure. Its first tuples, with which it sets itself up,
do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.batches import in_batches
from tupelo_bench.harness.workers import WrongResultError
from tupelo_bench.runner import Job, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tupelo_bench.backends.base import Backend, Fields, Peer, Schema
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Options, Stage

METRIC = "memory per tuple"
ASKED_FIRST = "tuples asked for by key first"
SPACE = "memory"
FIRST = 1_000  # tuples that come before those that count
BATCH = 1_000  # tuples at once: where `put_all` is atomic it has a limit
# Enough that they are megabytes: a process takes and gives back some ten KiB for other reasons.
COUNT = 20_000
COUNT_LARGE = 5_000
LARGE_BYTES = 2_048
TUPLE_BYTES = 200  # that a system may add to the payload, when it says how much room it needs
FEW = 100  # tuples at once here: of the last batch a server may still hold the message
# They differ by a hundredth, and each starts a server: more would cost the slow peers the figure.
REPEATS = 1
QUICK = ("Integer",)


@dataclass(frozen=True)
class Kind:
    """A kind of tuples, and how to make some."""

    name: str
    payload_bytes: int
    schema: Schema
    many: Callable[[Backend, int, int], Iterable[Fields]]
    """So many of them, by backend, seed and number."""
    template: Callable[[Backend], Fields]
    """What matches all of them."""
    asked: Callable[[Fields], Fields] | None = None
    """What asks for one by its key; None if they have none."""

    @property
    def count(self) -> int:
        """How many are counted on."""
        return COUNT_LARGE if self.payload_bytes >= LARGE_BYTES else COUNT


def jobs(peer: type[Peer], kinds: Sequence[Kind], options: Options) -> list[Job]:
    """A job per kind."""
    return [
        Job(
            {"entry": kind.name, "fill": kind.count, "placement": "apart"},
            partial(once, kind=kind),
            f"memory of {kind.name}",
            kind.schema,
            lack=peer.no_memory,
            repeats=REPEATS,
        )
        for kind in kinds
        if not options.quick or kind.name in QUICK
    ]


def once(stage: Stage, kind: Kind) -> None:
    """Start the system anew, fill it, and ask for its memory before and after."""
    size_bytes = (kind.count + FIRST) * (kind.payload_bytes + TUPLE_BYTES)
    with started(type(stage.peer), stage.placement) as peer:
        fresh: Any = peer
        fresh.create(kind.schema, (SPACE,), size_bytes)
        try:
            (grown_bytes,), _ = stage.run((fill, (fresh, kind, stage.seed)))
        finally:
            fresh.drop()
    if grown_bytes <= 0:
        message = f"{kind.count} tuples took {grown_bytes} bytes of memory: that can not be"
        raise WrongResultError(message)
    stage.note(METRIC, "bytes", [grown_bytes / kind.count])
    if kind.asked:
        # Records from before that was done have a figure without an index of ours.
        stage.note(ASKED_FIRST, "", [FIRST])


def fill(bench: Bench, backend: Backend, kind: Kind, seed: int) -> int:
    """Put the tuples; by how many bytes that made the system larger."""
    bench.start.wait()
    space = backend.open(SPACE)
    tuples = iter(kind.many(backend, seed, FIRST + kind.count))
    first = list(islice(tuples, FIRST))
    put_batches(space, first, FEW)
    if kind.asked:
        # An index is part of what a tuple with a key takes, also where it is made by who asks.
        for fields in first:
            space.try_read(*kind.asked(fields))
    before_bytes = backend.memory_bytes()
    put_batches(space, tuples, FEW)
    after_bytes = backend.memory_bytes()
    check_count(space, kind.template(backend), FIRST + kind.count)
    space.close()
    if before_bytes is None or after_bytes is None:
        message = f"{backend.name} does not tell its memory, and not why (no_memory)"
        raise WrongResultError(message)
    return after_bytes - before_bytes


def put_batches(space: Any, tuples: Iterable[Fields], count: int = BATCH) -> None:
    """Put tuples, the fastest way there is, so many at once."""
    for batch in in_batches(tuples, count):
        space.put_all(batch)


def check_count(space: Any, template: tuple[Any, ...], expected: int) -> None:
    """See that the fill is still there, and nothing else."""
    found = space.count(*template)
    if found != expected:
        message = f"{expected} tuples should be left, there are {found}"
        raise WrongResultError(message)
