"""Checks the record of a run of `tupelo bench all`: each peer of CI has figures in each experiment.

A run that measured nothing ends as well as any other: a cell without time is "over budget", and a
peer that is not there "not installed". Neither is a failure of the suite, but both are one of CI,
which installs these peers, and whose run has nothing to show without them. How many cells there
were is not checked: that depends on the machine.
"""

import sys
from pathlib import Path

from tupelo.bench.backends.base import Peer
from tupelo.bench.backends.registry import PEERS
from tupelo.bench.experiments.base import Experiment
from tupelo.bench.experiments.everything import EXPERIMENTS
from tupelo.bench.harness.record import Run, load

IN_CI = ("tupelo-shm", "tupelo-mem", "mp-queue", "mp-manager", "sqlite", "redis", "udp")


def findings(run: Run) -> list[str]:
    """What was not measured, one line each."""
    found = [f"{each.experiment}, {each.backend}: {each.why}: {each.text}" for each in run.failures]
    return found + [
        f"{experiment.name}, {peer.name}: {_why(run, experiment, peer)}"
        for experiment in EXPERIMENTS
        for peer in experiment.peers(PEERS)
        if peer.name in IN_CI and not _is_done(run, experiment, peer)
    ]


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
