"""Processes of an experiment: results, raw files, failures and deadlines."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from tupelo_bench.harness import workers
from tupelo_bench.harness.lifetime import Server
from tupelo_bench.harness.workers import OverBudgetError, WorkerFailedError, WrongResultError


def measures(bench, what):
    bench.start.wait()
    with bench.profiler.time("work"):
        pass
    return what + bench.number, os.getpid()


def fails(bench):
    message = f"number {bench.number} has a reason"
    raise RuntimeError(message)


def is_wrong(bench):
    message = f"number {bench.number} expected 1, found 2"
    raise WrongResultError(message)


def waits_for_ever(_bench, path):
    path.write_text(str(os.getpid()))
    time.sleep(3_600)


def dies(_bench):
    os._exit(7)


def pinned(_bench):
    return os.sched_getaffinity(0)


def test_each_process_measures_for_itself():
    results, profilers = workers.run([(measures, (10,)), (measures, (20,))], deadline=None)
    assert [number for number, _ in results] == [10, 21]
    assert len({pid for _, pid in results} | {os.getpid()}) == 3
    assert all(profiler.tracks["work"].total_operations == 1 for profiler in profilers)


def test_a_failure_comes_with_its_traceback_and_ends_the_others(tmp_path):
    path = tmp_path / "pid"
    with pytest.raises(WorkerFailedError, match="number 1 has a reason"):
        workers.run([(waits_for_ever, (path,)), (fails, ())], deadline=None)
    if path.exists() and path.read_text():  # it may have been ended before it came that far
        assert_gone(int(path.read_text()))


def test_a_process_that_dies_is_a_failure():
    with pytest.raises(WorkerFailedError, match="exit code 7"):
        workers.run([(dies, ())], deadline=None)


def test_a_wrong_result_is_told_as_such():
    with pytest.raises(WrongResultError, match="expected 1, found 2"):
        workers.run([(is_wrong, ())], deadline=None)


def test_the_deadline_ends_all_processes(tmp_path):
    path = tmp_path / "pid"
    with pytest.raises(OverBudgetError):
        workers.run([(waits_for_ever, (path,))], deadline=time.monotonic() + 2)
    if path.exists() and path.read_text():
        assert_gone(int(path.read_text()))


def test_a_process_runs_where_it_is_told_to():
    cpu = min(os.sched_getaffinity(0))
    results, _ = workers.run([(pinned, ())], deadline=None, cpus=[[cpu]])
    assert results == [{cpu}]


def assert_gone(pid):
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_interrupt_before_all_have_begun_ends_those_that_have(tmp_path, monkeypatch):
    make, made = workers.CONTEXT.Process, []

    def interrupted():
        raise KeyboardInterrupt

    def process(**options):
        made.append(make(**options))
        if len(made) == 2:
            made[1].start = interrupted
        return made[-1]

    monkeypatch.setattr(workers.CONTEXT, "Process", process)
    monkeypatch.setattr(workers, "GRACE_S", 3_600)  # nobody is waited for in vain
    targets = [(waits_for_ever, (tmp_path / str(number),)) for number in range(2)]
    with pytest.raises(KeyboardInterrupt):
        workers.run(targets, deadline=None)
    assert not multiprocessing.active_children()


TOLD_TO_END = """
import os, signal, sys
from pathlib import Path
from tupelo_bench.harness.lifetime import Server
signal.signal(signal.SIGTERM, signal.default_int_handler)
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGTERM))
try:
    Server(["sleep", "60"], Path(sys.argv[1]), os.sched_getaffinity(0))
except KeyboardInterrupt:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("ended, and no server is left")
"""


def test_who_is_told_to_end_while_a_server_begins_ends_and_so_does_the_server(tmp_path):
    command = [sys.executable, "-c", TOLD_TO_END, tmp_path]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert (told.stdout, told.stderr) == ("ended, and no server is left\n", "")


def test_a_server_can_be_told_to_end(tmp_path):
    server = Server(["sleep", "60"], tmp_path, os.sched_getaffinity(0))
    server.stop()
    assert server.process.returncode == -signal.SIGTERM
