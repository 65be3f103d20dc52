"""All experiments, in the order of `tupelo bench all`. Worker processes import this, no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.experiments.cases import Cases
from tupelo_bench.experiments.mem import Mem
from tupelo_bench.experiments.rpc import RPC
from tupelo_bench.experiments.settle import Settle
from tupelo_bench.experiments.sort import Sort
from tupelo_bench.experiments.yardsticks import Yardsticks, YardsticksAtEnd

if TYPE_CHECKING:
    from tupelo_bench.experiments.base import Experiment

YARDSTICKS: Experiment = Yardsticks()
YARDSTICKS_AT_END: Experiment = YardsticksAtEnd()
EXPERIMENTS: tuple[Experiment, ...] = (Mem(), Settle(), Cases(), RPC(), Sort())
