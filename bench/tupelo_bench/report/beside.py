"""Which measures of a record are compared with which: ours, and the peers' beside them.

A peer with a server is compared at its best placement, on one processor or on two. That alone makes
a factor of two to five, and nobody who knows would choose the worse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tupelo_bench.experiments.base import OURS
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.statistics import differ, is_mostly_below

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tupelo_bench.harness.record import Measure, Run


SPINNING = ("udp-spinning",)
"""The peers whose waiters look again and again; those of all others sleep."""


def is_peer(backend: str) -> bool:
    """Whether it is somebody else's."""
    return not backend.startswith("tupelo")


def best(run: Run, metric: str, backend: str, **parameters: Any) -> Measure | None:
    """The measure of a backend at the placement that suits it best."""
    found = [m for m in run.find("mem", metric, **parameters) if m.backend == backend]
    return min(found, key=lambda measure: measure.summary.mean, default=None)


def fill_max(run: Run, entry: str) -> int:
    """The fullest space with such entries in which we were measured."""
    fills = [
        measure.parameters["fill"]
        for measure in run.find("mem", "take", entry=entry)
        if measure.backend == OURS
    ]
    return max(fills, default=0)


def beside_us(
    run: Run, experiment: str, metric: str, **fixed: Any
) -> Iterator[tuple[Measure, Measure]]:
    """Ours and each peer's, at the same parameters; in `mem` the peer's at its better placement.

    There we have no server, and so no placement but one.
    """
    found = list(run.find(experiment, metric, **fixed))
    if experiment == "mem":
        yield from _beside_us_placed(found)
        return
    ours = {told(measure.parameters): measure for measure in found if measure.backend == OURS}
    for measure in found:
        same = ours.get(told(measure.parameters))
        if same is not None and is_peer(measure.backend):
            yield same, measure


def _beside_us_placed(measures: Sequence[Measure]) -> Iterator[tuple[Measure, Measure]]:
    """Ours and each peer's, at the same parameters but for the placement, each at its best."""
    least: dict[tuple[str, str], Measure] = {}
    for measure in measures:
        cell = measure.backend, told({**measure.parameters, "placement": ""})
        if cell not in least or measure.summary.mean < least[cell].summary.mean:
            least[cell] = measure
    for (backend, parameters), measure in least.items():
        same = least.get((OURS, parameters))
        if same is not None and is_peer(backend):
            yield same, measure


def is_faster_than(one: Measure, other: Measure) -> bool | None:
    """Whether one is significantly faster than the other; None if it is, by too few repeats.

    Where the test tells them apart, it says which is the faster, too: a single repeat during which
    the machine stood still can turn the means around.
    """
    apart = differ(one.independent, other.independent)
    if apart:
        return is_mostly_below(one.independent, other.independent)
    return False if one.summary.mean >= other.summary.mean else apart
