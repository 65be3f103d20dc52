"""The record of a run: measured now, or one of an earlier run."""

from __future__ import annotations

import datetime as dt
import sys
import time
from typing import TYPE_CHECKING

from tupelo_bench.backends.installed import lacking
from tupelo_bench.backends.registry import UnknownPeerError, chosen, named
from tupelo_bench.command.arguments import budget_s
from tupelo_bench.experiments.base import OURS
from tupelo_bench.experiments.everything import EXPERIMENTS, YARDSTICKS, YARDSTICKS_AT_END
from tupelo_bench.experiments.workload import recorded
from tupelo_bench.harness import machine
from tupelo_bench.harness.folders import remove_left_behind
from tupelo_bench.harness.progress import Progress
from tupelo_bench.harness.quantiles import pool
from tupelo_bench.harness.record import BadRecordError, Run, load
from tupelo_bench.harness.sittings import added, repeats_before, require_same_plan, without
from tupelo_bench.harness.stopping import deaf, go_on
from tupelo_bench.runner import Options, Runner

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from tupelo.terminal import Terminal
    from tupelo_bench.backends.base import Peer
    from tupelo_bench.experiments.base import Experiment

REPEATS = 10
# Of each peer in an experiment, at most: after each of them a repeat is done of every cell. A visit
# takes so long at least, for all peers and experiments: in a shorter one slow cells have no time.
VISITS_MAX, VISIT_LEAST_S = 5, 5_400.0
QUICK_REPEATS = 2


class LackingError(Exception):
    """What every experiment needs is not installed."""


def measure(wanted: Sequence[Experiment], options: argparse.Namespace, terminal: Terminal) -> Run:
    """Run the yardsticks and the experiments.

    Raises:
        LackingError: there is no NumPy.
        UnknownPeerError: a name that nobody has, or who is compared with is not measured.
    """
    if why := lacking("numpy"):
        message = f"{why}, which every experiment needs: pip install ./bench in a checkout"
        raise LackingError(message)
    peers = named(options.peer) if options.peer else chosen(options.vs)
    if options.against and options.against not in [peer.name for peer in peers]:
        option = "--peer" if options.peer else f"--vs {options.vs}"
        message = f"--against {options.against} is not measured: add it to {option}"
        raise UnknownPeerError(message)
    run = Run(
        command=["tupelo", "bench", *sys.argv[1:]],
        begin=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        seed=options.seed,
        quick=options.quick,
        machine=machine.describe(),
        versions=machine.versions(),
    )
    repeats = options.repeats or (QUICK_REPEATS if options.quick else REPEATS)
    workload = recorded(options.workload) if options.workload else None
    old = earlier(options, wanted, peers)
    asked = Options(
        options.quick, repeats, options.seed, budget_s(options),
        workload, options.operations, options.entries,
        not options.quick, visits(options), repeats_before(old) if old else {},
    )  # fmt: skip
    progress = Progress(terminal)
    runner = Runner(run, asked, progress, OURS)
    begin = time.monotonic()
    in_turn = (YARDSTICKS, *wanted, YARDSTICKS_AT_END)
    remove_left_behind()
    deaf()  # before any peer starts a process
    runner.all_of([block for each in in_turn for block in each.blocks(peers, asked)])
    go_on()
    # So it follows from what the record will say, also when it is computed anew from that.
    run.measures = [measure.rounded() for measure in run.measures]
    run.duration_s = round(time.monotonic() - begin, 1)
    run = added(old, run) if old else run
    pool(run)
    for experiment in EXPERIMENTS if old else wanted:
        run.measures += experiment.derive(run)
    return run


def visits(options: argparse.Namespace) -> int:
    """How often each peer has its turn in an experiment, with the time that there is."""
    if options.quick:
        return 1
    seconds = budget_s(options)
    if seconds is None:
        return VISITS_MAX
    return max(1, min(VISITS_MAX, int(seconds // VISIT_LEAST_S)))


def earlier(
    options: argparse.Namespace, wanted: Sequence[Experiment], peers: Sequence[type[Peer]]
) -> Run | None:
    """The record that is resumed, if there is one in that folder already.

    Without what is measured anew: of the systems that are named, else of all, also of those that
    are not installed here.

    Raises:
        BadRecordError: it can not be resumed so.
    """
    if options.resume is None or not (options.resume / "run.json").exists():
        return None
    old = load(options.resume / "run.json")
    require_same_plan(old, quick=options.quick, seed=options.seed)
    if not options.anew:
        return old
    is_a_part = options.peer or options.vs is not None
    backends = [peer.name for peer in peers] if is_a_part else None
    return without(old, [experiment.name for experiment in wanted], backends)


def again(path: Path, wanted: Sequence[Experiment], against: str | None = None) -> Run:
    """The record of an earlier run; what follows from its measures is computed anew.

    Raises:
        BadRecordError: it is none, or has nothing of what is wanted or of who is compared with.
    """
    run = load(path)
    there = [measure.experiment for measure in run.measures]
    if not any(experiment.name in there for experiment in wanted):
        of = ", ".join(dict.fromkeys(name for name in there if name != YARDSTICKS.name))
        names = " and ".join(experiment.name for experiment in wanted)
        message = f"{path} has no measure of {names}: it is of {of or 'nothing'}"
        raise BadRecordError(message)
    backends = dict.fromkeys(measure.backend for measure in run.measures)
    if against and against not in backends:
        message = f"{path} has no measure of {against}: it is of {', '.join(backends)}"
        raise BadRecordError(message)
    run.measures = [
        *(measure for measure in run.measures if not measure.derived),
        *(measure for experiment in wanted for measure in experiment.derive(run)),
    ]
    return run
