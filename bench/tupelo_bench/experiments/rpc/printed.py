"""What the paper prints of its round trips, beside ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments import native
from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.rpc.calls import ROUND_TRIP
from tupelo_bench.harness.placement import PLACEMENTS
from tupelo_bench.presentation.printed import Printed
from tupelo_bench.presentation.units import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.placement import Where
    from tupelo_bench.harness.record import Run

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
COLUMNS = ("udp", "grpc", "omniorb", OURS, "tupelo-unix", "redis")
# Not all columns have a loop in Python.
TOLD = {
    "omniorb": "omniorb (C++ on both sides)",
    "tupelo-unix": "tupelo-unix (the separate one)",
    "redis": "redis (a daemon, too)",
}


def printed(run: Run) -> list[Printed]:
    """A table per placement; with means alone, since it has eleven columns."""
    heads: tuple[str, ...] = ("", "sockets", "ANSAware", "COOL ORB", "L²imbo linked", "separate")
    heads += tuple(TOLD.get(name, name) for name in COLUMNS)
    return [
        Printed(
            f"round trips {where}",
            f"Round trip in ms of 1998; here client and server {where}",
            heads,
            tuple(_rows(run, where)),
            5,
        )
        for where in PLACEMENTS
    ]


def _rows(run: Run, where: Where) -> Iterator[tuple[str, ...]]:
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
            for metric in (ROUND_TRIP, native.ROUND_TRIP)
            for measure in run.find("rpc", metric, bytes=size, placement=where)
        }
        label = f"{size} bytes" if isinstance(size, int) else size.replace(" ", " bytes ", 1)
        yield (label, *cells, *(here.get(name, "-") for name in COLUMNS))
