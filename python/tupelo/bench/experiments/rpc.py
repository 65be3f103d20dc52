"""`bench rpc`: a request and its answer, by sockets, by a framework for calls, and by a space.

Davies, Friday, Wade, Blair: An asynchronous distributed systems platform for heterogeneous
environments (L²imbo), 1998. A request carries n bytes, the answer none; also the same number each
way. Two things that a space is made for stand beside: one tuple that N read, and requests that go
to whoever is idle.

Round trips are means of many, in a closed loop, as in the paper; under load they are measured in an
open loop, from when a request was due. Client and server run on one processor, and on two.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.base import Backend, Peer, Schema, Shape
from tupelo.bench.backends.calls import SCHEMA, SPACE, Caller, NativeCaller, SpaceCalls
from tupelo.bench.experiments import native
from tupelo.bench.experiments.base import Experiment
from tupelo.bench.harness.histogram import Histogram
from tupelo.bench.harness.placement import placement
from tupelo.bench.harness.runner import Job
from tupelo.bench.harness.workers import WrongResultError
from tupelo.bench.report.figure import Figure, bars, lines
from tupelo.bench.report.printed import Printed
from tupelo.bench.report.units import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo.bench.backends.calls import Client
    from tupelo.bench.harness.record import Run
    from tupelo.bench.harness.runner import Options, Stage
    from tupelo.bench.harness.workers import Bench

SIZES = (256, 512, 1_024, 2_048, 4_096, 8_192)
BOTH_WAYS = (100, 1_000)
EXCHANGES = 1_000
WARM_UP = 100
SLEEP_FROM_NS = 200_000  # a sleep ends up to that much late here
LOAD = 0.5  # of what the closed loop reached
OPEN_LOOP_S = 2.0
QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
READERS = 4
NEWS = 100
NEWS_BYTES = 256
SHORT_S, LONG_S = 0.001, 0.020  # what a server does for an undirected request
LONG_EVERY = 8
UNDIRECTED = 64
NEWS_SCHEMA = Schema((Shape("news", 3, (1,)), Shape("heard", 2)))

# Milliseconds of 1998: sockets, ANSAware, L²imbo linked, L²imbo separate.
PRINTED = {
    256: (2.98, 7.10, 6.53, 12.58),
    512: (3.45, 10.48, 7.20, 13.47),
    1_024: (3.93, 11.17, 8.64, 15.10),
    2_048: (5.85, 13.14, 11.97, 20.28),
    4_096: (9.46, 21.14, 18.06, 28.26),
    8_192: (15.83, 34.83, 29.93, 44.82),
}


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
    main = ("round trip", native.ROUND_TRIP, "latency under load p99", "one to many", "undirected")

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        left_out = ("tupelo-mem", "sqlite-durable")
        wanted = (Backend, Caller, NativeCaller)
        return [p for p in all_peers if issubclass(p, wanted) and p.name not in left_out]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        quick = options.quick
        exchanges = 50 if quick else EXCHANGES
        if issubclass(peer, NativeCaller):
            return self._native_jobs(exchanges, quick=quick)
        found = []
        for where in ("apart", "together"):
            for size in (256, 8_192) if quick else SIZES:
                plan = Plan(size, 0, exchanges)
                found.append(self._job({"bytes": size, "placement": where}, closed_loop, plan))
            for size in (100,) if quick else BOTH_WAYS:
                plan = Plan(size, size, exchanges)
                parameters = {"bytes": f"{size} each way", "placement": where}
                found.append(self._job(parameters, closed_loop, plan))
            plan = Plan(256, 0, exchanges, load_s=0.2 if quick else OPEN_LOOP_S)
            found.append(self._job({"bytes": 256, "placement": where}, open_loop, plan))
        plan = Plan(NEWS_BYTES, 0, 10 if quick else NEWS)
        if issubclass(peer, Backend):
            schema = NEWS_SCHEMA
            once = partial(one_to_many_space, plan=plan)
        else:
            schema = SCHEMA
            once = partial(one_to_many_calls, plan=plan)
        found.append(Job({"readers": READERS}, once, "many", schema, (SPACE,)))
        requests = 8 if quick else UNDIRECTED
        plan = Plan(0, 0, requests)
        found.append(self._job({"requests": requests, "servers": READERS}, undirected, plan))
        return found

    def _native_jobs(self, exchanges: int, *, quick: bool) -> list[Job]:
        """A program that times itself can be asked for round trips, and for nothing of Python's."""
        sizes = [(size, 0) for size in ((256, 8_192) if quick else SIZES)]
        sizes += [(size, size) for size in ((100,) if quick else BOTH_WAYS)]
        return [
            self._job(
                {"bytes": f"{size} each way" if answer else size, "placement": where},
                native.closed_loop,
                Plan(size, answer, exchanges),
            )
            for where in ("apart", "together")
            for size, answer in sizes
        ]

    def _job(self, parameters: dict[str, Any], once: Any, plan: Plan) -> Job:
        return Job(parameters, partial(once, plan=plan), once.__name__, SCHEMA, (SPACE,))

    def figures(self, run: Run) -> list[Figure]:
        found = []
        for where in ("together", "apart"):
            fixed = {"placement": where}
            title = f"Round trip, client and server {where}"
            sizes = [size for size in SIZES if any(run.find("rpc", "round trip", bytes=size))]
            found.append(
                lines(
                    run, "rpc", "round trip", "bytes", fixed=fixed, title=title, log_x=True,
                    only=sizes,
                )
            )  # fmt: skip
            found += [
                bars(
                    run, "rpc", f"latency under load {name}", "placement", [where], fixed={},
                    title=f"Latency at half load, {name}, {where}",
                )
                for name, _ in QUANTILES
            ]  # fmt: skip
        many = {"readers": [READERS], "servers": [READERS]}
        for metric, x in (("one to many", "readers"), ("undirected", "servers")):
            title = {
                "one to many": f"One message for {READERS} processes",
                "undirected": f"Requests of unequal length for {READERS} servers",
            }[metric]
            found.append(bars(run, "rpc", metric, x, many[x], fixed={}, title=title))
        return found

    def printed(self, run: Run) -> list[Printed]:
        columns = ("udp", "grpc", "tupelo-shm", "redis")
        rows = []
        for size, times_ms in PRINTED.items():
            here = {m.backend: m for m in run.find("rpc", "round trip", bytes=size)
                    if m.parameters["placement"] == "apart"}  # fmt: skip
            cells = [
                quantity(here[name].summary.mean, "s") if name in here else "-" for name in columns
            ]
            rows.append((f"{size} bytes", *(f"{time} ms" for time in times_ms), *cells))
        heads = ("", "sockets", "ANSAware", "L²imbo linked", "separate", *columns)
        return [Printed("Round trip, two processors", heads, tuple(rows), 4)]


@dataclass(frozen=True)
class Plan:
    """One cell."""

    request_bytes: int
    response_bytes: int
    exchanges: int
    load_s: float = 0.0


def calls(peer: Any) -> Any:
    """The peer as a way to call."""
    return SpaceCalls(peer) if isinstance(peer, Backend) else peer


def closed_loop(stage: Stage, plan: Plan) -> None:
    """One request after the other."""
    where = placement(stage.parameters["placement"])
    _, (_, profiler) = stage.run_at(
        (where.server, serve, (stage.peer, plan)),
        (where.client, ask, (stage.peer, plan)),
    )
    track = profiler.tracks["round trip"]
    histogram = Histogram()
    histogram.record(track.duration_ns)
    stage.note("round trip", "s", [track.mean_s or 0.0])
    for name, share in QUANTILES[:2]:
        stage.note(f"round trip {name}", "s", [histogram.quantile(share) / 1e9])


def open_loop(stage: Stage, plan: Plan) -> None:
    """Requests at a fixed rate, each timed from when it was due."""
    where = placement(stage.parameters["placement"])
    (_, (rate, encoded, quantiles)), _ = stage.run_at(
        (where.server, serve, (stage.peer, plan)),
        (where.client, ask_at_a_rate, (stage.peer, plan)),
    )
    stage.note("rate", "requests/s", [rate])
    for (name, _), value in zip(QUANTILES, quantiles, strict=True):
        stage.note(f"latency under load {name}", "s", [value / 1e9], histogram=encoded)


def serve(bench: Bench, peer: Any, plan: Plan) -> None:
    """Answer until asked to stop."""
    servant = calls(peer).servant(bench.number)
    response = b"r" * plan.response_bytes
    bench.start.wait()
    servant.serve(lambda _: response)


def ask(bench: Bench, peer: Any, plan: Plan) -> None:
    """Ask, and check the answers."""
    bench.start.wait()
    client: Client = calls(peer).client(1)
    request, response = b"q" * plan.request_bytes, b"r" * plan.response_bytes
    call, add = client.call, bench.profiler.add
    for exchange in range(-WARM_UP, plan.exchanges):
        begin = perf_counter_ns()
        answer = call(request)
        end = perf_counter_ns()
        if exchange >= 0:
            add("round trip", end - begin)
        if answer != response:
            message = f"the answer should be {len(response)} bytes, it is {answer!r:.100}"
            raise WrongResultError(message)
    client.stop(1)
    client.close()


def ask_at_a_rate(bench: Bench, peer: Any, plan: Plan) -> tuple[float, str, list[int]]:
    """Ask at a part of the rate that a closed loop reaches; rate, histogram, and its quantiles."""
    bench.start.wait()
    client: Client = calls(peer).client(1)
    request = b"q" * plan.request_bytes
    call = client.call
    for _ in range(WARM_UP):
        call(request)
    begin = perf_counter_ns()
    for _ in range(plan.exchanges):
        call(request)
    period_ns = int((perf_counter_ns() - begin) / plan.exchanges / LOAD)
    waits = []
    begin = perf_counter_ns()
    for number in range(int(plan.load_s * 1e9 / period_ns)):
        due = begin + number * period_ns
        # Sleep for most of it, so that a server on this processor gets to run; then look.
        if (ahead_ns := due - perf_counter_ns()) > SLEEP_FROM_NS:
            time.sleep((ahead_ns - SLEEP_FROM_NS) / 1e9)
        while perf_counter_ns() < due:
            pass
        call(request)
        waits.append(perf_counter_ns() - due)
    client.stop(1)
    client.close()
    histogram = Histogram()
    histogram.record(waits)
    quantiles = [histogram.quantile(share) for _, share in QUANTILES]
    return 1e9 / period_ns, histogram.encoded(), quantiles


# --- one message for many ---


def one_to_many_space(stage: Stage, plan: Plan) -> None:
    """One tuple per message; everybody reads it."""
    _, (profiler, *_) = stage.run(
        (tell, (stage.peer, plan)), *[(hear, (stage.peer, plan))] * READERS
    )
    stage.note("one to many", "s", [profiler.tracks["one to many"].mean_s or 0.0])


def tell(bench: Bench, backend: Backend, plan: Plan) -> None:
    """Put a message, wait until all have heard it, take it away."""
    space = backend.open(SPACE)
    message = b"n" * plan.request_bytes
    bench.start.wait()
    for number in range(plan.exchanges):
        with bench.profiler.time("one to many"):
            space.put("news", number, message)
            for _ in range(READERS):
                space.take("heard", int)
        space.take("news", number, bytes)
    space.close()


def hear(bench: Bench, backend: Backend, plan: Plan) -> None:
    """Read each message once."""
    space = backend.open(SPACE)
    bench.start.wait()
    for number in range(plan.exchanges):
        if len(space.read("news", number, bytes)[2]) != plan.request_bytes:
            message = f"message {number} has another size"
            raise WrongResultError(message)
        space.put("heard", number)
    space.close()


def one_to_many_calls(stage: Stage, plan: Plan) -> None:
    """A call to each, all under way at once."""
    *_, profiler = stage.run(
        *[(serve, (stage.peer, plan))] * READERS, (tell_each, (stage.peer, plan))
    )[1]
    stage.note("one to many", "s", [profiler.tracks["one to many"].mean_s or 0.0])


def tell_each(bench: Bench, peer: Any, plan: Plan) -> None:
    """Call every server with every message."""
    bench.start.wait()
    client: Client = calls(peer).client(READERS)
    messages = [b"n" * plan.request_bytes] * READERS
    for _ in range(plan.exchanges):
        with bench.profiler.time("one to many"):
            client.call_many(messages)
    client.stop(READERS)
    client.close()


# --- requests for whoever is idle ---


def undirected(stage: Stage, plan: Plan) -> None:
    """Requests of unequal length; only a space gives them to whoever is idle."""
    *_, profiler = stage.run(*[(work, (stage.peer,))] * READERS, (hand_out, (stage.peer, plan)))[1]
    stage.note("undirected", "s", [profiler.tracks["undirected"].total_s])


def work(bench: Bench, peer: Any) -> None:
    """Answer; the request says how long that takes."""
    servant = calls(peer).servant(bench.number)
    bench.start.wait()

    def answer(request: bytes) -> bytes:
        time.sleep(float(request))
        return request

    servant.serve(answer)


def hand_out(bench: Bench, peer: Any, plan: Plan) -> None:
    """Ask for everything at once, and wait for all answers."""
    bench.start.wait()
    client: Client = calls(peer).client(READERS)
    requests = [
        str(SHORT_S if number % LONG_EVERY else LONG_S).encode() for number in range(plan.exchanges)
    ]
    with bench.profiler.time("undirected", len(requests)):
        answers = client.call_many(requests)
    if sorted(answers) != sorted(requests):
        message = f"{len(requests)} answers should have come, there are {len(answers)}"
        raise WrongResultError(message)
    client.stop(READERS)
    client.close()
