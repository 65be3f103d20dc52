"""Calls between programs of another language, which time themselves (`NativeCaller`).

What they measure is no column beside programs of Python: it has a metric of its own, but where the
work is computed by compiled code on both sides (`bench sort`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.round_trips import closed_loop
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from tupelo_bench.backends.calls import NativeCaller
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

ROUND_TRIP = "round trip between native programs"


def call_natively(stage: Stage, plan: Any) -> None:
    """One request after the other."""
    peer = stage.peer
    closed_loop(stage, ROUND_TRIP, server=(serve, (peer,)), client=(ask, (peer, plan)))


def serve(bench: Bench, peer: NativeCaller) -> None:
    """Run a server program, on the processors of this process, until its client ends it."""
    server = peer.serve(bench.number)
    bench.start.wait()
    code = server.process.wait()
    if code:
        message = f"the server program ended with code {code}"
        raise RuntimeError(message)


def ask(bench: Bench, peer: NativeCaller, plan: Any) -> None:
    """Have a client program ask; it checks the answers."""
    bench.start.wait()
    client = peer.client(1)
    times_ns = client.exchange(
        plan.request_bytes, plan.response_bytes, plan.exchanges, plan.warm_up
    )
    client.stop()
    if len(times_ns) != plan.exchanges:
        message = f"{plan.exchanges} calls were asked for, {len(times_ns)} were made"
        raise WrongResultError(message)
    for time_ns in times_ns:
        bench.profiler.add(ROUND_TRIP, time_ns)
