"""A space of a container that was started again, taken over with its tuples if one says so."""

import subprocess
import sys

import pytest
from console import run
from elsewhere import in_pid_namespace

import tupelo as ts

FIRST = """
import os, sys
import tupelo as ts

space = ts.connect(sys.argv[1])
space.put_all([("job", 1), ("job", 2)])
claim = space.claim("job", 1, ttl=3600)
os._exit(0)
"""


@pytest.fixture
def left(shm_url):
    """Return the URL of a space whose only program has ended, in a pid namespace of its own."""
    words = [*in_pid_namespace(), sys.executable, "-c", FIRST, shm_url]
    subprocess.run(words, check=True, timeout=60)
    with pytest.raises(ts.TupeloError, match="belongs to pid namespace"):
        ts.connect(shm_url)
    return shm_url


def test_an_adopted_space_has_its_tuples_and_what_the_dead_had_claimed(left):
    with ts.connect(left, adopt=True) as space:
        assert space.take_all("job", int) == [("job", 1), ("job", 2)]
        space.put("job", 3)
    with ts.connect(left, adopt=True) as again:  # it is one of this namespace now
        assert again.read("job", int) == ("job", 3)


def test_tupelo_adopt_asks_takes_over_and_says_what_is_there(left):
    refused = run("adopt", left)
    assert refused.returncode == 2
    assert "have all processes ended" in refused.stderr
    assert run("stat", left).returncode == 1
    adopted = run("adopt", left, "--yes")
    assert (adopted.returncode, adopted.stderr) == (0, "")
    assert adopted.stdout.startswith(f"space adopted: {left}, with ")
    assert run("adopt", left).stdout.startswith(f"{left} belongs to this pid namespace")
    with ts.connect(left) as space:
        assert space.count("job", int) == 2


def test_there_may_be_nothing_to_adopt(new_url):
    with ts.connect(new_url("shm"), adopt=True) as space:
        space.put("job", 1)
    with pytest.raises(ValueError, match="only shm:// belongs to a pid namespace"):
        ts.connect("mem://nobody-adopts", adopt=True)
