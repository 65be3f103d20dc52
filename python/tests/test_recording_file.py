"""How lines get into the files of a record: of who is killed, and where there is no room, too."""

import json
import sys

from recorded_programs import RECORD, lines_of, run, words

FULL = """
import errno, os, sys
import tupelo as ts
from tupelo.recording import file
fallocate, asked = os.posix_fallocate, []
def full(*where):
    asked.append(where)
    raise OSError(errno.ENOSPC, "No space left on device")
with ts.connect(sys.argv[1], fresh=True) as space:
    space.put("whole", 1)
    os.posix_fallocate = full
    while not asked:
        space.count("fills", int)
    space.put("gone", 1)
    assert len(asked) == 1
    os.posix_fallocate = fallocate
    space.put("gone", 2)
    assert space.count("gone", int) == 2
"""


def test_where_the_disk_is_full_the_record_of_a_process_ends_and_the_process_goes_on(
    tmp_path, shm_url
):
    done, lines = lines_of(tmp_path, shm_url, FULL)
    assert words(lines, "put") == [['"whole"', "1"]]
    assert "is no longer recorded: [Errno 28] No space left on device" in done.stderr
    assert "torn" not in done.stderr


KILLED = """
import os, signal, sys, threading
import tupelo as ts
from tupelo.recording import file
file.FIRST_BYTES = file.LAST_BYTES = 4_096
MANY = 5_000
space = ts.connect(sys.argv[1], fresh=True)
def puts(name):
    for number in range(MANY):
        space.put(name, number)
threads = [threading.Thread(target=puts, args=(name,)) for name in ("one", "other")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if not (child := os.fork()):
    puts("child")
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
space.put("x" * 60, *["y" * 60] * 63)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_of_killed_processes_and_of_all_their_threads_every_line_is_there(tmp_path, shm_url):
    program, out = tmp_path / "program.py", tmp_path / "run.jsonl"
    program.write_text(KILLED)
    done = run([*RECORD, out, "--", sys.executable, program, shm_url])
    assert done.returncode == 128 + 9, done.stderr
    assert "torn" not in done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    *puts, large = words(lines, "put")
    assert sorted(map(tuple, puts)) == sorted(
        (f'"{name}"', str(n)) for name in ("one", "other", "child") for n in range(5_000)
    )
    assert len(large) == 64
    assert len({line["pid"] for line in lines}) == 2


CLOSES = """
import os, sys
import tupelo as ts
with ts.connect(sys.argv[1], fresh=True) as space:
    space.put("before", 1)
    os.closerange(3, 256)
    own = [open(os.devnull) for _ in range(8)]
    for number in range(5_000):
        space.put("after", number)
    for file in own:
        file.close()  # each is still its own
"""


def test_a_program_that_closes_what_is_not_its_own_is_recorded_and_keeps_its_files(
    tmp_path, shm_url
):
    _, lines = lines_of(tmp_path, shm_url, CLOSES)
    assert len(words(lines, "put")) == 5_001
