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
        before = set(SHM.iterdir())
        result = subprocess.run(
            [sys.executable, "-m", "tupelo.bench", *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        left = [path.name for path in set(SHM.iterdir()) - before if "bench-" in path.name]
        assert not left
        return result

    return run
