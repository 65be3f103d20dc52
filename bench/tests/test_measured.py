"""What CI asks of its run of the suite: that everything was measured there."""

import runpy
from pathlib import Path

import pytest
from records import run_of

from tupelo_bench.backends.registry import PEERS
from tupelo_bench.experiments.everything import EXPERIMENTS
from tupelo_bench.harness.record import Measure, Remark
from tupelo_bench.runner import Options

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "check_measured.py"))


def findings(measures, remarks=()):
    """What the tool says of a quick run with these measures."""
    run = run_of(*measures, remarks=remarks)
    run.quick = True
    return TOOL["findings"](run)


def measured():
    """A figure of each cell of each peer of CI in each experiment in which it takes part."""
    return [
        Measure(experiment.name, peer.name, job.parameters, "put", "s", [1.0])
        for experiment in EXPERIMENTS
        for peer in experiment.peers(PEERS)
        if peer.name in TOOL["IN_CI"]
        for job in experiment.jobs(peer, Options(quick=True))
    ]


def test_a_run_in_which_everything_was_measured_passes():
    assert findings(measured()) == []


def test_what_a_peer_can_not_do_need_not_be_measured():
    rest = [m for m in measured() if (m.experiment, m.backend) != ("cases", "mp-queue")]
    can_not = Remark("cases", "mp-queue", {}, "can not", "it has no keys")
    assert findings(rest, remarks=[can_not]) == []


@pytest.mark.parametrize("why", ["not installed", "over budget"])
@pytest.mark.parametrize("experiment", [experiment.name for experiment in EXPERIMENTS])
def test_a_run_in_which_a_peer_of_ci_has_no_figure_does_not_pass(experiment, why):
    rest = [m for m in measured() if (m.experiment, m.backend) != (experiment, "redis")]
    found = findings(rest, remarks=[Remark(experiment, "redis", {}, why, "as it is")])
    assert found == [f"{experiment}, redis: nothing was measured: {why} (as it is)"]


@pytest.mark.parametrize("experiment", [experiment.name for experiment in EXPERIMENTS])
def test_a_cell_of_which_the_record_says_nothing_does_not_pass(experiment):
    every = measured()
    lost = next(m for m in every if (m.experiment, m.backend) == (experiment, "tupelo-shm"))
    rest = [m for m in every if m is not lost]
    (found,) = findings(rest)
    assert found.startswith(f"{experiment}, tupelo-shm ")
    assert found.endswith(": neither measured nor left out")
    late = Remark(experiment, "tupelo-shm", lost.parameters, "over budget", "not tried")
    assert findings(rest, remarks=[late]) == []


def test_a_run_in_which_nothing_was_measured_does_not_pass():
    found = findings(())
    assert len(found) >= 5 * len(EXPERIMENTS)
    assert "mem, tupelo-shm: nothing was measured: nothing says why" in found


def test_a_failure_does_not_pass_whatever_was_measured():
    hung = Remark("mem", "tupelo-shm", {}, "failed", "it hung")
    assert findings(measured(), remarks=[hung]) == ["mem, tupelo-shm: failed: it hung"]
