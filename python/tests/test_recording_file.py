"""How lines get into the files of a record: of who is killed, and where there is no room, too."""

import json
import sys

from recorded_programs import RECORD, lines_of, run, words

FULL = """
import resource, sys
import tupelo as ts
no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
with ts.connect(sys.argv[1], fresh=True) as space:
    space.put("whole", 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, no_limit[1]))  # no room for a second file
    for _ in range(1_000):
        space.count("fills", int)
    space.put("gone", 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
    space.put("gone", 2)
    assert space.count("gone", int) == 2
"""


def test_where_the_disk_is_full_the_record_of_a_process_ends_and_the_process_goes_on(tmp_path):
    done, lines = lines_of(tmp_path, "mem://full", FULL)
    assert words(lines, "put") == [['"whole"', "1"]]
    assert done.stderr.count("is no longer recorded: File too large") == 1
    assert "torn" not in done.stderr


KILLED = """
import os, signal, sys, threading
import tupelo as ts
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
