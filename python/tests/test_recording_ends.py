"""What goes on after its call, in a record: claims, transactions, futures, handlers."""

import sys

from recorded_programs import lines_of, run, words

CHECK = [sys.executable, "-m", "tupelo.check"]


ENDS = """
import asyncio, sys
import tupelo as ts
from tupelo import aio

async def awaited(url):
    async with aio.connect(url) as space:
        held = await space.claim("job", 1)
        held.blocking.put("result", 1)
        held.blocking.done()
        with (await space.claim("job", 2)).blocking as (_, number):
            pass
        (await space.claim("job", 3)).blocking.abort("not today")

with ts.connect(sys.argv[1], fresh=True) as space:
    space.put_all([("job", n) for n in range(6)])
    asyncio.run(awaited(sys.argv[1]))
    space.try_claim("job", 4)
    claim = space.claim("job", 5, ttl=0.01)
    space.take("job", 5, timeout=60)
    try:
        claim.done()
    except ts.ClaimLost:
        print("lost")
    t = space.transaction(ttl=0.5)
    assert t.take("job", 0) == ("job", 0)
    space.read("job", 0, timeout=60)
    try:
        t.commit()
    except ts.Aborted:
        print("aborted")
    del claim, t
"""


def test_every_end_of_a_claim_and_of_a_transaction_is_written(tmp_path, shm_url):
    done, lines = lines_of(tmp_path, shm_url, ENDS)
    assert done.stdout.split() == ["lost", "aborted"]
    taken, read = ([line[1] for line in words(lines, verb)] for verb in ("take", "read"))
    assert taken == ["1", "2", "5"]
    assert read == ["3", "4", "5", "0", "0"]
    assert ['"result"', "1"] in words(lines, "put")


HANDLED = """
import os, signal, sys, threading
import tupelo as ts
with ts.connect(sys.argv[1], fresh=True) as space:
    signal.signal(signal.SIGUSR1, lambda *_: space.put("handled", 1, lease=60))
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    space.take("handled", int)  # which the handler interrupts
    space.put("job", 1)
    with space.claim("job", int) as (_, number):
        space.put("begun", number)  # by the program itself, and not a part of the claim
"""


def test_what_a_program_does_while_a_verb_runs_is_the_programs_own(tmp_path, shm_url):
    _, lines = lines_of(tmp_path, shm_url, HANDLED)
    assert words(lines, "put") == [['"handled"', "1"], ['"job"', "1"], ['"begun"', "1"]]
    assert words(lines, "take") == [['"handled"', "1"], ['"job"', "1"]]


HELD_BACK = """
import asyncio, sys
import tupelo as ts
from tupelo import aio
async def awaited(url):
    async with aio.connect(url) as space, space.claim("job", 2):
        pass
with ts.connect(sys.argv[1], fresh=True) as space:
    space.put_all([("job", n) for n in range(3)])
    with space.claim("job", 0):
        pass
    claim = space.claim("job", 1)
    claim.put("host", 1, lease=60)
    claim.done()
    asyncio.run(awaited(sys.argv[1]))
"""


def test_a_put_under_a_claim_has_its_own_lease_in_the_record(tmp_path, shm_url):
    _, lines = lines_of(tmp_path, shm_url, HELD_BACK)
    (host,) = [line for line in lines if line.get("tuple") == ['"host"', "1"]]
    assert (host["verb"], host["lease"]) == ("put", 60)
    assert [line[1] for line in words(lines, "take")] == ["0", "1", "2"]
    checked = run([*CHECK, tmp_path / "run.jsonl"])
    assert checked.stdout == f"{shm_url}:\n  fine\n"


FUTURE = """
import os, sys, threading, time
import tupelo as ts
from tupelo.recording import calls

def slowly(*line, record_line=calls.record_line):
    if threading.current_thread() is not threading.main_thread():
        time.sleep(0.5)
    record_line(*line)

calls.record_line = slowly
space = ts.connect(sys.argv[1], fresh=True)
coming, given_up = space.take_future("soon", int), space.take_future("never", int)
assert given_up.cancel() and given_up.cancelled() and not coming.cancelled()
space.put("soon", 1)
assert coming.result(60) == ("soon", 1)
os._exit(0)
"""


def test_what_a_future_has_taken_is_written_before_its_result_is_out(tmp_path, shm_url):
    _, lines = lines_of(tmp_path, shm_url, FUTURE)
    assert words(lines, "take") == [['"soon"', "1"]]
