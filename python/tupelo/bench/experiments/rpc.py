"""`bench rpc`: a request and its answer, by sockets, by a framework for calls, and by a space.

Davies, Friday, Wade, Blair: An asynchronous distributed systems platform for heterogeneous
environments (L²imbo), 1998. A request carries n bytes, the answer none; also the same number each
way. Two things that a space is made for stand beside: one tuple that N read, and requests that go
to whoever is idle.

Round trips are means of many, in a closed loop, as in the paper; under load they are measured in an
open loop, from when a request was due: at half the rate that the peer's own closed loop reaches,
and at one rate for all. Client and server run on one processor, and on two.
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
from tupelo.bench.harness.runner import Job
from tupelo.bench.harness.workers import WrongResultError
from tupelo.bench.report.figure import Figure, bars, lines, percentiles
from tupelo.bench.report.printed import Printed
from tupelo.bench.report.units import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo.bench.backends.calls import Client
    from tupelo.bench.harness.placement import Where
    from tupelo.bench.harness.record import Run
    from tupelo.bench.harness.runner import Options, Stage
    from tupelo.bench.harness.workers import Bench

SIZES = (256, 512, 1_024, 2_048, 4_096, 8_192)
BOTH_WAYS = (100, 1_000)
EXCHANGES = 1_000
WARM_UP = 100
SLEEP_FROM_NS = 200_000  # a sleep ends up to that much late here
LOAD = 0.5  # of what the closed loop reached
OF_EVERY_PAYLOAD = "grpc"  # a target is about all of its round trips
OWN_LOAD = "half of its own"
RATE_PER_S = 1_000  # that every peer can serve
SAME_LOAD = "1 000/s"
RATE_SHARE = 0.25  # of the time of an open loop; so long the rate of the closed one is measured
UNDER_LOAD = "latency under load"
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
# The same, for as many bytes each way: COOL ORB, L²imbo.
PRINTED_EACH_WAY = {100: (2.6, 1.9), 1_000: (3.8, 4.4)}
# In place of sockets, of ANSAware and COOL (programs of C++), and of a space linked and separate.
COLUMNS = ("udp", "grpc", "omniorb", "tupelo-shm", "redis")
PLACEMENTS: tuple[Where, ...] = ("apart", "together")


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
    main = ("round trip", native.ROUND_TRIP, f"{UNDER_LOAD} p99", "one to many", "undirected")
    share = 0.15

    def peers(self, all_peers: Sequence[type[Peer]]) -> list[type[Peer]]:
        wanted = (Backend, Caller, NativeCaller)
        found = [p for p in all_peers if issubclass(p, wanted) and not p.one_process]
        return [peer for peer in found if peer.name != "sqlite-durable"]

    def jobs(self, peer: type[Peer], options: Options) -> list[Job]:
        quick = options.quick
        exchanges = 50 if quick else EXCHANGES
        warm_up = WARM_UP if quick else max(WARM_UP, peer.warm_up)
        first: tuple[int, ...] = (SIZES[0], SIZES[-1])
        if peer.name == OF_EVERY_PAYLOAD:
            first = SIZES
        found = [
            self._job(
                {"bytes": f"{size} each way" if answer else size, "placement": where},
                native.closed_loop if issubclass(peer, NativeCaller) else closed_loop,
                Plan(size, answer, exchanges, warm_up),
                where,
                rank=0 if answer or size in first else 2,
            )
            for where in PLACEMENTS
            for size, answer in exchanged(quick=quick)
        ]
        if issubclass(peer, NativeCaller):
            # It times itself: nothing of Python's can be asked of it.
            return found
        for where in PLACEMENTS:
            for load in (OWN_LOAD, SAME_LOAD):
                plan = Plan(256, 0, exchanges, warm_up, load, 0.2 if quick else OPEN_LOOP_S)
                parameters = {"bytes": 256, "placement": where, "load": load}
                found.append(self._job(parameters, open_loop, plan, where, rank=1))
        plan = Plan(NEWS_BYTES, 0, 10 if quick else NEWS)
        if issubclass(peer, Backend):
            schema = NEWS_SCHEMA
            once = partial(one_to_many_space, plan=plan)
        else:
            schema = SCHEMA
            once = partial(one_to_many_calls, plan=plan)
        found.append(
            Job({"readers": READERS}, once, "many", schema, (SPACE,), rank=1, where="free")
        )
        plan = Plan(0, 0, 8 if quick else UNDIRECTED)
        parameters = {"requests": plan.exchanges, "servers": READERS}
        found.append(self._job(parameters, undirected, plan, "free", rank=1))
        return found

    def _job(
        self, parameters: dict[str, Any], once: Any, plan: Plan, where: Where, rank: int
    ) -> Job:
        weight = 1 + plan.load_s
        return Job(
            parameters,
            partial(once, plan=plan),
            once.__name__,
            SCHEMA,
            (SPACE,),
            weight=weight,
            rank=rank,
            where=where,
        )

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
            for load, of in ((OWN_LOAD, "half of its own rate"), (SAME_LOAD, "1 000 requests/s")):
                title = f"Latency at {of}, {where}"
                measures = run.find("rpc", UNDER_LOAD, placement=where, load=load)
                found.append(percentiles("rpc", title, measures))
        many = {"readers": [READERS], "servers": [READERS]}
        for metric, x in (("one to many", "readers"), ("undirected", "servers")):
            title = {
                "one to many": f"One message for {READERS} processes",
                "undirected": f"Requests of unequal length for {READERS} servers",
            }[metric]
            found.append(bars(run, "rpc", metric, x, many[x], fixed={}, title=title))
        return found

    def printed(self, run: Run) -> list[Printed]:
        return [
            Printed(
                f"Round trip in ms of 1998; here client and server {where}",
                ("", "sockets", "ANSAware", "COOL ORB", "L²imbo linked", "separate", *COLUMNS),
                tuple(_printed_rows(run, where)),
                5,
            )
            for where in PLACEMENTS
        ]


def exchanged(*, quick: bool) -> list[tuple[int, int]]:
    """Bytes of the request and of its answer."""
    sizes = [(size, 0) for size in ((256, 8_192) if quick else SIZES)]
    return sizes + [(size, size) for size in ((100,) if quick else BOTH_WAYS)]


def _printed_rows(run: Run, where: Where) -> Iterator[tuple[str, ...]]:
    rows: list[tuple[Any, tuple[str, ...]]] = [
        (size, (f"{sockets} ms", f"{ansaware} ms", "", f"{linked} ms", f"{separate} ms"))
        for size, (sockets, ansaware, linked, separate) in PRINTED.items()
    ]
    rows += [
        (f"{size} each way", ("", "", f"{orb} ms", f"{linked} ms", ""))
        for size, (orb, linked) in PRINTED_EACH_WAY.items()
    ]
    for size, cells in rows:
        here = {
            measure.backend: quantity(measure.summary.mean, "s")
            for metric in ("round trip", native.ROUND_TRIP)
            for measure in run.find("rpc", metric, bytes=size, placement=where)
        }
        label = f"{size} bytes" if isinstance(size, int) else size.replace(" ", " bytes ", 1)
        yield (label, *cells, *(here.get(name, "-") for name in COLUMNS))


@dataclass(frozen=True)
class Plan:
    """One cell."""

    request_bytes: int
    response_bytes: int
    exchanges: int
    warm_up: int = WARM_UP
    """Exchanges that come before those that count."""
    load: str = ""
    """At which rate, in an open loop."""
    load_s: float = 0.0


def calls(peer: Any) -> Any:
    """The peer as a way to call."""
    return SpaceCalls(peer) if isinstance(peer, Backend) else peer


def closed_loop(stage: Stage, plan: Plan) -> None:
    """One request after the other."""
    _, (_, profiler) = stage.run_at(
        (stage.placement.server, serve, (stage.peer, plan)),
        (stage.placement.client, ask, (stage.peer, plan)),
    )
    track = profiler.tracks["round trip"]
    histogram = Histogram()
    histogram.record(track.duration_ns)
    stage.note("round trip", "s", [track.mean_s or 0.0])
    for name, share in QUANTILES[:2]:
        stage.note(f"round trip {name}", "s", [histogram.quantile(share) / 1e9])


def open_loop(stage: Stage, plan: Plan) -> None:
    """Requests at a fixed rate, each timed from when it was due."""
    (_, (due_per_s, served_per_s)), (_, profiler) = stage.run_at(
        (stage.placement.server, serve, (stage.peer, plan)),
        (stage.placement.client, ask_at_a_rate, (stage.peer, plan)),
    )
    track = profiler.tracks[UNDER_LOAD]
    histogram = Histogram()
    histogram.record(track.duration_ns)
    stage.note("rate", "requests/s", [due_per_s])
    stage.note("rate reached", "requests/s", [served_per_s])
    stage.note(UNDER_LOAD, "s", [track.mean_s or 0.0], histogram)
    for name, share in QUANTILES:
        stage.note(f"{UNDER_LOAD} {name}", "s", [histogram.quantile(share) / 1e9])


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
    for exchange in range(-plan.warm_up, plan.exchanges):
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


def ask_at_a_rate(bench: Bench, peer: Any, plan: Plan) -> tuple[float, float]:
    """Ask at a fixed rate; the rate at which requests were due, and that at which they ended."""
    bench.start.wait()
    client: Client = calls(peer).client(1)
    request = b"q" * plan.request_bytes
    call, add = client.call, bench.profiler.add
    for _ in range(plan.warm_up):
        call(request)
    period_ns = int(1e9 / RATE_PER_S)
    if plan.load == OWN_LOAD:
        period_ns = int(closed_loop_ns(call, request, plan) / LOAD)
    requests = max(1, int(plan.load_s * 1e9 / period_ns))
    answers = set()
    begin = perf_counter_ns()
    for number in range(requests):
        due = begin + number * period_ns
        # Sleep for most of it, so that a server on this processor gets to run; then look.
        if (ahead_ns := due - perf_counter_ns()) > SLEEP_FROM_NS:
            time.sleep((ahead_ns - SLEEP_FROM_NS) / 1e9)
        while perf_counter_ns() < due:
            pass
        answers.add(call(request))
        add(UNDER_LOAD, perf_counter_ns() - due)
    reached_per_s = requests / ((perf_counter_ns() - begin) / 1e9)
    if answers != {b""}:
        message = f"every answer should be empty, there were {answers!r:.100}"
        raise WrongResultError(message)
    client.stop(1)
    client.close()
    return 1e9 / period_ns, reached_per_s


def closed_loop_ns(call: Any, request: bytes, plan: Plan) -> float:
    """The mean time of a call, of at least as many as a closed loop has.

    A thousand of the fastest peer take some milliseconds, in which luck with the scheduler makes a
    factor of four: so it goes on for a part of the time that the open loop takes.
    """
    calls_made = 0
    begin = now = perf_counter_ns()
    while calls_made < plan.exchanges or now - begin < plan.load_s * RATE_SHARE * 1e9:
        call(request)
        calls_made += 1
        now = perf_counter_ns()
    return (now - begin) / calls_made


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
