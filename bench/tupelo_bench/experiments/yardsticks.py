"""The yardsticks of a run: what this machine needs for the least that there is to do.

A private dictionary, a copy of memory, and two processes that send one byte to and fro: through
pipes, and through shared memory. The latter shows how far the processors' caches are from each
other. And the limit of any program: a process on each processor only looks at the clock. Even that
process is interrupted now and then, by the system or by the host of a virtual machine. Machines
differ and drift, so every run has its own yardsticks, and measures them once more at its end: peers
are measured one after the other, for an hour and more.
"""

from __future__ import annotations

import mmap
import os
from functools import partial
from itertools import islice
from time import perf_counter_ns
from typing import TYPE_CHECKING

from tupelo_bench.backends.base import Peer
from tupelo_bench.experiments.base import Experiment
from tupelo_bench.experiments.mem.client import BATCH, key_cycles
from tupelo_bench.experiments.mem.entries import key_tuple, key_tuples
from tupelo_bench.harness.placement import PLACEMENTS, lacking
from tupelo_bench.runner import REPEATS_MIN, Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Options, Stage

CALLS = 1_000
SHORT_S = 600.0  # a run of that many seconds or less has no time for ten of each
COPY_BYTES = 16 << 10
FILL = 1_000_000  # keys, as in `mem`
DICT_PUT, DICT_TAKE = "dict insert by key", "dict pop by key"
LOOKS_S = 1.0  # of a repeat; a tenth if it is quick
PAUSE_NS = 20_000  # between two looks at the clock, which come in a tenth of a microsecond
LONGEST_PAUSE, PAUSED = "longest pause", "share of pauses"
THERE, BACK = 0, 128  # of the shared bytes: in lines of their own, also where lines come in pairs


class Machine(Peer):
    """The machine itself."""

    name = "machine"
    title = "this machine"
    how = "No system at all: what Python and the kernel need here."


class Yardsticks(Experiment):
    """What the least costs."""

    name = "yardsticks"
    title = "Yardsticks"
    source = ""
    question = "What does this machine need for the least that there is to do?"
    share = 0.02
    is_limited = False  # without them no figure of the run can be read
    at_end = False
    main = (
        *("dict insert + pop", DICT_PUT, DICT_TAKE, "memcpy 16 KiB", "ping-pong", "shared byte"),
        LONGEST_PAUSE,
    )

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        del all_peers
        return [Machine]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        del peer
        runs = 5 if options.quick else 10
        repeats = None if options.budget_s is None or options.budget_s > SHORT_S else REPEATS_MIN
        when = {"at": "the end"} if self.at_end else {}
        return [
            Job(when, lambda stage: private(stage, runs), repeats=repeats),
            *(
                Job(
                    {"fill": fill, **when},
                    partial(by_key, fill=fill, cycles=10 * runs),
                    repeats=REPEATS_MIN,
                )
                for fill in (0, 500 if options.quick else FILL)
            ),
            *(
                Job(
                    {"placement": where, **when},
                    lambda stage: ping_pong(stage, runs),
                    repeats=repeats,
                    where=where,
                    lack=lacking(where),
                )
                for where in PLACEMENTS
            ),
            *(
                Job(
                    {"placement": "apart", **when},
                    once,
                    repeats=repeats,
                    where="apart",
                    lack=lacking("apart"),
                )
                for once in (
                    partial(shared_byte, runs=runs),
                    partial(pauses, looks_s=LOOKS_S * (0.1 if options.quick else 1)),
                )
            ),
        ]


class YardsticksAtEnd(Yardsticks):
    """The same, when all else is done."""

    at_end = True


def private(stage: Stage, runs: int) -> None:
    """Time what one process does alone."""
    _, (profiler,) = stage.run((alone, (runs,)))
    for label, track in profiler.tracks.items():
        stage.note(label, "s", track.samples_s())


def alone(bench: Bench, runs: int) -> None:
    """A dictionary and a copy."""
    entries: dict[tuple[str, int], tuple[str, int, float]] = {}
    source = memoryview(bytes(COPY_BYTES))
    target = memoryview(bytearray(COPY_BYTES))
    for _ in range(runs):
        with bench.profiler.time("dict insert + pop", CALLS):
            for key in range(CALLS):
                entries["job", key] = ("job", key, 3.5)
                entries.pop(("job", key))
        with bench.profiler.time("memcpy 16 KiB", CALLS):
            for _ in range(CALLS):
                target[:] = source


def by_key(stage: Stage, fill: int, cycles: int) -> None:
    """Time what `mem` does with keys, done with a dictionary."""
    _, (profiler,) = stage.run((dictionary, (fill, cycles, stage.seed)))
    for label, track in profiler.tracks.items():
        stage.note(label, "s", track.samples_s())


def dictionary(bench: Bench, fill: int, cycles: int, seed: int) -> None:
    """Put new keys beside so many, and take any."""
    there = key_tuples(None, seed, fill, field="last")
    entries = {("key", fields[2]): fields for fields in there}
    for new, wanted in islice(key_cycles(fill, seed), cycles):
        tuples = [key_tuple("last", key) for key in new]
        with bench.profiler.time(DICT_PUT, BATCH):
            for fields in tuples:
                entries["key", fields[2]] = fields
        with bench.profiler.time(DICT_TAKE, BATCH):
            taken = [entries.pop(("key", key)) for key in wanted]
        del taken


def ping_pong(stage: Stage, runs: int) -> None:
    """Time a byte to another process and back."""
    there, back = os.pipe(), os.pipe()
    try:
        here = stage.placement
        names = [[f"/proc/{os.getpid()}/fd/{end}" for end in pipe] for pipe in (there, back)]
        _, (_, profiler) = stage.run_at(
            (here.server, echo, (names[0][0], names[1][1], runs)),
            (here.client, send, (names[0][1], names[1][0], runs)),
        )
    finally:
        for end in (*there, *back):
            os.close(end)
    stage.note("ping-pong", "s", profiler.tracks["ping-pong"].samples_s())


def echo(bench: Bench, source: str, target: str, runs: int) -> None:
    """Send back what comes."""
    with open(source, "rb", 0) as reader, open(target, "wb", 0) as writer:  # noqa: PTH123
        bench.start.wait()
        writer.writelines(reader.read(1) for _ in range(runs * CALLS))


def send(bench: Bench, target: str, source: str, runs: int) -> None:
    """Send a byte and wait for it."""
    with open(source, "rb", 0) as reader, open(target, "wb", 0) as writer:  # noqa: PTH123
        bench.start.wait()
        for _ in range(runs):
            begin = perf_counter_ns()
            for _ in range(CALLS):
                writer.write(b"x")
                reader.read(1)
            bench.profiler.add("ping-pong", perf_counter_ns() - begin, CALLS)


def shared_byte(stage: Stage, runs: int) -> None:
    """Time a byte to another processor and back, through shared memory."""
    memory = os.memfd_create("tupelo-yardstick")
    try:
        os.ftruncate(memory, mmap.PAGESIZE)
        name = f"/proc/{os.getpid()}/fd/{memory}"
        here = stage.placement
        _, (_, profiler) = stage.run_at(
            (here.server, spin_back, (name, runs)), (here.client, spin, (name, runs))
        )
    finally:
        os.close(memory)
    stage.note("shared byte", "s", profiler.tracks["shared byte"].samples_s())


def spin_back(bench: Bench, name: str, runs: int) -> None:
    """Write back what is written, never sleeping."""
    with open(name, "r+b", 0) as file, mmap.mmap(file.fileno(), 0) as shared:  # noqa: PTH123
        bench.start.wait()
        for call in range(runs * CALLS):
            byte = call & 0xFF ^ 1  # never what is there already
            while shared[THERE] != byte:
                pass
            shared[BACK] = byte


def spin(bench: Bench, name: str, runs: int) -> None:
    """Write a byte and wait for it, never sleeping."""
    with open(name, "r+b", 0) as file, mmap.mmap(file.fileno(), 0) as shared:  # noqa: PTH123
        bench.start.wait()
        for run in range(runs):
            begin = perf_counter_ns()
            for call in range(run * CALLS, (run + 1) * CALLS):
                byte = call & 0xFF ^ 1
                shared[THERE] = byte
                while shared[BACK] != byte:
                    pass
            bench.profiler.add("shared byte", perf_counter_ns() - begin, CALLS)


def pauses(stage: Stage, looks_s: float) -> None:
    """Find for how long two processes with a processor each are kept from it."""
    here = stage.placement
    found, _ = stage.run_at((here.server, look, (looks_s,)), (here.client, look, (looks_s,)))
    stage.note(LONGEST_PAUSE, "s", [max(gaps_s, default=0.0) for gaps_s in found])
    stage.note(PAUSED, "", [sum(gaps_s) / looks_s for gaps_s in found])


def look(bench: Bench, looks_s: float) -> list[float]:
    """Look at the clock for so long; the times for which that was not possible."""
    found = []
    bench.start.wait()
    before = perf_counter_ns()
    end = before + int(looks_s * 1e9)
    while before < end:
        now = perf_counter_ns()
        if now - before > PAUSE_NS:
            found.append((now - before) / 1e9)
        before = now
    return found
