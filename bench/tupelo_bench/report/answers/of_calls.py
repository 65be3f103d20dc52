"""What the literature claims of calls and of sorting: [LIMBO], [RPC]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments import native
from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.rpc.calls import ROUND_TRIP
from tupelo_bench.experiments.rpc.many import DIRECTED, DIRECTED_CELL, UNDIRECTED
from tupelo_bench.experiments.sort import SIZES, WORKERS
from tupelo_bench.report.answers.claim import in_order, paired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.record import Run
    from tupelo_bench.report.answers.claim import Answer, Pair


def of_calls(run: Run) -> Iterator[Answer]:
    """All that `rpc` and `sort` answer."""
    if run.of("rpc"):
        yield in_order(
            "A call by a space that is linked in takes less time than by an RPC framework (gRPC).",
            "LIMBO", _against(run, "rpc", "round trip", OURS, "grpc"), figure="rpc-round-trip",
        )  # fmt: skip
        yield in_order(
            "A space that is linked in is faster than one behind a daemon.", "LIMBO",
            [
                pair
                for daemon in ("tupelo-unix", "tupelo-tcp")
                for pair in _against(run, "rpc", "round trip", OURS, daemon)
            ],
            figure="rpc-round-trip",
        )  # fmt: skip
        yield in_order(
            "A call of 100 bytes each way takes a space less time than an ORB (omniORB).", "LIMBO",
            _beside_orb(run, 100),
        )  # fmt: skip
        yield in_order(
            "A call of 1 000 bytes each way takes an ORB (omniORB) less time than a space.",
            "LIMBO", [(orb, space) for space, orb in _beside_orb(run, 1_000)], of="omniorb",
        )  # fmt: skip
        yield in_order(
            "One tuple reaches several readers sooner than a message to each.", "LIMBO",
            _against(run, "rpc", "one to many", OURS, "udp"), figure="rpc-one-message",
        )  # fmt: skip
        yield in_order(
            "Requests that go to whoever is idle are answered sooner than directed ones.", "LIMBO",
            paired(run, "rpc", (UNDIRECTED, DIRECTED), {}, DIRECTED_CELL),
            figure="rpc-requests-of-unequal",
        )  # fmt: skip
    if run.of("sort"):
        for space in ("javaspaces", OURS):
            yield in_order(
                f"A space ({space}) sorts faster than CORBA (omniORB).", "RPC",
                _against(run, "sort", "response time", space, "omniorb"), figure="sort-", of=space,
                cells=len(SIZES) * len(WORKERS),
            )  # fmt: skip


def _beside_orb(run: Run, size_bytes: int) -> list[Pair]:
    """Round trips of Tupelo and of the ORB, whose own program times them."""
    fixed = {"bytes": f"{size_bytes} each way"}
    found = []
    for space in run.find("rpc", ROUND_TRIP, **fixed):
        if space.backend == OURS:
            orb = run.find_one("rpc", native.ROUND_TRIP, "omniorb", **space.parameters)
            if orb is not None:
                found.append((space, orb))
    return found


def _against(run: Run, experiment: str, metric: str, one: str, other: str) -> list[Pair]:
    """The cells that both systems have."""
    found = []
    for less in run.find(experiment, metric):
        if less.backend == one:
            more = run.find_one(experiment, metric, other, **less.parameters)
            if more is not None:
                found.append((less, more))
    return found
