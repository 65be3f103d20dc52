"""Spaces that are kept in a file: what is there when the memory is gone (rule C4)."""

import asyncio
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from durable import Locked, change_build, forget_memory, memories, program

import tupelo as ts
from tupelo import REST, aio


@pytest.fixture
def url(new_url):
    return new_url("file")


@pytest.fixture
def path(url):
    return Path(url.removeprefix("file://"))


WORKER = """
import sys
import tupelo as ts

space = ts.connect(sys.argv[1])
for number in range(int(sys.argv[2]), 1 << 30):
    space.put("job", number)
    print("put", number, flush=True)
    if number % 3 == 0:
        print("take", flush=True)
        _, taken = space.take("job", int)
        print("taken", taken, flush=True)
    if number % 5 == 0:
        with space.claim("job", int) as (_, claimed):
            space.put("begun", claimed)
            print("claimed", claimed, flush=True)
        print("taken", claimed, flush=True)
    if number % 7 == 0:
        with space.transaction() as t:
            t.put("pair", number)
            t.put("riap", number)
"""


KILLED = """
import os, signal, sys
import tupelo as ts

space = ts.connect(sys.argv[1], sync="none")
print("open", flush=True)
sys.stdin.readline()
space.put("job", 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_only_the_memory_of_another_version_has_is_not_given_up_c4(url):
    with program(KILLED, url) as killed:
        assert killed.stdout.readline() == "open\n"
        with Locked(url):
            killed.stdin.write("go on\n")
            killed.stdin.flush()
            assert killed.wait() == -signal.SIGKILL
    [memory] = memories(url)
    change_build(url)
    with pytest.raises(ts.VersionMismatch, match="bytes of changes are only in its memory") as why:
        ts.connect(url)
    assert f"run `tupelo compact {url}`" in why.value.hint
    assert f"`rm {memory}`" in why.value.hint
    # With the other version:
    change_build(url)
    command = [Path(sys.executable).with_name("tupelo"), "compact", url]
    subprocess.run(command, check=True, capture_output=True)
    change_build(url)
    with ts.connect(url) as space:
        assert space.count("job", int) == 1


def test_what_was_acknowledged_survives_the_death_of_all_programs_and_of_the_memory_c2_c4(url):
    put, taken, unknown = set(), set(), 0
    for turn in range(3):
        with ExitStack() as stack:
            begins = [1_000_000 * (4 * turn + worker) for worker in range(3)]
            workers = [stack.enter_context(program(WORKER, url, str(begin))) for begin in begins]
            for worker, begin in zip(workers, begins, strict=True):
                last = f"put {begin + 60 + 20 * turn}\n"
                for line in iter(worker.stdout.readline, last):
                    note(line, put, taken)
                note(last, put, taken)
            for worker in workers:
                worker.kill()
            for worker in workers:
                # What is written to the end: a line may be cut by the kill.
                for line in worker.stdout.read().split("\n")[:-1]:
                    note(line, put, taken)
                # Of one take, or the end of a claim, nobody was told.
                unknown += 1
        forget_memory(url)
    with ts.connect(url, create=False) as space:
        there = [number for _, number in space.read_all("job", int)]
        pairs, others = space.read_all("pair", int), space.read_all("riap", int)
    assert len(there) == len(set(there))
    assert not taken & set(there), "a take that was acknowledged is undone"
    assert len(put - taken - set(there)) <= unknown, "a put that was acknowledged is lost"
    assert [number for _, number in pairs] == [number for _, number in others]  # X1


def note(line, put, taken):
    """Note what a worker was told."""
    words = line.split()
    if words[0] == "put":
        put.add(int(words[1]))
    elif words[0] == "taken":
        taken.add(int(words[1]))


def test_programs_wait_for_each_other_in_a_space_of_a_file(url):
    with ts.connect(url) as space:
        text = "import sys, tupelo; tupelo.connect(sys.argv[1]).put('answer', 42)"
        with program(text, url):
            assert space.take("answer", int, timeout=60) == ("answer", 42)


def test_without_a_wait_for_the_disk_all_is_there_when_the_program_has_ended(url):
    text = """
import sys, tupelo
space = tupelo.connect(sys.argv[1], sync="none")
for number in range(1000):
    space.put("job", number)
"""
    with program(text, url) as ended:
        pass
    assert ended.returncode == 0
    forget_memory(url)
    with ts.connect(url) as space:
        assert space.count("job", int) == 1000


def test_what_is_in_memory_alone_survives_the_program_and_flush_brings_it_to_the_file(url, path):
    text = """
import os, signal, sys, tupelo
space = tupelo.connect(sys.argv[1], sync="none")
space.put("job", 1)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with program(text, url) as killed:
        pass
    assert killed.returncode == -signal.SIGKILL
    with ts.connect(url) as space:
        assert space.read_all(REST) == [("job", 1)]
        space.flush()
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
            assert file.execute("SELECT count(*) FROM tuple").fetchall() == [(1,)]
    forget_memory(url)
    with ts.connect(url) as space:
        assert space.read_all(REST) == [("job", 1)]


def test_sync_may_stand_in_the_url_and_is_refused_where_it_says_nothing(url, new_url):
    with ts.connect(f"{url}?sync=none") as space:
        space.put("job", 1)
        space.flush()
    with pytest.raises(ValueError, match=r"sync is .soon.: give 'group' or 'none'"):
        ts.connect(url, sync="soon")
    with pytest.raises(ValueError, match="is kept in no file: leave it out"):
        ts.connect(new_url("shm"), sync="none")
    with pytest.raises(TypeError, match="sync has the type int"):
        ts.connect(url, sync=1)


def test_a_path_that_is_not_whole_is_refused_with_the_one_that_it_means_here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"file://{tmp_path}/jobs.tupelo"):
        ts.connect("file://jobs.tupelo")
    monkeypatch.setenv("HOME", "/home/ada")
    with pytest.raises(ValueError, match=r"write the whole path.*file:///home/ada/jobs.tupelo"):
        ts.connect("file://~/jobs.tupelo")


def test_a_file_that_is_not_there_is_made_only_if_it_should_be(url, path):
    with pytest.raises(ts.SpaceNotFound, match=f"there is no space {url}\n  look at the path"):
        ts.connect(url, create=False)
    assert not path.exists()
    with ts.connect(url) as space:
        assert (space.url, space.name) == (url, path.stem)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ts.StorageError, match=r"TUP-024: .*its directory does not exist"):
        ts.connect("file:///nowhere/at/all.tupelo")


def test_what_is_no_file_of_a_space_is_refused_and_stays_as_it_is_c5(url, path):
    path.write_text("a text that is long enough to be taken for the head of a database" * 20)
    before = path.read_bytes()
    with pytest.raises(ts.SpaceCorrupted, match=f"TUP-015: {path}: .*not a database") as caught:
        ts.connect(url)
    assert "--save NEW_FILE" in caught.value.hint
    assert path.read_bytes() == before
    path.unlink()


def test_a_file_of_a_newer_version_is_refused_with_both(url, path):
    ts.connect(url).close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 7")
    says = "has layout 7, and this build knows layouts up to 4"
    with pytest.raises(ts.VersionMismatch, match=says):
        ts.connect(url)
    ts.remove(url)
    assert list(path.parent.glob(f"{path.name}*")) == []


def test_a_space_that_was_removed_while_it_was_open_takes_nothing_any_more(url, path):
    with ts.connect(url) as space:
        space.put("job", 1)
        ts.remove(url)
        assert list(path.parent.glob(f"{path.name}*")) == []
        with pytest.raises(ts.SpaceRemoved, match="the space was removed"):
            space.put("job", 2)
    with pytest.raises(ts.SpaceNotFound):
        ts.remove(url)
    with ts.connect(url) as space:
        assert space.count(REST) == 0


def test_a_disk_that_refuses_is_told_and_what_was_in_effect_comes_to_the_file_later(url):
    text = """
import resource, signal, sys
import tupelo as ts

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
space = ts.connect(sys.argv[1])
space.put("job", 1)
resource.setrlimit(resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
try:
    space.put("job", 2)
except ts.DurabilityUnknown as refused:
    print(refused)
assert space.count("job", int) == 2
try:
    space.flush()
except ts.StorageError as refused:
    print(refused)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
space.flush()
"""
    with program(text, url) as limited:
        printed = limited.stdout.read()
    assert limited.returncode == 0
    assert "TUP-025: the call is in effect in memory" in printed
    assert "TUP-024: " in printed
    assert url.removeprefix("file://") in printed
    forget_memory(url)
    with ts.connect(url) as space:
        assert space.read_all("job", int) == [("job", 1), ("job", 2)]


def test_children_of_a_fork_use_the_space_and_so_does_their_parent(url):
    with ts.connect(url) as space:
        space.put("parent", 0)
        is_over = threading.Event()

        def put_until_it_is_over():
            while not is_over.is_set():
                space.put("parent", 1)

        thread = threading.Thread(target=put_until_it_is_over)
        thread.start()
        for number in range(10):
            child = os.fork()
            if child == 0:
                space.put("child", number)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        is_over.set()
        thread.join()
        count = space.count("parent", int)
    forget_memory(url)
    with ts.connect(url) as space:
        assert space.count("child", int) == 10
        assert space.count("parent", int) == count


def test_a_connection_can_be_sent_to_another_process(url):
    with ts.connect(url) as space, pickle.loads(pickle.dumps(space)) as again:
        again.put("job", 1)
        assert space.take("job", int) == ("job", 1)


def test_claims_and_dead_letters_are_kept_k5_c4(url):
    with ts.connect(url) as space:
        for number in range(3):
            space.put("job", number)
        space.claim("job", 0, max_attempts=1).abort("no paper")
        space.claim("job", 1, max_attempts=5).abort("no ink")
        claim = space.claim("job", 2)
        space.flush()
        forget_memory(url)
        with ts.connect(url) as again:
            (letter,) = again.dead(REST)
            assert (letter.tuple, letter.reasons) == (("job", 0), ["no paper"])
            one, two = again.claim("job", 1), again.claim("job", 2)
            assert (one.attempt, two.fence > claim.fence) == (2, True)
            one.done()
            two.done()
        with pytest.raises(ts.StorageError, match="was opened anew elsewhere"):
            claim.done()


def test_two_files_do_not_change_in_one_step_o7_x1(url, new_url):
    with ts.connect(url) as space, ts.connect(new_url("file")) as other:
        space.put("job", 1)
        with pytest.raises(ts.Unsupported, match="are in two files"):
            space.move_to(other, "job", int)
        with pytest.raises(ts.Unsupported, match="are in two files"), space.transaction(other):
            pass
        assert space.copy_to(other, "job", int) == 1
        with ts.connect(new_url("shm")) as memory:
            # Also when the first space is none of the two.
            refused = pytest.raises(ts.Unsupported, match="are in two files")
            with refused, memory.transaction(space, other):
                pass
            assert other.move_to(memory, "job", int) == 1


def test_spaces_of_one_file_change_in_one_step_o7_x1(url):
    names = ["orders", "parcels"]

    def counts():
        counts = []
        for name in names:
            with ts.connect(f"{url}?space={name}") as space:
                counts.append((space.name, space.count(REST)))
        return counts

    with ts.connect(f"{url}?space=orders") as orders, ts.connect(f"{url}?space=parcels") as parcels:
        orders.put_all([("order", n) for n in range(3)])
        with orders.transaction(parcels) as t:
            t.on(parcels).put("parcel", t.take("order", 1)[1])
        assert orders.move_to(parcels, "order", 2) == 1
    forget_memory(url)
    assert counts() == [("orders", 1), ("parcels", 2)]
    ts.remove(f"{url}?space=orders")
    assert counts() == [("orders", 0), ("parcels", 2)]
    with ts.connect(url) as space:
        assert space.count(REST) == 0


def test_tasks_put_and_wait_for_the_disk(url):
    async def work():
        async with aio.connect(url, sync="none") as space:
            await asyncio.gather(*(space.put("job", n) for n in range(100)))
            await space.flush()

    asyncio.run(work())
    forget_memory(url)
    with ts.connect(url) as space:
        assert space.count("job", int) == 100


def test_the_memory_of_a_file_is_in_no_list_of_spaces(url):
    with ts.connect(url):
        assert not [entry for entry in ts.spaces() if entry["name"].startswith("file-")]


def test_a_shell_uses_it(url, tmp_path):
    def tupelo(*words):
        command = "import sys; from tupelo.command_line import main; sys.exit(main())"
        return subprocess.run(
            [sys.executable, "-c", command, *words], capture_output=True, text=True, check=False
        )

    assert tupelo("put", url, "job", "7").returncode == 0
    forget_memory(url)
    assert tupelo("take", url, "job", ":int").stdout == '("job", 7)\n'
    copy = tmp_path / "copy.tupelo"
    tupelo("put", url, "job", "8")
    assert tupelo("backup", url, str(copy)).stdout == f"{url} is copied to {copy}\n"
    refused = tupelo("backup", url, str(copy))
    assert (refused.returncode, "File exists" in refused.stderr) == (1, True)
    assert tupelo("take", url, "job", ":int").stdout == '("job", 8)\n'
    assert tupelo("take", f"file://{copy}", "job", ":int").stdout == '("job", 8)\n'
    ts.remove(f"file://{copy}")
    removed = f"file removed: {url.removeprefix('file://')}, with 1 space and 0 tuples\n"
    assert tupelo("rm", url, "--yes").stdout == removed
    assert tupelo("take", url, "job", ":int", "--try").returncode != 0
