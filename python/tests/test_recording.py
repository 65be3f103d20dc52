"""`tupelo record`: what a program does is in the record, and the program does what it would do."""

import json
import os
import subprocess
import sys

from recorded_programs import RECORD, lines_of, run, words

import tupelo as ts
from tupelo.check import main as check_main
from tupelo.record import merge

CHECK = [sys.executable, "-m", "tupelo.check"]


def findings(tmp_path):
    return run([*CHECK, tmp_path / "run.jsonl"]).stdout


# --- the command ---


def test_a_record_that_can_not_be_written_is_refused_before_the_run(tmp_path):
    ran = tmp_path / "ran"
    command = [sys.executable, "-c", f"open({str(ran)!r}, 'w')"]
    done = run([*RECORD, tmp_path / "missing" / "run.jsonl", "--", *command])
    assert done.returncode == 2
    assert "can not be written: No such file or directory" in done.stderr
    assert not ran.exists()


def test_a_quiet_record_says_nothing_and_leaves_the_words_of_the_command_alone(tmp_path):
    command = [sys.executable, "-c", "import sys; print(sys.argv[1:])", "--quiet"]
    done = run([*RECORD, tmp_path / "run.jsonl", "--quiet", "--", *command])
    assert (done.returncode, done.stdout, done.stderr) == (0, "['--quiet']\n", "")


def test_an_earlier_record_stays_until_there_is_another_one(tmp_path):
    out = tmp_path / "run.jsonl"
    out.write_text("earlier\n")
    done = run([*RECORD, out, "--", "/no/such/program"])
    assert (done.returncode, out.read_text()) == (127, "earlier\n")
    done = run([*RECORD, out, "--", sys.executable, "-c", ""])
    assert (done.returncode, out.read_text()) == (0, "")


def test_where_there_is_no_folder_for_temporary_files_nothing_is_run(tmp_path):
    ran = tmp_path / "ran"
    # Python tries every folder that it knows of: none will do where no file may have a byte.
    limited = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh"]
    done = run([*limited, *RECORD, tmp_path / "run.jsonl", "--", "touch", ran])
    assert done.returncode == 2
    assert done.stderr.startswith("tupelo record: no folder to record in: No usable temporary")
    assert "Traceback" not in done.stderr
    assert not ran.exists()


PUTS_AND_FAILS = """
import sys
import tupelo as ts
with ts.connect(sys.argv[1]) as space:
    space.put("a", 1)
sys.exit(3)
"""


def test_a_record_for_which_there_is_no_room_at_the_end_is_said_to_be_elsewhere(tmp_path, shm_url):
    program = tmp_path / "program.py"
    program.write_text(PUTS_AND_FAILS)
    command = [*RECORD, "/dev/full", "--", sys.executable, program, shm_url]
    done = run(command, env=os.environ | {"TMPDIR": str(tmp_path)})
    (folder,) = tmp_path.glob("tupelo-record-*")
    problem = "tupelo record: /dev/full: No space left on device; what each process wrote is in"
    assert (done.returncode, done.stderr) == (3, f"{problem} {folder}\n")


INTERRUPTED = """
import signal, sys, time
import tupelo as ts
interrupts = []
signal.signal(signal.SIGINT, lambda *_: interrupts.append(1))
with ts.connect(sys.argv[1]) as space:
    space.put("begun", 1)
    print("begun", flush=True)
    while len(interrupts) < 2:
        time.sleep(0.01)
        if interrupts:
            print("again", flush=True)
    space.take("begun", 1)
"""


def test_a_program_that_handles_two_interrupts_ends_as_it_likes_and_is_recorded(tmp_path, shm_url):
    program, out = tmp_path / "program.py", tmp_path / "run.jsonl"
    program.write_text(INTERRUPTED)
    # A session of its own: its group is who a terminal would interrupt.
    with subprocess.Popen(
        [*RECORD, str(out), "--", sys.executable, str(program), shm_url],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        for word in ("begun\n", "again\n"):
            assert process.stdout.readline() == word
            os.killpg(process.pid, 2)
        assert process.stdout.read() is not None
        assert process.wait(60) == 0
    assert [json.loads(line)["verb"] for line in out.read_text().splitlines()][-1] == "take"


OUTLIVES = """
import os, subprocess, sys, time
import tupelo as ts
CHILD = '''
import os, sys, time
import tupelo as ts
with ts.connect(sys.argv[1]) as space:
    while os.path.exists(os.environ["TUPELO_RECORD"]):
        time.sleep(0.01)
    space.put("late", 1)
    space.put("late", 2)
    space.put("over", 1)
'''
with open(ERRORS, "w") as errors:
    subprocess.Popen([sys.executable, "-c", CHILD, sys.argv[1]], stderr=errors,
                     stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
"""


def test_a_process_that_outlives_the_command_goes_on_and_is_warned_once(tmp_path, shm_url):
    errors = tmp_path / "errors"
    lines_of(tmp_path, shm_url, OUTLIVES.replace("ERRORS", repr(str(errors))))
    with ts.connect(shm_url) as space:
        assert space.take("over", 1, timeout=60) == ("over", 1)
        assert space.count("late", int) == 2
    told = errors.read_text().splitlines()
    assert len(told) == 1
    assert "is no longer recorded" in told[0]


def test_lines_are_merged_in_the_order_of_time_whatever_the_order_of_each_file(tmp_path):
    for name, times in (("1", (5, 3, 4)), ("2", (2, 6, 1))):
        text = "".join(f'{{"time_ns": {time_ns}}}\n' for time_ns in times)
        # One was killed in the middle of a line, and behind it is what no line has filled.
        (tmp_path / f"{name}.jsonl").write_text(text + '{"time_' + "\0" * 10_000)
    (tmp_path / "3.jsonl").write_text('{"time_ns": 7}\n' + "\0" * 10_000)
    with (tmp_path / "out").open("w") as out:
        assert merge(tmp_path, out) == (7, 2)
    merged = [json.loads(line)["time_ns"] for line in (tmp_path / "out").read_text().splitlines()]
    assert merged == [1, 2, 3, 4, 5, 6, 7]


# --- what is written ---

ODD = """
import sys
import tupelo as ts
from tupelo.recording import calls
with ts.connect(sys.argv[1], fresh=True) as space:
    plain, calls.record_words = calls.record_words, None
    space.put("odd", 1)
    assert space.take("odd", int) == ("odd", 1)
    calls.record_words = plain
    space.put("even", 1)
"""


def test_what_can_not_be_described_is_left_out_and_the_program_goes_on(tmp_path, shm_url):
    done, lines = lines_of(tmp_path, shm_url, ODD)
    assert words(lines, "put") == [['"even"', "1"]]
    assert done.stderr.count("an operation is not in the record") == 1


ASKED = """
import asyncio, contextlib, sys
from dataclasses import dataclass
import tupelo as ts
from tupelo import aio

@dataclass
class Job:
    number: int
    owner: str | None = None

async def awaited(url):
    async with aio.connect(url) as space:
        assert [one async for one in space.scan("scanned", float)] == []
        async with space.subscribe("heard", float):
            pass

with ts.connect(sys.argv[1], fresh=True) as space:
    assert space.put_if_absent("once", 1)
    assert not space.put_if_absent("once", 1)
    assert not space.put_if_absent("once", 2, unless=("once", int))
    assert list(space.scan("scanned", int)) == []
    with space.subscribe("heard", int):
        pass
    with contextlib.closing(space.consume("closed", int, idle=0)):
        pass
    assert list(space.consume("idle", int, idle=0)) == []
    assert space.try_take(Job, owner=None) is None
    asyncio.run(awaited(sys.argv[1]))
    try:
        space.take("once", wrong=1)
    except TypeError as error:
        assert "take()" in str(error) and "try_take" not in str(error), error
    else:
        raise AssertionError
"""


def test_what_is_asked_for_is_written_by_every_verb(tmp_path, shm_url):
    _, lines = lines_of(tmp_path, shm_url, ASKED)
    reads = [(line["template"], line["tuple"]) for line in lines if line["verb"] == "read"]
    assert reads == [
        (['"once"', "1"], ['"once"', "1"]),
        (['"once"', ":int"], ['"once"', "1"]),
        (['"scanned"', ":int"], None),
        (['"scanned"', ":float"], None),
    ]
    waits = words(lines, "waits", "template")
    assert waits[:3] == [['"heard"', ":int"], ['"closed"', ":int"], ['"idle"', ":int"]]
    # That it waited says that it was asked for: once, though it found nothing.
    assert ['"idle"', ":int"] not in words(lines, "take", "template")
    assert ['"heard"', ":float"] in waits
    assert ["Job{owner: null}"] in words(lines, "take", "template")


PICKY = """
import sys
from dataclasses import dataclass
import tupelo as ts

@dataclass
class Picky:
    number: int
    made = 0
    def __post_init__(self):
        Picky.made += 1
        if Picky.made == 2:
            raise TypeError("a picky class")

with ts.connect(sys.argv[1], fresh=True) as space:
    space.put(Picky(1))
    try:
        space.take(Picky, timeout=0)
    except TypeError as error:
        print(error)
    print(Picky.made)
"""


def test_what_a_class_refuses_is_told_as_where_nobody_records(tmp_path, shm_url):
    program = tmp_path / "program.py"
    done, _ = lines_of(tmp_path, shm_url, PICKY)
    assert done.stdout == run([sys.executable, program, shm_url]).stdout


# --- what is made of it ---

LONG = """
import sys
from dataclasses import dataclass
import numpy as np
import tupelo as ts
from tupelo import F
@dataclass
class Page:
    number: int
    text: str
    words: list
with ts.connect(sys.argv[1], fresh=True) as space:
    space.put("list", [7] * 1_000)
    assert space.take("list", [7] * 1_000)
    space.put("map", {"key": [7] * 1_000}, ("t",) * 1_000)
    assert space.take("map", dict, tuple)
    space.put(Page(1, "x" * 1_000, ["word"] * 1_000))
    assert space.take(Page, number=1, text="x" * 1_000)
    space.put("text", "x" * 1_000)
    assert space.try_read("text", F > "y") is None
    assert space.try_read("text", str, where="size(f[1]) < 7") is None
    assert space.try_read("text", F.prefix("a" * 100)) is None
    assert space.try_take("text", int) is None
    assert space.try_take("number", F > 3) is None
    assert space.take("text", str)
"""


def test_no_value_is_long_in_a_record_and_what_is_not_there_is_not_judged(tmp_path, shm_url):
    _, lines = lines_of(tmp_path, shm_url, LONG)
    assert max(len(word) for line in lines for word in line.get("tuple") or ()) < 150
    told = findings(tmp_path)
    assert told.count("may have been there: a long value is not recorded") == 3
    assert '("text", :int) asked for 1 time, never there' in told
    assert '("number", > 3) asked for 1 time, never there' in told
    assert "put, never taken" not in told


COPIED = """
import sys
import tupelo as ts
with ts.connect(sys.argv[1], fresh=True) as space, ts.connect(sys.argv[1] + "-other") as other:
    space.put_all([("twin", 1), ("twin", 2)])
    assert space.copy_to(other, "twin", int) == 2
    assert len(space.take_all("twin", int)) == len(other.take_all("twin", int)) == 2
    other.put("far", 1)
    search = ts.Search([space, other])
    assert search.read("far", int).tuple == other.take("far", 1) == ("far", 1)
    assert search.try_take("far", int) is None
    assert search.try_take("nowhere") is None
ts.remove(sys.argv[1] + "-other")
"""


def test_what_was_copied_or_found_in_another_space_is_not_missing(tmp_path, shm_url):
    lines_of(tmp_path, shm_url, COPIED)
    missing = '  ("nowhere") asked for 1 time, never there'
    assert findings(tmp_path).splitlines() == [
        f"{shm_url}:",
        missing,
        f"{shm_url}-other:",
        missing,
    ]


def test_what_is_no_text_is_no_record(tmp_path, monkeypatch, capsys):
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"\xff\xfe\x00\n")
    monkeypatch.setattr(sys, "argv", ["check", str(path)])
    assert check_main() == 2
    assert "run.jsonl:1 is no line" in capsys.readouterr().err


BATTERIES = """
import asyncio, sys, threading
import tupelo as ts
from tupelo import aio, batteries
from tupelo.aio import batteries as awaited

def queued(space):
    queue = batteries.Queue(space, "queue", maxsize=3)
    for item in range(3):
        queue.put(item, priority=item)
    for _ in range(3):
        with queue.get() as item:
            pass
    queue.put(7)
    queue.get().done()
    queue.join()

def served(space):
    service = batteries.Service(space, "double", lambda n: 2 * n)
    serving = threading.Thread(target=service.run)
    serving.start()
    assert batteries.call(space, "double", 4, timeout=60) == 8
    service.stop()
    serving.join()

def held(space):
    with batteries.Lock(space, "lock"), batteries.Semaphore(space, "semaphore", n=2):
        pass
    shared = batteries.RWLock(space, "shared")
    with shared.reader:
        pass
    with shared.writer:
        pass
    batteries.Counter(space, "counter").add(2)
    batteries.Register(space, "register", default=0).set(1)

def together(space):
    latch = batteries.Latch(space, "latch", count=1)
    latch.count_down()
    latch.wait()
    barrier = batteries.Barrier(space, "barrier", parties=2)
    other = threading.Thread(target=barrier.wait)
    other.start()
    barrier.wait()
    other.join()

async def all_awaited(url):
    async with aio.connect(url) as space:
        queue = awaited.Queue(space, "queue 2", maxsize=2)
        await queue.put(1)
        await queue.put(2)
        async with await queue.get():
            pass
        await (await queue.get()).done()
        service = awaited.Service(space, "double 2", lambda n: 2 * n)
        serving = asyncio.create_task(service.run())
        assert await awaited.call(space, "double 2", 4, timeout=60) == 8
        await service.stop()
        await serving
        async with awaited.Lock(space, "lock 2"), awaited.Semaphore(space, "semaphore 2", n=2):
            pass
        shared = awaited.RWLock(space, "shared 2")
        async with shared.reader:
            pass
        async with shared.writer:
            pass
        await awaited.Counter(space, "counter 2").add(2)
        await awaited.Register(space, "register 2", default=0).set(1)
        latch = awaited.Latch(space, "latch 2", count=1)
        await latch.count_down()
        await latch.wait()
        barrier = awaited.Barrier(space, "barrier 2", parties=2)
        await asyncio.gather(barrier.wait(), barrier.wait())

with ts.connect(sys.argv[1], fresh=True) as space:
    for use in (queued, served, held, together):
        use(space)
    asyncio.run(all_awaited(sys.argv[1]))
"""


def test_no_battery_is_accused(tmp_path, shm_url):
    lines_of(tmp_path, shm_url, BATTERIES)
    assert findings(tmp_path) == f"{shm_url}:\n  fine\n"


SHOWN = """
import inspect, sys
import tupelo as ts
from tupelo import _native, aio
with ts.connect(sys.argv[1], fresh=True) as space:
    for shown, plain in ((space, _native.Space), (aio.connect(sys.argv[1]), aio.Space)):
        for verb in ("put", "take", "claim", "scan", "subscribe"):
            signature = inspect.signature(getattr(shown, verb))
            of_plain = inspect.signature(getattr(plain, verb))
            assert list(signature.parameters) == list(of_plain.parameters)[1:], verb
"""


def test_a_verb_shows_the_signature_that_it_has_where_nobody_records(tmp_path, shm_url):
    lines_of(tmp_path, shm_url, SHOWN)


CLASSES = """
import sys
import tupelo as ts
with ts.connect(sys.argv[1], fresh=True) as space:
    space.put("job", 1)
    with space.subscribe("job", int) as subscription:
        assert isinstance(subscription, ts.Subscription)
    claim = space.claim("job", int)
    assert isinstance(claim, ts.Claim) and not isinstance(claim, ts.Transaction)
    claim.done()
    with space.transaction() as transaction:
        assert isinstance(transaction, ts.Transaction)
        assert isinstance(transaction.on(space), ts.TransactionSpace)
        transaction.put("job", 2)
"""


def test_what_is_recorded_is_of_the_class_that_it_has_where_nobody_records(tmp_path, shm_url):
    _, lines = lines_of(tmp_path, shm_url, CLASSES)
    assert words(lines, "take") == [['"job"', "1"]]
    assert words(lines, "put") == [['"job"', "1"], ['"job"', "2"]]


SENT = """
import pickle, sys
from tupelo import aio
shared = aio.connect(sys.argv[1])
again = pickle.loads(pickle.dumps(shared))
again.blocking.put("sent", 1)
again.close()
shared.close()
"""


def test_a_space_of_tasks_that_was_sent_to_a_process_is_recorded_there(tmp_path, shm_url):
    _, lines = lines_of(tmp_path, shm_url, SENT)
    assert words(lines, "put") == [['"sent"', "1"]]


CLOSES = """
import os, sys
import tupelo as ts
with ts.connect(sys.argv[1]) as space:
    space.put("a", 1)
    os.closerange(3, 64)  # as daemons do; the space's own memory is mapped
    files = [open(f"{sys.argv[0]}.{number}", "w") for number in range(20)]
    space.put("a", 2)
    space.take_all("a", int)
    for file in files:
        file.close()
"""


def test_a_line_never_gets_into_a_file_of_the_program(tmp_path, shm_url):
    _, lines = lines_of(tmp_path, shm_url, CLOSES)
    assert words(lines, "take") == [['"a"', "1"], ['"a"', "2"]]
    written = [path.read_text() for path in tmp_path.glob("program.py.*")]
    assert written == [""] * 20


TOLD = """
import signal, sys, time
import tupelo as ts
def told(*_):
    space.put("told", 1)
    sys.exit(3)
with ts.connect(sys.argv[1]) as space:
    signal.signal(signal.SIGTERM, told)
    print("begun", flush=True)
    time.sleep(60)
"""


def test_who_is_told_to_end_tells_the_command_and_keeps_its_record(tmp_path, shm_url):
    program, out = tmp_path / "program.py", tmp_path / "run.jsonl"
    program.write_text(TOLD)
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [*RECORD, out, "--", sys.executable, program, shm_url]
    with subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, text=True, env=environment
    ) as recording:
        assert recording.stdout.readline() == "begun\n"
        recording.terminate()
        recording.communicate(timeout=60)
    assert recording.returncode == 3
    assert words([json.loads(line) for line in out.read_text().splitlines()], "put") == [
        ['"told"', "1"]
    ]
    assert not list(tmp_path.glob("tupelo-record-*"))
