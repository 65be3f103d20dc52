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
# Who waits needs a place to wait at: there is one.
try:
    space.take("n", -1, bytes, timeout=0.01)
except ts.Timeout:
    pass
for kind in (1, "a", b"a", None):  # each a shape of its own, which needs some as well
    try:
        space.put("other", kind)
    except ts.SpaceFull:
        pass
for number in range(count):
    assert space.take("n", int, bytes, timeout=0)[1] == number
again, _ = fill(0)
assert again > count // 2, (again, count)
# A step of many has to note what it does. It may be refused for that, and then is none.
try:
    assert len(space.take_all("n", int, bytes)) == again
except ts.SpaceFull:
    assert space.count("n", int, bytes) == again
print("done")
"""

# What makes room needs memory of its own, which tuples have left it.
EMPTIED = """
import os, subprocess, sys, threading
import tupelo as ts

space = ts.connect("shm://tiny", size="1G")

def fill():
    count = 0
    try:
        while True:
            space.put("n", count, bytes(1_000))
            count += 1
    except ts.SpaceFull:
        return count

def fill_the_rest():
    # Down to the last page: by who is not asked to leave anything.
    with open("/dev/shm/other", "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass

def python(program):
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()

for number in range(100):
    space.put("m", number)
count = 100 + fill()
fill_the_rest()
for _ in range(200):
    with space.claim("n", int, bytes, timeout=0):
        count -= 1
with space.transaction() as transaction:
    for _ in range(50):
        transaction.take("m", int, timeout=0)
        count -= 1
try:
    with space.claim("n", int, bytes, timeout=0):
        raise RuntimeError("goes back")
except RuntimeError:
    pass
assert space.count(ts.REST) == count, (space.count(ts.REST), count)
assert python("import tupelo as ts; print(ts.connect('shm://tiny').count(ts.REST))") == str(count)
claims = "import tupelo as ts\\nwith ts.connect('shm://tiny').claim('m', int, timeout=0): pass"
python(claims)
count -= 1
taken = []
threads = [threading.Thread(target=lambda: taken.append(space.take("n", int, bytes)))
           for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
count -= len(taken)
assert len(taken) == 3
def command(*words):
    program = os.path.join(os.path.dirname(sys.executable), "tupelo")
    ended = subprocess.run([program, *words], capture_output=True, text=True)
    assert ended.returncode == 0, ended

command("take", "shm://tiny", "m", ":int", "--try")
count -= 1
assert space.count(ts.REST) == count, (space.count(ts.REST), count)
command("rm", "shm://tiny", "n", ":int", ":bytes", "--yes")
assert space.count("n", int, bytes) == 0
space.put("n", 1, bytes(1_000))
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


def test_a_space_that_gets_no_more_memory_is_emptied_by_claims_transactions_and_commands_b1():
    if (refused := in_a_namespace("true")).returncode != 0:
        pytest.skip(f"this user may not mount a file system: {refused.stderr.strip()}")
    ended = in_a_namespace(sys.executable, "-c", EMPTIED)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
