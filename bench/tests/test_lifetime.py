"""Nothing that a run has started is left when the run is killed, however early."""

import os
import random
import subprocess
import sys

import pytest

KILLS = 12

# Who has lost its parent becomes a child of this one, which waits until it has none.
REAPER = """
import ctypes, os, signal, subprocess, sys, time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
PATIENCE_S = 30
after_s, *command = sys.argv[1:]

def left(*_):
    children = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
    print(*(Path("/proc", child, "cmdline").read_text() for child in children))
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    os._exit(1)

signal.signal(signal.SIGALRM, left)
assert not ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
program = subprocess.Popen(command, stdout=subprocess.PIPE)
begun = program.stdout.readline()
assert begun == b"begun\\n", begun
signal.alarm(PATIENCE_S)
if float(after_s):
    time.sleep(float(after_s))
    program.kill()
assert program.wait() == -signal.SIGKILL, program.returncode
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
"""
BEGIN = """
import os, signal, sys, time
from multiprocessing import forkserver
from pathlib import Path
from tupelo_bench.backends.manager import Manager
from tupelo_bench.experiments.cases.skeleton import begin_together
from tupelo_bench.harness import lifetime, workers

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

def until_orphaned(parent=os.getpid()):
    while os.getppid() == parent:
        time.sleep(0.001)

print("begun", flush=True)
"""
EARLY = f"""
{BEGIN}
os.register_at_fork(after_in_parent=killed, after_in_child=until_orphaned)
"""
SERVER = 'lifetime.Server(["sleep", "3600"], Path(sys.argv[1]), os.sched_getaffinity(0))'
PROGRAM = 'lifetime.PipedProgram(["sleep", "3600"])'
# It is killed when it has told the process that forks what to do, which has not begun to.
WORKER = f"""
{BEGIN}
two = workers.CONTEXT.Barrier(2)
task = workers.Task(None, 0, None, begin_together, ())  # of two, of which one never comes
forkserver.read_signed = lambda _: killed()
workers.CONTEXT.Process(target=workers._work, args=(None, two, task)).start()
"""
MANAGER = f"""
{BEGIN}
forkserver.read_signed = lambda _: killed()
Manager().start(Path(sys.argv[1]), os.sched_getaffinity(0))
"""
ANY_TIME = f"""
{BEGIN}
{SERVER}
Manager().start(Path(sys.argv[1]), os.sched_getaffinity(0))
while True:
    workers.run([(begin_together, ())] * 2, deadline=None)
"""


def assert_nothing_is_left(text, folder, after_s=0.0):
    """Run a program that kills itself, or is killed so long after it has begun."""
    command = [sys.executable, "-c", REAPER, str(after_s), sys.executable, "-c", text, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.parametrize(
    "text",
    [f"{EARLY}{SERVER}", f"{EARLY}{PROGRAM}", WORKER, MANAGER],
    ids=["server", "program", "worker", "manager"],
)
def test_what_begins_when_the_run_is_already_killed_ends_at_once(text, tmp_path):
    assert_nothing_is_left(text, tmp_path)


def test_nothing_is_left_of_a_run_that_is_killed_at_any_moment(tmp_path):
    seed = int(os.environ.get("TUPELO_SEED", str(random.randrange(1 << 32))))
    print(f"TUPELO_SEED={seed}")  # noqa: T201 - shown if it fails
    choice = random.Random(seed)
    for number in range(KILLS):
        # A folder for each, as a run has: a manager that is killed leaves its socket there.
        folder = tmp_path / str(number)
        folder.mkdir()
        assert_nothing_is_left(ANY_TIME, folder, choice.uniform(0.001, 0.5))
