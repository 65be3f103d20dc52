"""`tupelo rm --idle` in a `/dev/shm` of its own: it looks at every space of the user."""

import subprocess
import sys

import pytest

MOUNTED = "mount -t tmpfs -o size=64m tupelo-test /dev/shm"
NAMESPACES = ("unshare", "--mount", "--map-root-user", "sh", "-c")

PROGRAM = """
import json, os, subprocess, sys
import tupelo as ts

def command(*words):
    script = "from tupelo.command_line import main; main()"
    words = [sys.executable, "-c", script, *words]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended
    return ended.stdout

def left():
    return sorted(one["name"] for one in ts.spaces())

for name in ("one", "two"):
    command("put", f"shm://{name}", "job", "1")
used = ts.connect("shm://used")
used.put("job", 1)
killed = "import tupelo as ts; ts.connect('shm://killed').put('job', 1); import os; os._exit(0)"
subprocess.run([sys.executable, "-c", killed], check=True)
assert command("rm", "--idle", "1h", "--yes") == ""
assert left() == ["killed", "one", "two", "used"]
removed = command("rm", "--idle", "0s", "--yes", "--json")
urls = sorted(json.loads(line)["url"] for line in removed.splitlines())
assert urls == ["shm://killed", "shm://one", "shm://two"], urls
assert left() == ["used"]
print("done")
"""


def in_a_namespace(command, *words):
    return subprocess.run(
        [*NAMESPACES, f'{MOUNTED} && exec {command} "$@"', "sh", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_spaces_that_nobody_uses_and_that_are_old_enough_are_removed():
    if (refused := in_a_namespace("true")).returncode != 0:
        pytest.skip(f"this user may not mount a file system: {refused.stderr.strip()}")
    ended = in_a_namespace(sys.executable, "-c", PROGRAM)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
