"""What the tests of the suite share."""

import os
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import monotonic, sleep

import pytest

import tupelo as ts

SHM = Path("/dev/shm")  # noqa: S108
NUMBERS = count()


@pytest.fixture
def bench():
    """Return a function that runs `python -m tupelo_bench` and sees that nothing is left behind."""

    def run(*words):
        # However slow the machine is, a test sees every cell.
        measures = not {"--budget", "--record", "peers"} & set(map(str, words))
        limit = ("--budget", "none") if measures else ()
        command = [sys.executable, "-m", "tupelo_bench", *map(str, words), *limit]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as child:
            output, errors = child.communicate(timeout=600)
        # The names of its spaces begin with its number: others may run beside it.
        left = [path.name for path in SHM.iterdir() if f"bench-{child.pid}-" in path.name]
        assert not left
        return subprocess.CompletedProcess(command, child.returncode, output, errors)

    return run


@pytest.fixture
def new_url():
    """Return a function that makes up URLs; what was made there is removed at the end."""
    urls = []

    def new_url(scheme):
        urls.append(f"{scheme}://test-bench-{os.getpid()}-{next(NUMBERS)}")
        return urls[-1]

    yield new_url
    for url in urls:
        with suppress(ts.SpaceNotFound):
            ts.remove(url)


@pytest.fixture
def eventually():
    """Return a function that waits until a condition holds, looking again and again."""

    def eventually(condition):
        give_up_at = monotonic() + 60
        while not condition():
            assert monotonic() < give_up_at, "it never happened"
            sleep(0.001)

    return eventually
