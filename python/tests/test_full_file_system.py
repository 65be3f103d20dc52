"""A `/dev/shm` that is full: an error with figures, a space that goes on (B1), never a signal."""

import subprocess
import sys

import pytest

MOUNTED = "mount -t tmpfs -o size=16m tupelo-test /dev/shm"
NAMESPACES = ("unshare", "--mount", "--map-root-user", "sh", "-c")

PROGRAM = """
import sys
import tupelo as ts

def fill(number):
    try:
        while True:
            space.put("n", number, bytes(10_000))
            number += 1
    except ts.SpaceFull as error:
        return number, str(error)

space = ts.connect("shm://tiny", size="1G")
count, told = fill(0)
assert count > 500, count
assert "left of 16 MiB on the file system" in told, told
assert "a larger size of the space would not help" in told, told
# What was refused changed nothing, and what is there can be used.
assert space.count("n", int, bytes) == count
assert space.read("n", count - 1, bytes, timeout=0)
# Who waits needs a place to wait at, for which there may be no memory either: it is told so.
try:
    space.take("n", -1, bytes, timeout=0.01)
except (ts.Timeout, ts.SpaceFull):
    pass
for kind in (1, "a", b"a", None):  # each a shape of its own, which needs some as well
    try:
        space.put("other", kind)
    except ts.SpaceFull:
        pass
# A step of many has to note what it does: it is refused, and a little one is not.
try:
    space.take_all("n", int, bytes)
except ts.SpaceFull:
    assert space.count("n", int, bytes) == count
else:
    raise AssertionError("there was room for a long log: the space was not full")
for number in range(count):
    assert space.take("n", int, bytes, timeout=0)[1] == number
again, _ = fill(0)
assert again > count // 2, (again, count)
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


def test_a_full_file_system_is_an_error_with_figures_and_the_space_goes_on_b1():
    if (refused := in_a_namespace("true")).returncode != 0:
        pytest.skip(f"this user may not mount a file system: {refused.stderr.strip()}")
    ended = in_a_namespace(sys.executable, "-c", PROGRAM)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
