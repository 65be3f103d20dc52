"""What the tests of the suite share."""

import subprocess
import sys
from pathlib import Path

import pytest

SHM = Path("/dev/shm")  # noqa: S108


@pytest.fixture
def bench():
    """Return a function that runs `python -m tupelo.bench` and sees that nothing is left behind."""

    def run(*words):
        # However slow the machine is, a test sees every cell.
        measures = not {"--budget", "--record", "peers"} & set(map(str, words))
        limit = ("--budget", "none") if measures else ()
        command = [sys.executable, "-m", "tupelo.bench", *map(str, words), *limit]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as child:
            output, errors = child.communicate(timeout=600)
        # The names of its spaces begin with its number: others may run beside it.
        left = [path.name for path in SHM.iterdir() if f"bench-{child.pid}-" in path.name]
        assert not left
        return subprocess.CompletedProcess(command, child.returncode, output, errors)

    return run
