"""Requests at a fixed rate, each timed from when it was due: the open loop of `bench rpc`."""

from __future__ import annotations

import time
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.rpc.calls import calls, serve, warm
from tupelo_bench.experiments.warming import note_warming
from tupelo_bench.harness.histogram import Histogram
from tupelo_bench.harness.quantiles import QUANTILES
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from tupelo_bench.backends.calls import Client
    from tupelo_bench.experiments.rpc.calls import Plan
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

UNDER_LOAD = "latency under load"
RATE_REACHED = "rate reached"
OWN_LOAD = "half of its own"
LOAD = 0.5  # of what the closed loop reached
SAME_LOAD = "1 000/s"
RATE_PER_S = 1_000  # that nearly every peer can serve: some hardly, which `RATE_REACHED` shows
RATE_SHARE = 0.25  # of the time of an open loop; so long the rate of the closed one is measured
SLEEP_FROM_NS = 200_000  # a sleep ends up to that much late here


def open_loop(stage: Stage, plan: Plan) -> None:
    """Requests at a fixed rate, each timed from when it was due."""
    (_, (due_per_s, served_per_s)), (_, profiler) = stage.run_at(
        (stage.placement.server, serve, (stage.peer, plan)),
        (stage.placement.client, ask_at_a_rate, (stage.peer, plan)),
    )
    note_warming(stage, [profiler])
    track = profiler.tracks[UNDER_LOAD]
    histogram = Histogram()
    histogram.record(track.duration_ns)
    stage.note("rate", "requests/s", [due_per_s])
    stage.note(RATE_REACHED, "requests/s", [served_per_s])
    is_kept = stage.parameters.get("load") == SAME_LOAD  # where systems are compared by them
    stage.note(UNDER_LOAD, "s", [profiler.mean_s(UNDER_LOAD)], histogram, is_kept=is_kept)
    for name, share in QUANTILES:
        stage.note(f"{UNDER_LOAD} {name}", "s", [histogram.quantile(share) / 1e9])


def ask_at_a_rate(bench: Bench, peer: Any, plan: Plan) -> tuple[float, float]:
    """Ask at a fixed rate; the rate at which requests were due, and that at which they ended."""
    bench.start.wait()
    client: Client = calls(peer).client(1)
    request = b"q" * plan.request_bytes
    call, add = client.call, bench.profiler.add
    warm(bench, plan, lambda: call(request))
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
