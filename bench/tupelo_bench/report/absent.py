"""Which systems take no part in which experiment, and why.

What could not be measured in a run is in its record. This is what no run measures, since it would
tell nothing or can not be: a table, which the tests compare with what the experiments ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.presentation.tables import Table

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run

CALLS = "carries calls, and holds no tuples"
ONE_PROCESS = "is within one process, which no other can reach"
IN_MEM = "stands beside puts and takes only"
SPINNING = "tells how a caller waits, so it stands beside calls only"
BUFFERED = "a put ends in a list of its own process: a window of writing would time that list"
SERVED = "the same engine behind a server: the other experiments show what that costs"
FILE = "the same engine in a file: `settle` shows what that costs"
DURABLE = "is sqlite with a sync at each commit: `settle` shows what that costs"
NATIVE = "its loop is C++ and times itself, request after request: it can do no other pattern"
IDLE = "the caller asks a server again only when that has answered"

ABSENT: tuple[tuple[tuple[str, ...], str, tuple[str, ...], str], ...] = (
    (("mem", "settle", "cases"), "", ("udp", "grpc", "omniorb"), CALLS),
    (("mem", "cases", "rpc", "sort"), "", ("sqlite-durable",), DURABLE),
    (("settle",), "", ("mp-queue",), BUFFERED),
    (("settle", "cases", "rpc", "sort"), "", ("tupelo-mem", "rinda-inside"), ONE_PROCESS),
    (("settle", "cases", "rpc", "sort"), "", ("plain-dict", "plain-list"), ONE_PROCESS),
    (("settle", "cases", "rpc", "sort"), "", ("xml-rpc",), IN_MEM),
    (("mem", "settle", "cases", "sort"), "", ("udp-spinning", "tupelo-aio"), SPINNING),
    (("sort",), "", ("tupelo-unix", "tupelo-tcp"), SERVED),
    (
        ("cases",),
        "all but the sorting of 10^7 numbers and the matrix of order 100",
        ("tupelo-unix", "tupelo-tcp"),
        "these programs compare transports, as the paper does",
    ),
    (("mem", "cases", "rpc", "sort"), "", ("tupelo-file",), FILE),
    (("sort",), "", ("udp",), "a part of the numbers does not fit into a datagram"),
    (("rpc",), "open loop", ("omniorb",), NATIVE),
    (("rpc",), "one to many", ("omniorb",), NATIVE),
    (("rpc",), "undirected", ("omniorb",), NATIVE),
    (("rpc",), "directed", ("udp", "udp-spinning", "grpc"), IDLE),
    (("rpc",), "directed", ("omniorb",), NATIVE),
    (("rpc",), "directed", ("tupelo-aio",), "the same space waits otherwise: tupelo-shm shows it"),
    (("settle",), "remote clients", ("all",), "everything is on one host"),
    (("settle",), "durable", ("all but sqlite and Tupelo",), "the others sync nothing to a disk"),
    (
        ("cases",),
        "search by success factor",
        ("all but tupelo-shm",),
        "the order is that of the client, whatever the system: one shows it",
    ),
)
"""Experiments, the part of them if it is not all, the systems, the reason."""


def absent(run: Run) -> Table:
    """A line per experiment that was run, and reason.

    An older record may have a system that takes no part any more.
    """
    measured = {(measure.experiment, measure.backend) for measure in run.measures}
    rows = []
    for experiments, part, systems, why in ABSENT:
        for experiment in filter(run.of, experiments):
            left = [each for each in systems if part or (experiment, each) not in measured]
            if left:
                rows.append((experiment, part, ", ".join(left), why))
    return Table("Takes no part", ("experiment", "", "systems", "why"), tuple(rows))
