"""What the distributed sort was to show: that calls do not sort faster than tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.report.beside import beside_us
from tupelo_bench.report.targets.verdict import gaps, none_faster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.harness.record import Run
    from tupelo_bench.report.targets.verdict import Verdict


def sorts(run: Run) -> Iterator[Verdict]:
    """Whether gRPC sorts faster anywhere."""
    pairs = [p for p in beside_us(run, "sort", "response time") if p[1].backend == "grpc"]
    yield none_faster(
        "sizes and numbers of workers at which gRPC sorts significantly faster",
        pairs,
        gaps(run, "sort", "response time", "grpc"),
    )
