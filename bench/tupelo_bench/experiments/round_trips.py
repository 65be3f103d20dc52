"""The closed loop of a client and a server, whatever they are programmed in: one call at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.warming import note_warming
from tupelo_bench.harness.histogram import Histogram
from tupelo_bench.harness.quantiles import QUANTILES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tupelo_bench.runner import Stage

Target = tuple["Callable[..., Any]", tuple[Any, ...]]
"""What a process does, and with what."""

OF_CLOSED = QUANTILES[:2]  # of a thousand calls one is beyond the last


CPU_TIME = "CPU time of a round trip"


def closed_loop(stage: Stage, metric: str, *, server: Target, client: Target) -> None:
    """Run both, and note what the client timed under the name of the metric.

    Each returns its processor time of a round trip, or None if it can not tell.
    """
    (server_cpu_s, client_cpu_s), (_, profiler) = stage.run_at(
        (stage.placement.server, *server), (stage.placement.client, *client)
    )
    if server_cpu_s is not None and client_cpu_s is not None:
        stage.note(CPU_TIME, "s", [server_cpu_s + client_cpu_s])
    note_warming(stage, [profiler])
    track = profiler.tracks[metric]
    histogram = Histogram()
    histogram.record(track.duration_ns)
    stage.note(metric, "s", [profiler.mean_s(metric)], histogram)
    for name, share in OF_CLOSED:
        stage.note(f"{metric} {name}", "s", [histogram.quantile(share) / 1e9])
