"""All experiments, in the order of `tupelo bench all`. Worker processes import this, no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo.bench.experiments.cases import Cases
from tupelo.bench.experiments.mem import Mem
from tupelo.bench.experiments.rpc import RPC
from tupelo.bench.experiments.settle import Settle
from tupelo.bench.experiments.sort import Sort
from tupelo.bench.experiments.yardsticks import Yardsticks, YardsticksAtEnd

if TYPE_CHECKING:
    from tupelo.bench.experiments.base import Experiment

YARDSTICKS: Experiment = Yardsticks()
YARDSTICKS_AT_END: Experiment = YardsticksAtEnd()
EXPERIMENTS: tuple[Experiment, ...] = (Mem(), Settle(), Cases(), RPC(), Sort())
