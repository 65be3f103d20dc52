"""Runs the cells of experiments, one after the other, within a budget, and records what comes out.

A `Job` is one backend at one set of parameters, a cell. It is repeated. Each repeat gets fresh
spaces and a seed of its own. The module `budget` shares the time among the blocks. The jobs of a
block have a server in common, and each block is the `turn` of one peer.
"""

from tupelo_bench.runner.blocks import Runner
from tupelo_bench.runner.job import Block, Job
from tupelo_bench.runner.options import REPEATS_MIN, Options
from tupelo_bench.runner.server import started
from tupelo_bench.runner.stage import Stage

__all__ = ["REPEATS_MIN", "Block", "Job", "Options", "Runner", "Stage", "started"]
