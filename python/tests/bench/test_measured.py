"""What CI asks of its run of the suite: that everything was measured there."""

import runpy
from pathlib import Path

import pytest
from records import run_of

from tupelo.bench.experiments.everything import EXPERIMENTS
from tupelo.bench.harness.record import Measure, Remark

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "check_measured.py"))


def measured():
    """A figure of each peer of CI in each experiment in which it takes part."""
    return [
        Measure(experiment.name, peer, {}, "put", "s", [1.0])
        for experiment in EXPERIMENTS
        for peer in TOOL["IN_CI"]
    ]


def test_a_run_in_which_everything_was_measured_passes():
    assert TOOL["findings"](run_of(*measured())) == []


def test_what_a_peer_can_not_do_need_not_be_measured():
    rest = [m for m in measured() if (m.experiment, m.backend) != ("cases", "mp-queue")]
    can_not = Remark("cases", "mp-queue", {}, "can not", "it has no keys")
    assert TOOL["findings"](run_of(*rest, remarks=[can_not])) == []


@pytest.mark.parametrize("why", ["not installed", "over budget"])
@pytest.mark.parametrize("experiment", [experiment.name for experiment in EXPERIMENTS])
def test_a_run_in_which_a_peer_of_ci_has_no_figure_does_not_pass(experiment, why):
    rest = [m for m in measured() if (m.experiment, m.backend) != (experiment, "redis")]
    run = run_of(*rest, remarks=[Remark(experiment, "redis", {}, why, "as it is")])
    assert TOOL["findings"](run) == [f"{experiment}, redis: nothing was measured: {why} (as it is)"]


def test_a_run_in_which_nothing_was_measured_does_not_pass():
    found = TOOL["findings"](run_of())
    assert len(found) >= 5 * len(EXPERIMENTS)
    assert "mem, tupelo-shm: nothing was measured: nothing says why" in found


def test_a_failure_does_not_pass_whatever_was_measured():
    hung = Remark("mem", "tupelo-shm", {}, "failed", "it hung")
    assert TOOL["findings"](run_of(*measured(), remarks=[hung])) == [
        "mem, tupelo-shm: failed: it hung"
    ]
