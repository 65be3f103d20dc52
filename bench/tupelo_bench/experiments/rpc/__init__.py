"""`bench rpc`: a request and its answer, by sockets, by a framework for calls, and by a space.

Davies, Friday, Wade, Blair: An asynchronous distributed systems platform for heterogeneous
environments (L²imbo), 1998. A request carries n bytes, the answer none; also the same number each
way. Two things that a space is made for stand beside: one tuple that N read, and requests that go
to whoever is idle. The same requests go to each server in turn, too.

Round trips are means of many, in a closed loop, as in the paper; under load they are measured in an
open loop, from when a request was due: at half the rate that the peer's own closed loop reaches,
and at one rate for all. Client and server run on one processor, and on two.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from tupelo_bench.backends.base import Backend, Peer, Schema
from tupelo_bench.backends.calls import Caller, NativeCaller
from tupelo_bench.backends.space_calls import DIRECTED_SCHEMA, SCHEMA, SPACE
from tupelo_bench.experiments import native
from tupelo_bench.experiments.base import Experiment
from tupelo_bench.experiments.rpc.calls import ROUND_TRIP, WARM_UP, Plan, call
from tupelo_bench.experiments.rpc.load import (
    OWN_LOAD,
    RATE_REACHED,
    SAME_LOAD,
    UNDER_LOAD,
    open_loop,
)
from tupelo_bench.experiments.rpc.many import (
    DIRECTED,
    DIRECTED_CELL,
    NEWS_SCHEMA,
    ONE_TO_MANY,
    READERS,
    UNDIRECTED,
    directed,
    one_to_many_calls,
    one_to_many_space,
    undirected,
)
from tupelo_bench.experiments.rpc.printed import COLUMNS, printed
from tupelo_bench.harness.placement import PLACEMENTS, lacking
from tupelo_bench.presentation.figure import Figure, bars, lines, percentiles, with_beside
from tupelo_bench.presentation.units import quantity
from tupelo_bench.runner import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.harness.placement import Where
    from tupelo_bench.harness.record import Run
    from tupelo_bench.presentation.printed import Printed
    from tupelo_bench.runner import Options

SIZES = (256, 512, 1_024, 2_048, 4_096, 8_192)
BOTH_WAYS = (100, 1_000)
EXCHANGES = 1_000
OPEN_LOOP_S = 2.0
NEWS = 100
NEWS_BYTES = 256
REQUESTS = 64  # of unequal length
NOTE_NATIVE = "Client and server of omniORB are in C++, and those of the others in Python."


class RPC(Experiment):
    """Calls."""

    name = "rpc"
    title = "A request and its answer"
    source = (
        "Davies, Friday, Wade, Blair: An asynchronous distributed systems platform for"
        " heterogeneous environments, 1998"
    )
    question = "What does a remote call cost when it is two tuples?"
    where = "apart"
    main = (ROUND_TRIP, native.ROUND_TRIP, f"{UNDER_LOAD} p99", ONE_TO_MANY, UNDIRECTED)
    share = 0.15
    weights: ClassVar = {"grpc": 2.5}

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        wanted = (Backend, Caller, NativeCaller)
        found = [p for p in self.meant(all_peers) if issubclass(p, wanted) and not p.one_process]
        return [peer for peer in found if peer.name != "sqlite-durable"]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        quick = options.quick
        exchanges = 50 if quick else EXCHANGES
        operations = WARM_UP if quick else max(WARM_UP, peer.warm_up)
        warm_up = max(WARM_UP, operations // 2)  # an exchange is a put and a take of the client
        steady = peer.compiles and not quick
        # All of those that stand beside the printed numbers, of which a target asks, too.
        first = SIZES if peer.name in COLUMNS else (SIZES[0], SIZES[-1])
        found = [
            self._job(
                {"bytes": f"{size} each way" if answer else size, "placement": where},
                native.call_natively if issubclass(peer, NativeCaller) else call,
                Plan(size, answer, exchanges, warm_up, until_steady=steady),
                where,
                rank=0 if answer or size in first else 2,
            )
            for where in PLACEMENTS
            for size, answer in exchanged(quick=quick)
        ]
        if issubclass(peer, NativeCaller):
            # It times itself: nothing of Python's can be asked of it.
            return found
        # The one rate for all first: only that compares the peers with each other.
        for load in (SAME_LOAD, OWN_LOAD):
            for where in PLACEMENTS:
                load_s = 0.2 if quick else OPEN_LOOP_S
                plan = Plan(256, 0, exchanges, warm_up, load, load_s, until_steady=steady)
                parameters = {"bytes": 256, "placement": where, "load": load}
                found.append(self._job(parameters, open_loop, plan, where, rank=1))
        plan = Plan(NEWS_BYTES, 0, 10 if quick else NEWS, operations, until_steady=steady)
        if issubclass(peer, Backend):
            schema = NEWS_SCHEMA
            once = partial(one_to_many_space, plan=plan)
        else:
            schema = SCHEMA
            once = partial(one_to_many_calls, plan=plan)
        found.append(
            Job({"readers": READERS}, once, "many", schema, (SPACE,), rank=1, where="free")
        )
        plan = Plan(0, 0, 8 if quick else REQUESTS, operations, until_steady=steady)
        parameters = {"requests": plan.exchanges, "servers": READERS}
        # The two are compared with each other.
        turns = "requests"
        found.append(self._job(parameters, undirected, plan, "free", rank=1, in_turns=turns))
        if issubclass(peer, Backend):
            found.append(
                self._job(
                    {**parameters, **DIRECTED_CELL}, directed, plan, "free",
                    rank=1, in_turns=turns, schema=DIRECTED_SCHEMA,
                )
            )  # fmt: skip
        return found

    def _job(
        self,
        parameters: dict[str, Any],
        once: Any,
        plan: Plan,
        where: Where,
        *,
        rank: int,
        schema: Schema = SCHEMA,
        in_turns: str = "",
    ) -> Job:
        weight = 1 + plan.load_s
        return Job(
            parameters,
            partial(once, plan=plan),
            once.__name__,
            schema,
            (SPACE,),
            weight=weight,
            rank=rank,
            where=where,
            lack=lacking(where),
            in_turns=in_turns,
        )

    def figures(self, run: Run) -> list[Figure]:
        found = []
        for where in ("together", "apart"):
            fixed = {"placement": where}
            title = f"Round trip, client and server {where}"
            sizes = [size for size in SIZES if any(run.find("rpc", ROUND_TRIP, bytes=size))]
            also = [
                measure
                for measure in run.find("rpc", native.ROUND_TRIP, **fixed)
                if measure.parameters["bytes"] in sizes
            ]
            found.append(
                lines(
                    run, "rpc", ROUND_TRIP, "bytes", fixed=fixed, title=title, log_x=True,
                    only=sizes, also=also, note=NOTE_NATIVE if also else "",
                )
            )  # fmt: skip
            for load, of in ((OWN_LOAD, "half of its own rate"), (SAME_LOAD, "1 000 requests/s")):
                title = f"Latency at {of}, {where}"
                under = {"placement": where, "load": load}
                rates = {
                    measure.backend: f"{quantity(measure.summary.mean, '')}/s"
                    for measure in run.find("rpc", RATE_REACHED, **under)
                }
                measures = run.find("rpc", UNDER_LOAD, **under)
                found.append(percentiles("rpc", title, measures, under, rates))
        message, undirected, directed = (
            bars(run, "rpc", metric, x, [READERS], fixed=fixed, title=title)
            for metric, x, fixed, title in (
                (ONE_TO_MANY, "readers", {}, f"One message for {READERS} processes"),
                (UNDIRECTED, "servers", {}, f"Requests of unequal length for {READERS} servers"),
                (DIRECTED, "servers", DIRECTED_CELL, ""),
            )
        )
        both = with_beside(undirected, directed, "directed, to each server in turn")
        return [*found, message, both]

    def printed(self, run: Run) -> list[Printed]:
        return printed(run)


def exchanged(*, quick: bool) -> list[tuple[int, int]]:
    """Bytes of the request and of its answer."""
    sizes = [(size, 0) for size in ((256, 8_192) if quick else SIZES)]
    return sizes + [(size, size) for size in ((100,) if quick else BOTH_WAYS)]
