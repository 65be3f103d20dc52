"""What a round trip costs the processors, of this process and of a server."""

import subprocess
import sys

from tupelo_bench.backends.manager import Manager
from tupelo_bench.backends.space_calls import SCHEMA, SPACE
from tupelo_bench.backends.udp import UDP
from tupelo_bench.backends.waiting import SleepingSpace, SpinningUDP
from tupelo_bench.experiments.round_trips import CPU_TIME
from tupelo_bench.experiments.rpc import calls
from tupelo_bench.harness.cpu_time import cpu_time_ns
from tupelo_bench.harness.placement import placement
from tupelo_bench.runner import Stage, started


def test_the_time_of_a_process_is_what_it_ran_with_its_children():
    # Not of this process: the time of a thread that an earlier test has left would go with it.
    works = "import time\nwhile time.process_time() < 0.2: pass\nprint(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", works], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert cpu_time_ns(child.pid) >= 180_000_000
        child.communicate(b"\n")
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {works!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert cpu_time_ns(child.pid) >= 200_000_000  # nearly all of it is the grandchild's
        child.communicate(b"\n")
    assert cpu_time_ns(child.pid) == 0


def noted(peer_type):
    with started(peer_type) as peer:
        if hasattr(peer, "create"):
            peer.create(SCHEMA, (SPACE,), 1 << 20)
        stage = Stage(peer, {}, placement("free"), 1, 0, quick=True, deadline=None)
        calls.call(stage, calls.Plan(256, 0, exchanges=50, warm_up=10))
        return {note.metric: note.samples[0] for note in stage.noted}


def test_every_way_to_call_tells_its_processor_time_with_that_of_its_server():
    for peer_type in (UDP, SpinningUDP, SleepingSpace, Manager):
        found = noted(peer_type)
        assert found[CPU_TIME] > 0
        assert found[calls.ROUND_TRIP] > 0
