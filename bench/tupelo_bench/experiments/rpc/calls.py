"""A request and its answer, one after the other: the closed loop of `bench rpc`."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter_ns, process_time
from typing import TYPE_CHECKING, Any, cast

from tupelo_bench.backends.base import Backend
from tupelo_bench.backends.space_calls import SpaceCalls
from tupelo_bench.experiments.round_trips import closed_loop
from tupelo_bench.experiments.warming import warm_until_steady
from tupelo_bench.harness.cpu_time import cpu_time_ns
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tupelo_bench.backends.base import Peer
    from tupelo_bench.backends.calls import Calls, Client
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

ROUND_TRIP = "round trip"
WARM_UP = 100
CYCLE = 50  # exchanges of a cycle, where a system goes on until it is warm; each is two operations


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
    until_steady: bool = False
    """Whether further exchanges come before those that count, until their times differ no more."""


def calls(peer: Any) -> Calls:
    """The peer as a way to call."""
    return SpaceCalls(peer) if isinstance(peer, Backend) else cast("Calls", peer)


def call(stage: Stage, plan: Plan) -> None:
    """One request after the other."""
    peer = stage.peer
    closed_loop(stage, ROUND_TRIP, server=(serve, (peer, plan)), client=(ask, (peer, plan)))


def serve(bench: Bench, peer: Any, plan: Plan) -> float | None:
    """Check the requests, and answer until asked to stop.

    Returns its processor time of a request, of the last ones, which count; None of few requests.
    """
    servant = calls(peer).servant(bench.number)
    expected, response = b"q" * plan.request_bytes, b"r" * plan.response_bytes
    # Nobody tells it when the requests that count begin: it looks at the clock once a cycle.
    answered, at_s = 0, [process_time()]

    def answer(request: bytes) -> bytes:
        # The answer does not depend on it: nobody else would see that some of it is missing.
        if request != expected:
            message = f"the request should be {len(expected)} bytes, it is {request!r:.100}"
            raise WrongResultError(message)
        nonlocal answered
        answered += 1
        if answered % CYCLE == 0:
            at_s.append(process_time())
        return response

    bench.start.wait()
    servant.serve(answer)
    cycles = plan.exchanges // CYCLE
    if not 0 < cycles < len(at_s):
        return None
    return (at_s[-1] - at_s[-1 - cycles]) / (cycles * CYCLE)


def ask(bench: Bench, peer: Any, plan: Plan) -> float:
    """Ask, and check the answers; the processor time of a round trip, here and in a server."""
    bench.start.wait()
    client: Client = calls(peer).client(1)
    request, response = b"q" * plan.request_bytes, b"r" * plan.response_bytes
    call, add = client.call, bench.profiler.add

    def checked(answer: bytes) -> None:
        if answer != response:
            message = f"the answer should be {len(response)} bytes, it is {answer!r:.100}"
            raise WrongResultError(message)

    warm(bench, plan, lambda: checked(call(request)))
    spent_s = -cpu_time_s(peer)
    for _ in range(plan.exchanges):
        begin = perf_counter_ns()
        answer = call(request)
        end = perf_counter_ns()
        add(ROUND_TRIP, end - begin)
        checked(answer)
    spent_s += cpu_time_s(peer)
    client.stop(1)
    client.close()
    return spent_s / plan.exchanges


def warm(bench: Bench, plan: Plan, exchange: Callable[[], object]) -> None:
    """Do the exchanges that come before those that count."""

    def exchanges(count: int) -> None:
        for _ in range(count):
            exchange()

    exchanges(plan.warm_up)
    if plan.until_steady:
        warm_until_steady(bench.profiler, lambda: exchanges(CYCLE))


def cpu_time_s(peer: Peer) -> float:
    """What this process has run so far, and the server of the peer if it has one."""
    return process_time() + (cpu_time_ns(peer.server_pid) / 1e9 if peer.server_pid else 0.0)
