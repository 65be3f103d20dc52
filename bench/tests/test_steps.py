"""Programs that prepare something for a peer."""

import os
import select
import subprocess
import sys

import pytest

from tupelo_bench.harness.lifetime import ServerFailedError
from tupelo_bench.harness.steps import step

PATIENCE_S = 60


def test_a_step_that_fails_says_why(tmp_path):
    with pytest.raises(ServerFailedError, match=r"cc failed\n(.*\n)*.*no-such-file"):
        step(tmp_path, "cc", "no-such-file.c")


def test_what_a_step_keeps_for_a_while_lies_in_its_folder(tmp_path):
    step(tmp_path, "sh", "-c", 'test "$TMPDIR" = "$PWD"')


PREPARES = """
import sys
from pathlib import Path

from tupelo_bench.harness.steps import step
from tupelo_bench.harness.stopping import listen

listen()
# The step says to its parent that it shall end: at times before `Popen` has returned.
program = "sleep 1000 & kill -HUP $PPID; sleep 1000"
step(Path.cwd(), "sh", "-c", program, pass_fds=[int(sys.argv[1])])
"""


def test_a_run_that_is_told_to_end_leaves_nothing_of_a_step(tmp_path):
    receiver, sender = os.pipe()
    words = [sys.executable, "-c", PREPARES, str(sender)]
    ended = subprocess.run(
        words, cwd=tmp_path, pass_fds=[sender], capture_output=True, text=True, check=False
    )
    os.close(sender)
    assert ended.stderr.splitlines()[-1:] == ["KeyboardInterrupt"]
    # Nobody has the other end any more.
    ready, _, _ = select.select([receiver], [], [], PATIENCE_S)
    assert ready == [receiver]
    assert os.read(receiver, 1) == b""
    os.close(receiver)
