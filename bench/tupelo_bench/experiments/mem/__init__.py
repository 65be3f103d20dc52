"""`bench mem`: what a put and a take cost, by the size of the entry and by how full the space is.

Grapentin, Plauth, Polze: MemSpaces: Evaluating the Tuple Space Paradigm in the Context of
Memory-Centric Architectures, CANDAR 2017. A cycle is 100 puts in a row, then 100 takes; a sample is
the time of one half, divided by 100. The 100 cycles of the paper are spread over the repeats that
every cell gets. Each repeat has a process and a space of its own, since cycles of one process are
alike. Further repeats add as many cycles each.

Extended by larger fills, by takes that name a key in the first or in the last field, and by a
server on the client's processor. The memory that a tuple takes is shown, too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from tupelo_bench.backends.base import Schema
from tupelo_bench.backends.registry import PEERS
from tupelo_bench.experiments.base import Experiment
from tupelo_bench.experiments.mem import memory
from tupelo_bench.experiments.mem.client import BATCH, SPACE, keyed, unkeyed
from tupelo_bench.experiments.mem.entries import (
    ENTRIES,
    KEYED,
    KEYED_BYTES,
    LARGE,
    SMALL,
    EntryPlan,
    KeyPlan,
    Plan,
    by_key,
    key_template,
    key_tuples,
)
from tupelo_bench.harness.placement import lacking
from tupelo_bench.presentation.figure import Figure, bars, lines, with_beside
from tupelo_bench.presentation.units import whole
from tupelo_bench.runner import Job

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo_bench.backends.base import Peer
    from tupelo_bench.harness.record import Measure, Run
    from tupelo_bench.runner import Options

CYCLES = 100  # of a cell, at least; fewer where there is time for some of its repeats only
REPEATS_LARGE = 5  # where the fill takes longer than the cycles
FILL_LARGE = 100_000
TUPLE_BYTES = 150  # that a system may add to the payload, when it says how much room it needs
FILLS = (0, 10_000)
FILL_RANKS = {0: 1, 10_000: 2}
FURTHER = (100_000, 1_000_000)
FURTHER_BYTES_MAX = 256  # larger ones would not fit into the memory of a machine
KEYED_FILLS = (0, 10_000, 1_000_000)


class Mem(Experiment):
    """Puts and takes of one client."""

    name = "mem"
    title = "Entries of six types, by a single client"
    source = "Grapentin, Plauth, Polze: MemSpaces, CANDAR 2017"
    question = "What do a put and a take cost, and does a fuller space slow them down?"
    where = "apart"
    main = ("put", "take", "bridge", memory.METRIC)
    share = 0.3
    weights: ClassVar = {"javaspaces": 3.0}  # a virtual machine that warms up, in each repeat

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        return [peer for peer in super().peers(all_peers) if peer.name != "sqlite-durable"]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        quick = options.quick
        found = []
        for entry in ENTRIES:
            further = FURTHER if entry.payload_bytes <= FURTHER_BYTES_MAX else ()
            for fill in (0, 500) if quick else (*FILLS, *further):
                parameters = {"entry": entry.name, "fill": fill, "placement": "apart"}
                plan: Plan = EntryPlan(fill, entry=entry)
                found.append(self._job(parameters, unkeyed, plan, entry.schema))
        for field, shape in KEYED.items():
            for fill in (0, 500) if quick else KEYED_FILLS:
                parameters = {"entry": f"key {field}", "fill": fill, "placement": "apart"}
                plan = KeyPlan(fill, field=field)
                found.append(self._job(parameters, keyed, plan, Schema((shape,))))
        if peer.has_server:
            together = [
                replace(
                    job, parameters={**job.parameters, "placement": "together"}, where="together"
                )
                for job in found
                if job.parameters["fill"] == 0
            ]  # fmt: skip
            found = [*(replace(job, lack=lacking("apart")) for job in found), *together]
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
            (fill + 2 * BATCH) * (plan.payload_bytes + TUPLE_BYTES),
            repeats=REPEATS_LARGE if fill >= FILL_LARGE else None,
            weight=1 + fill / 50_000,
            rank=_rank(str(parameters["entry"]), plan),
        )

    def _with_cycles(self, job: Job, peer: type[Peer], options: Options) -> Job:
        repeats = min(job.repeats or options.repeats, options.repeats_least)
        cycles = 5 if options.quick else -(-CYCLES // repeats)
        warm_up = 1 if options.quick else max(1, peer.warm_up // BATCH)
        once: Any = job.once
        plan = replace(once.keywords["plan"], cycles=cycles, warm_up=warm_up,
                       until_steady=peer.compiles and not options.quick)  # fmt: skip
        return replace(job, once=partial(once.func, plan=plan))

    def figures(self, run: Run) -> list[Figure]:
        found = []
        names = [entry.name for entry in ENTRIES]
        fills = sorted({measure.parameters["fill"] for measure in run.find(self.name, "put")})
        for metric in ("put", "take"):
            both = [
                bars(run, "mem", metric, "entry", names, title=f"Time of a {metric}",
                     fixed={"fill": fill, "placement": "apart"}, note="full colour: empty space")
                for fill in fills[:2]
            ]  # fmt: skip
            for full in both[1:]:
                both[0] = with_beside(both[0], full, f"{whole(fills[1])} tuples there")
            found += both[:1]
            title = f"Time of a {metric}, empty space, the server on the client's processor"
            fixed: dict[str, Any] = {"fill": 0, "placement": "together"}
            found.append(
                bars(
                    run, "mem", metric, "entry", names, fixed=fixed, title=title,
                    note="who has no server is measured once, and stands in both figures",
                    also=_serverless(run, metric),
                )
            )  # fmt: skip
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


def _serverless(run: Run, metric: str) -> Iterator[Measure]:
    """What was measured in an empty space of those who have no server to be put anywhere."""
    with_server = {peer.name for peer in PEERS if peer.has_server}
    for measure in run.find("mem", metric, fill=0, placement="apart"):
        if measure.backend not in with_server:
            yield measure


def _rank(entry: str, plan: Plan) -> int:
    """What the targets name in an empty space, the rest there, the paper's fill, what is beyond."""
    if plan.fill == 0 and entry in SMALL + LARGE:
        return 0  # a slow peer may have time for these only
    return FILL_RANKS.get(plan.fill, 3 if plan.payload_bytes <= KEYED_BYTES else 4)


def kinds() -> list[memory.Kind]:
    """All tuples, as the measurement of their memory wants them."""
    return [
        *(memory.Kind(e.name, e.payload_bytes, e.schema, e.many, e.template) for e in ENTRIES),
        *(
            memory.Kind(
                f"key {field}",
                KEYED_BYTES,
                Schema((shape,)),
                partial(key_tuples, field=field),
                partial(key_template, field=field),
                partial(by_key, field=field),
            )
            for field, shape in KEYED.items()
        ),
    ]
