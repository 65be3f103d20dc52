"""Spaces that are somebody else's: of another user, or of processes with other numbers."""

import subprocess
import sys
from pathlib import Path

import pytest
from elsewhere import BECOME_SOMEBODY, in_pid_namespace, needs_superuser
from segments import SOMEBODY, file_of, refusal, withhold

import tupelo as ts
from tupelo import REST, aio


@pytest.fixture
def withheld(shm_url):
    """Return the file of a space with a tuple, which this user may not use any more."""
    with ts.connect(shm_url) as space:
        space.put("job", 1)
    path = file_of(shm_url)
    withhold(path)
    return path


CONNECTS = {
    "connect": ts.connect,
    "connect to what is there": lambda url: ts.connect(url, create=False),
    "connect with limits": lambda url: ts.connect(url, tuples_max=7, when_full="wait"),
    "aio": aio.connect,
}


@pytest.mark.parametrize("connect", CONNECTS)
def test_a_space_that_this_user_may_not_use_is_refused_with_whose_it_is(shm_url, withheld, connect):
    before = withheld.stat()
    with pytest.raises(ts.AccessDenied) as caught:
        CONNECTS[connect](shm_url)
    error = caught.value
    assert isinstance(error, PermissionError)
    assert (error.code, error.space) == ("TUP-006", shm_url)
    assert str(error) == f"TUP-006: {refusal(withheld)}\n  {error.hint}"
    assert error.hint.startswith("run as the owner of the file, have it removed, or give")
    after = withheld.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_who_is_connected_goes_on_when_the_permission_is_taken_away(shm, shm_url):
    withhold(file_of(shm_url))
    shm.put("job", 1)
    assert shm.take("job", int, timeout=60) == ("job", 1)
    with pytest.raises(ts.AccessDenied):
        ts.connect(shm_url)


def as_somebody(call, url):
    """Return what a process of another user prints when it calls something for a space."""
    code = f"""
import sys
import tupelo as ts
{BECOME_SOMEBODY}
try:
    {call}
except ts.TupeloError as error:
    print(type(error).__name__, error, sep=", ")
"""
    child = subprocess.run(
        [sys.executable, "-c", code, url], capture_output=True, text=True, check=True, timeout=60
    )
    return child.stdout


@needs_superuser
def test_who_has_taken_the_permission_from_themselves_is_told_how_to_give_it_back(shm_url):
    """The superuser may use a file of any mode, so it is somebody else's program that does so."""
    told = as_somebody(
        "ts.connect(sys.argv[1]).close(); import os;"
        " path = f'/dev/shm/tupelo.{os.geteuid()}.{sys.argv[1][6:]}.v1';"
        " os.chmod(path, 0); ts.connect(sys.argv[1])",
        shm_url,
    )
    path = file_of(shm_url, SOMEBODY)
    assert told.startswith(f"AccessDenied, TUP-006: {refusal(path, SOMEBODY)}\n")
    path.unlink()


@needs_superuser
def test_each_user_has_names_of_their_own(shm, shm_url):
    shm.put("job", 1)
    there = as_somebody("ts.connect(sys.argv[1], create=False)", shm_url)
    assert there.startswith(f"SpaceNotFound, TUP-013: there is no space {shm_url}")
    own = "with ts.connect(sys.argv[1]) as own: print(own.count(ts.REST)); ts.remove(sys.argv[1])"
    assert as_somebody(own, shm_url) == "0\n"
    assert shm.take_all(REST) == [("job", 1)]


@pytest.fixture
def planted(shm, shm_url):
    """Return a file of this user in the place where another one looks for a space."""
    shm.put("job", 1)
    path = file_of(shm_url, SOMEBODY)
    path.write_bytes(file_of(shm_url).read_bytes())
    yield path
    path.unlink()


CALLS = [
    "ts.connect(sys.argv[1])",
    "ts.connect(sys.argv[1], fresh=True)",
    "ts.remove(sys.argv[1])",
]


@needs_superuser
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666])
@pytest.mark.parametrize("call", CALLS)
def test_a_file_in_the_place_of_a_space_is_refused_to_another_user(shm_url, planted, call, mode):
    """Also one that everybody may write to: it would be somebody else's space, under one's name."""
    planted.chmod(mode)
    told = as_somebody(call, shm_url)
    assert told.startswith(f"AccessDenied, TUP-006: {refusal(planted, SOMEBODY)}\n")
    assert planted.exists()


IN_NAMESPACE = """
import sys
import tupelo as ts

try:
    ts.connect(sys.argv[1], create=False)
except ts.TupeloError as error:
    print(type(error).__name__, error)
own = sys.argv[1] + "-own"
with ts.connect(own) as space:
    space.put("job", 1)
    with ts.connect(own) as again:
        print(again.take("job", int, timeout=60))
ts.remove(own)
"""


def test_a_space_of_another_pid_namespace_is_refused_and_stays_as_it_was(shm, shm_url):
    shm.put("job", 1)
    inside = subprocess.run(
        [*in_pid_namespace(), sys.executable, "-c", IN_NAMESPACE, shm_url],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    refused, own = inside.stdout.splitlines()
    ours = Path("/proc/self/ns/pid").stat().st_ino
    assert refused.startswith(
        f"TupeloError TUP-020: the space belongs to pid namespace {ours}, this process to "
    )
    assert ": let the containers share one pid namespace, or use another name" in refused
    assert "`tupelo adopt`" in refused
    assert "fresh=True) begins anew, and keeps none" in refused
    assert own == "('job', 1)"
    assert shm.take_all(REST) == [("job", 1)]
