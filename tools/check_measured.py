"""Checks the record of a run of `tupelo bench all`: each peer of CI has figures in each experiment.

A run that measured nothing ends as well as any other: a cell without time is "over budget", and a
peer that is not there "not installed". Neither is a failure of the suite, but both are one of CI,
which installs these peers, and whose run has nothing to show without them.

Of every cell there is a figure, or the record says why not. On a slow machine that may be that its
turn never came. Who was asked and did not answer has failed: in the smallest sizes no cell is
stopped because its time was over.
"""

import sys
from pathlib import Path

from tupelo_bench.backends.base import Peer
from tupelo_bench.backends.registry import PEERS
from tupelo_bench.experiments.base import Experiment
from tupelo_bench.experiments.everything import EXPERIMENTS
from tupelo_bench.harness.parameters import told
from tupelo_bench.harness.record import Run, load
from tupelo_bench.runner import Options

IN_CI = ("tupelo-shm", "tupelo-mem", "mp-queue", "mp-manager", "sqlite", "redis", "udp")


def findings(run: Run) -> list[str]:
    """What was not measured, one line each."""
    found = [f"{each.experiment}, {each.backend}: {each.why}: {each.text}" for each in run.failures]
    for experiment in EXPERIMENTS:
        for peer in experiment.peers(PEERS):
            if peer.name not in IN_CI:
                continue
            if not _is_done(run, experiment, peer):
                found.append(f"{experiment.name}, {peer.name}: {_why(run, experiment, peer)}")
                continue
            found += [
                f"{experiment.name}, {peer.name} {cell}: neither measured nor left out"
                for cell in _unexplained(run, experiment, peer)
            ]
    return found


def _unexplained(run: Run, experiment: Experiment, peer: type[Peer]) -> list[str]:
    """The cells that have no figure, and of which nothing says why."""
    here = (experiment.name, peer.name)
    measured = (m.parameters for m in run.measures if (m.experiment, m.backend) == here)
    left_out = (r.parameters for r in run.left_out if (r.experiment, r.backend) == here)
    known = {told(parameters) for parameters in (*measured, *left_out)}
    if told({}) in known:  # what is said of the whole peer is said of each of its cells
        return []
    jobs = experiment.jobs(peer, Options(quick=run.quick))
    return [cell for job in jobs if (cell := told(job.parameters)) not in known]


def _is_done(run: Run, experiment: Experiment, peer: type[Peer]) -> bool:
    """Whether it was measured there, or can not do anything of that."""
    reasons = {
        remark.why for remark in run.left_out
        if (remark.experiment, remark.backend) == (experiment.name, peer.name)
    }  # fmt: skip
    return reasons == {"can not"} or any(
        measure.backend == peer.name for measure in run.of(experiment.name)
    )


def _why(run: Run, experiment: Experiment, peer: type[Peer]) -> str:
    reasons = {
        f"{remark.why} ({remark.text})" for remark in run.left_out
        if (remark.experiment, remark.backend) == (experiment.name, peer.name)
    }  # fmt: skip
    return f"nothing was measured: {'; '.join(sorted(reasons)) or 'nothing says why'}"


if __name__ == "__main__":
    found = findings(load(Path(sys.argv[1])))
    print("\n".join(found) or "every peer of CI was measured in every experiment")
    sys.exit(bool(found))
