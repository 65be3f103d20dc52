"""The console script where a space can not be used: its exit codes, and what `doctor` says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from console import command, run
from elsewhere import BECOME_SOMEBODY, in_pid_namespace, needs_superuser
from segments import SOMEBODY, file_of, flip, refusal, withhold

import tupelo as ts

WAY_OUT = "run as the owner of the file, have it removed, or give your space another name"


@pytest.fixture
def made(shm_url):
    """Return the file of a space that nobody is connected to."""
    ts.connect(shm_url).close()
    return file_of(shm_url)


COMMANDS = {
    "put": ("put", "{url}", "job", "7"),
    "read": ("read", "{url}", "job", ":int", "--try"),
    "take": ("take", "{url}", "job", ":int", "--timeout", "60s"),
    "ls": ("ls", "{url}"),
    "stat": ("stat", "{url}", "--json"),
    "top": ("top", "{url}", "--count", "1"),
    "watch": ("watch", "{url}", "job", "...", "--count", "1"),
    "dead": ("dead", "{url}"),
    "requeue": ("requeue", "{url}", "..."),
    "rm": ("rm", "{url}", "job", ":int", "--yes"),
    "explain": ("explain", "{url}", "job", ":int"),
}


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_command_on_a_space_of_another_user_ends_with_4(shm_url, made, verb):
    withhold(made)
    refused = run(*(word.format(url=shm_url) for word in COMMANDS[verb]))
    assert (refused.returncode, refused.stdout) == (4, "")
    assert refused.stderr == f"tupelo: TUP-006: {refusal(made)}\n  {WAY_OUT}\n"


@pytest.fixture
def planted(shm_url, made):
    """Return a file of this user in the place where another one looks for a space."""
    path = made.rename(file_of(shm_url, SOMEBODY))
    yield path
    path.unlink()


@needs_superuser
def test_to_remove_what_is_another_users_ends_with_4_and_removes_nothing(shm_url, planted):
    code = f"from tupelo.command_line import main\n{BECOME_SOMEBODY}\nmain()"
    removal = [sys.executable, "-c", code, "rm", shm_url, "--yes"]
    refused = subprocess.run(removal, capture_output=True, text=True, check=False, timeout=60)
    assert (refused.returncode, refused.stdout) == (4, "")
    assert refused.stderr == f"tupelo: TUP-006: {refusal(planted, SOMEBODY)}\n  {WAY_OUT}\n"


def test_a_command_in_another_pid_namespace_ends_with_1_and_doctor_says_why(shm_url, made):
    inside = in_pid_namespace()

    def run_inside(*words):
        words = [*inside, *command(*words)]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)

    ours = Path("/proc/self/ns/pid").stat().st_ino
    problem = rf"TUP-020: the space belongs to pid namespace {ours}, this process to \d+: let the "
    problem += "containers share one pid namespace, or use another name. If all processes of the "
    problem += "other one have ended, .* `tupelo adopt` .*adopt=True.* `tupelo rm` .*"
    stat = run_inside("stat", shm_url)
    assert (stat.returncode, stat.stdout) == (1, "")
    assert re.fullmatch(f"tupelo: {problem}\n", stat.stderr)
    doctor = run_inside("doctor")
    assert doctor.returncode == 1
    (line,) = lines_about(shm_url, doctor.stdout)
    assert re.fullmatch(f"fix   space           {shm_url}: {problem}", line)
    assert made.exists()


def lines_about(url, report):
    return [line for line in report.splitlines() if f"{url}:" in line]


def flipped(offset):
    return lambda path: flip(path, offset)


def poison(path):
    """Set the state that a space has once somebody has found a contradiction in it."""
    with path.open("r+b") as segment:
        segment.seek(12)
        segment.write((2).to_bytes(4, sys.byteorder))


DAMAGED = "TUP-015: the space is damaged: "
BEGIN_ANEW = (
    "nothing of a shm:// space can be had any more: remove it with `tupelo rm URL`, and begin "
    "anew. Connect to a file:// space again: its memory is made anew from the file"
)
OTHER_LAYOUT = (
    "TUP-012: the space has layout 0.0, this build expects layout 1: use the build that created "
    "it, or create the space anew"
)
ONE_VERSION = "use the same version everywhere, or another name for the new version's space"

UNUSABLE = {
    "no space": (
        flipped(0),
        DAMAGED + "the file does not begin as a space does",
        BEGIN_ANEW,
    ),
    "damaged identity": (
        flipped(72),
        DAMAGED + "the identity at its beginning fails its checksum",
        BEGIN_ANEW,
    ),
    "contradiction": (
        poison,
        DAMAGED + "an earlier operation found a contradiction in it",
        BEGIN_ANEW,
    ),
    "cut off": (
        lambda path: os.truncate(path, 100),
        DAMAGED + "{path} has 100 bytes where the beginning of a space takes 260",
        BEGIN_ANEW,
    ),
    "another layout": (
        flipped(8),
        OTHER_LAYOUT,
        ONE_VERSION,
    ),
    "another user": (withhold, "TUP-006: {refusal}", WAY_OUT),
}
"""What makes a space unusable; what is said of it then, and what to do about it."""


@pytest.mark.parametrize("how", UNUSABLE)
def test_doctor_names_a_space_that_can_not_be_used_and_says_what_to_do_c5(shm_url, made, how):
    (well,) = lines_about(shm_url, run("doctor", "--all").stdout)
    assert well.startswith(f"ok    space           {shm_url}: 0 tuples, ")
    spoil, problem, way_out = UNUSABLE[how]
    spoil(made)
    doctor = run("doctor")
    assert (doctor.returncode, doctor.stderr) == (1, "")
    text = f"{shm_url}: {problem.format(path=made, refusal=refusal(made))}; {way_out}"
    assert lines_about(shm_url, doctor.stdout) == [f"fix   space           {text}"]
    as_json = run("doctor", "--json")
    assert as_json.returncode == 1
    (told,) = lines_about(shm_url, as_json.stdout)
    assert json.loads(told) == {"level": "fix", "subject": "space", "text": text}
    removed = run("rm", shm_url, "--yes")
    assert (removed.returncode, removed.stdout) == (0, f"space removed: {shm_url}\n")
    assert lines_about(shm_url, run("doctor").stdout) == []


@pytest.mark.parametrize("how", UNUSABLE)
def test_a_command_on_a_space_that_can_not_be_used_ends_with_1_or_4_c5(shm_url, made, how):
    spoil, problem, way_out = UNUSABLE[how]
    spoil(made)
    refused = run("take", shm_url, "job", ":int")
    assert (refused.returncode, refused.stdout) == (4 if how == "another user" else 1, "")
    problem = problem.format(path=made, refusal=refusal(made))
    assert refused.stderr == f"tupelo: {problem}\n  {way_out}\n"
