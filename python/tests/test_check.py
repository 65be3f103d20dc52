"""`tupelo record` and `tupelo check`: what was put for nobody, and asked for in vain."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tupelo.check import BadRecordError, load

# The paper's sorting, with the mistake of its listing: the workers write "sort_array", the master
# waits for "sorted_part".
SORTING = """
import sys
import tupelo as ts

def worker(url):
    with ts.connect(url) as space:
        while True:
            _, part, status = space.take("sort_array", ..., "unsorted")
            if part is None:
                break
            space.put({written!r}, sorted(part), "sorted")

if __name__ == "__main__":
    url = sys.argv[1]
    with ts.connect(url, fresh=True) as space, ts.spawn(worker, url, n=2):
        for part in ([3, 1], [2, 9, 4]):
            space.put("sort_array", part, "unsorted")
        try:
            for _ in range(2):
                print(space.take("sorted_part", list, "sorted", timeout={timeout}))
        except ts.Timeout:
            print("the master waits for ever")
        for _ in range(2):
            space.put("sort_array", None, "unsorted")
    ts.remove(url)
"""


def command(module, *words):
    return subprocess.run(
        [sys.executable, "-m", f"tupelo.{module}", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def recorded(tmp_path, url, text):
    program, out = tmp_path / "program.py", tmp_path / "run.jsonl"
    program.write_text(text)
    run = command("record", "--out", out, "--", sys.executable, program, url)
    assert run.returncode == 0, run.stderr
    return run, out


def test_the_tag_mismatch_of_the_papers_sorting_listing_is_found(tmp_path, shm_url):
    run, out = recorded(tmp_path, shm_url, SORTING.format(written="sort_array", timeout=2))
    assert "the master waits for ever" in run.stdout
    check = command("check", out)
    assert check.returncode == 1
    assert re.search(
        r'2 tuples like \("sort_array", list\([\d, ]+\), "sorted"\) put, never taken', check.stdout
    )
    assert '("sorted_part", :list, "sorted") asked for' in check.stdout
    assert 'with "sort_array" instead of "sorted_part" as field 0 it would match 2' in check.stdout


def test_the_listing_as_it_was_meant_is_fine(tmp_path, shm_url):
    run, out = recorded(tmp_path, shm_url, SORTING.format(written="sorted_part", timeout=60))
    assert "waits for ever" not in run.stdout
    check = command("check", out)
    assert (check.returncode, check.stdout) == (0, f"{shm_url}:\n  fine\n")


def test_a_mismatch_of_type_is_a_near_miss(tmp_path, shm_url):
    program = """
import sys, tupelo as ts
with ts.connect(sys.argv[1]) as space:
    space.put("temperature", 20)
    assert space.try_take("temperature", float) is None
"""
    _, out = recorded(tmp_path, shm_url, program)
    check = command("check", out)
    assert check.returncode == 1
    assert "with 20 instead of :float as field 1 it would match 1 tuple" in check.stdout
    quiet = command("check", out, "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (1, "", "")
    tupelo = Path(sys.executable).with_name("tupelo")  # its option of every command is passed on
    words = [tupelo, "--json", "check", out]
    shown = subprocess.run(words, capture_output=True, check=False, timeout=120)
    told = [f"  {line}" for line in json.loads(shown.stdout)[shm_url]]
    assert (shown.returncode, told) == (1, check.stdout.splitlines()[1:])


def test_a_tuple_that_was_read_is_not_called_unused(tmp_path, shm_url):
    program = """
import sys, tupelo as ts
with ts.connect(sys.argv[1]) as space:
    space.put("configuration", "a")
    space.read("configuration", str)
"""
    _, out = recorded(tmp_path, shm_url, program)
    assert command("check", out).returncode == 0


def test_every_verb_is_recorded_and_long_values_are_digests(tmp_path, shm_url):
    program = """
import sys, numpy as np, tupelo as ts
with ts.connect(sys.argv[1]) as space:
    space.put("image", np.zeros(1_000))
    space.put("image", np.zeros(1_000))
    space.put("text", "x" * 1_000)
    space.put_all([("n", 1), ("n", 2), ("n", 3), ("n", 4)])
    assert space.put_if_absent("n", 9, unless=("n", 9))
    assert space.count("n", int) == 5
    assert space.take("n", 1) == ("n", 1)
    assert space.try_take("n", 2) == ("n", 2)
    assert space.read("n", 3) == space.try_read("n", 3) == ("n", 3)
    assert len(space.take_many("n", int, n=2)) == 2
    assert space.try_swap("n", 9, to=("m", 9)) == ("n", 9)
    assert space.swap("m", int, to=("m", 10)) == ("m", 9)
    assert space.read_all("m", int) == space.take_all("m", int) == [("m", 10)]
    assert len(space.take_all("image", np.ndarray)) == 2
    space.finish("text", str)
    assert [len(text) for _, text in space.consume("text", str)] == [1_000]
"""
    _, out = recorded(tmp_path, shm_url, program)
    events = [json.loads(line) for line in out.read_text().splitlines()]
    assert {event["verb"] for event in events} == {"put", "take", "read", "count", "waits"}
    assert max(len(line) for line in out.read_text().splitlines()) < 500
    assert [event["time_ns"] for event in events] == sorted(event["time_ns"] for event in events)
    images = [event["tuple"] for event in events if event["kinds"] == ["str", "array"]]
    assert images[0] == images[1]
    check = command("check", out)
    assert (check.returncode, check.stdout) == (0, f"{shm_url}:\n  fine\n")


def test_the_exit_code_is_that_of_the_command(tmp_path):
    out = tmp_path / "run.jsonl"
    assert command("record", "--out", out, "--", sys.executable, "-c", "exit(7)").returncode == 7
    assert command("record", "--out", out, "--", "/no/such/program").returncode == 127
    assert command("record", "--out", out).returncode == 2


def test_what_is_no_record_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text('{"verb": "put"}\n')
    with pytest.raises(BadRecordError, match=r"run\.jsonl:1 is no line"):
        load(path)
    assert command("check", path).returncode == 2
    assert command("check", tmp_path / "nothing").returncode == 2


FINE = """
import asyncio, sys
from dataclasses import dataclass
from fractions import Fraction
import tupelo as ts
from tupelo import aio, batteries, linda

@dataclass
class Job:
    number: int

def together(space, other):
    with space.transaction(other) as t:
        t.put("inside", 1)
        t.on(other).put_all([("far", 1), ("far", 2)])
        assert t.take("inside", int) == ("inside", 1)
        t.put("kept", 2)
    assert space.take("kept", int) == ("kept", 2)
    with space.transaction(other) as t:
        assert len(t.on(other).take_all("far", int)) == 2
        t.abort()
    with space.transaction(other, ttl=5) as t:
        assert t.on(other).take_many("far", int, n=2, timeout=1) == [("far", 1), ("far", 2)]

def moved(space, other):
    space.put_all([("go", n) for n in range(5)])
    assert space.move_to(other, "go", int) == 5
    assert [other.take("go", n, timeout=1) for n in range(5)]
    space.put("twin", 1)
    assert space.copy_to(other, "twin", int) == 1
    assert other.take("twin", 1, timeout=1) == space.take("twin", 1, timeout=1)

def held(space):
    space.put_all([("job", n) for n in range(3)])
    with space.claim("job", int) as (_, number):
        space.put("result", number)
    claim = space.try_claim("job", int)
    claim.put("result", 1)
    claim.done()
    try:
        with space.claim("job", int):
            raise RuntimeError
    except RuntimeError:
        pass
    with space.claim("job", int, max_attempts=2):
        pass
    assert len(space.take_all("result", int)) == 2
    with space.subscribe("seen", int) as seen:
        space.put("seen", 1)
        assert next(seen).tuple == ("seen", 1)
    later = space.take_future("soon", int)
    space.put("soon", 1)
    assert later.result() == ("soon", 1)
    space.put("scanned", 1)
    assert list(space.scan("scanned", int)) == [("scanned", 1)]
    space.put(Job(7))
    assert space.take(Job, where="number > 5", timeout=1) == Job(7)
    space.put_all([(("a", "tuple"),)])
    assert space.take(tuple, timeout=1) == (("a", "tuple"),)
    space.put("object", Fraction(1, 2))
    assert space.take("object", ...) == ("object", Fraction(1, 2))
    with batteries.Lock(space, "lock"):
        batteries.Counter(space, "counter").add(2)

async def awaited(url, other_url):
    async with aio.connect(url) as space, aio.connect(other_url) as other:
        waiting = asyncio.create_task(space.take("late", int))
        reading = asyncio.create_task(space.read("late", int))
        await asyncio.sleep(0)
        await space.put("late", 1)
        assert await waiting == ("late", 1) == await reading
        claiming = asyncio.create_task(one(space))
        await asyncio.sleep(0)
        await space.put("task", 1)
        await claiming
        assert await space.take("done", int) == ("done", 1)
        async with space.transaction(other) as t:
            await t.put("a", 1)
            assert await t.take("a", int) == ("a", 1)
            await t.on(other).put("b", 1)
        async with space.subscribe("b", int) as heard:
            assert await other.move_to(space, "b", int) == 1
            assert (await heard.next(timeout=5)).tuple == ("b", 1)
        await space.put("c", 1)
        await space.finish("c", int)
        assert [n async for _, n in space.consume("c", int)] == [1]
        await other.put("d", 1)
        found = await aio.search([space, other], "d", int)
        assert found.space is other

async def one(space):
    claim = space.claim("task", int)
    async with claim as (_, number):
        await claim.put("done", number)

def renamed(url):
    with linda.connect(url) as space:
        space.out("word", 1)
        assert space.in_("word", int) == ("word", 1)

def sent(space):
    space.put("sent", 1)

def main(url, other_url):
    with ts.connect(url, fresh=True) as space, ts.connect(other_url, fresh=True) as other:
        together(space, other)
        moved(space, other)
        held(space)
        renamed(url)
        asyncio.run(awaited(url, other_url))
        if url.startswith("shm"):
            with ts.spawn(sent, space):
                space.take("sent", int)
    ts.remove(other_url)

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[1] + "-other")
"""


@pytest.mark.parametrize("scheme", ["mem", "shm"])
def test_whoever_takes_what_he_puts_is_not_accused_whatever_the_verbs(tmp_path, shm_url, scheme):
    url = shm_url.replace("shm", scheme, 1)
    _, out = recorded(tmp_path, url, FINE)
    check = command("check", out)
    assert (check.returncode, check.stdout) == (0, f"{url}:\n  fine\n{url}-other:\n  fine\n")
    events = [json.loads(line) for line in out.read_text().splitlines()]
    verbs = Counter(event["verb"] for event in events)
    assert verbs["move"] == 2
    assert verbs["copy"] == 1
    put = [event["tuple"] for event in events if event["verb"] == "put"]
    assert ['"word"', "1"] in put
    assert (['"sent"', "1"] in put) == (scheme == "shm")
    taken = Counter(str(event["tuple"]) for event in events if event["verb"] == "take")
    assert {words for words, times in taken.items() if times > 1} <= {
        str(['"twin"', "1"]),  # once in each space
        str(None),
    }


LEFT = """
import asyncio, sys
import tupelo as ts
from tupelo import aio

def kept(space):
    with space.transaction() as t:
        t.put("never", 1)
        t.abort()
    with space.transaction() as t:
        t.put("committed", 1)
    claim = space.try_claim("committed", int)
    claim.put("never", 2)
    claim.abort()
    assert space.try_take("conditional", int, where="f[1] > 1") is None

async def waited(space):
    async with aio.connect(space.url) as awaited:
        try:
            await awaited.take("awaited", str, timeout=0)
        except ts.Timeout:
            pass
        async with awaited.transaction() as t:
            await t.put("late", 1)

with ts.connect(sys.argv[1], fresh=True) as space, ts.connect(sys.argv[1] + "-other") as other:
    kept(space)
    space.put_all([("go", 1), ("go", 2)])
    assert space.move_to(other, "go", int) == 2
    assert other.take("go", int) == ("go", 1)
    asyncio.run(waited(space))
ts.remove(sys.argv[1] + "-other")
"""


OF_OTHERS = """
import math, subprocess, sys
import tupelo as ts
from tupelo.batteries import Pool

if __name__ == "__main__":
    url = sys.argv[1]
    worker = [sys.executable, "-m", "tupelo.worker", "math:sqrt", "--url", url]
    with ts.connect(url, fresh=True) as space, Pool(url, workers=1) as pool:
        with subprocess.Popen(worker) as served:
            assert space.eval("root", ts.call(math.sqrt, 4.0), on="workers").result(60)[1] == 2.0
            assert space.take("root", float) == ("root", 2.0)
            served.terminate()
        pool.map(math.sqrt, range(10))  # nobody wants the results
"""


def test_what_workers_answer_and_pools_remove_is_not_held_against_the_program(tmp_path, shm_url):
    _, out = recorded(tmp_path, shm_url, OF_OTHERS)
    check = command("check", out)
    assert (check.returncode, check.stdout) == (0, f"{shm_url}:\n  fine\n")


def test_what_a_transaction_a_claim_and_a_task_leave_is_found(tmp_path, shm_url):
    _, out = recorded(tmp_path, shm_url, LEFT)
    check = command("check", out)
    assert check.returncode == 1
    assert check.stdout.splitlines() == [
        f"{shm_url}:",
        '  1 tuple like ("late", 1) put, never taken and never read',
        '  ("conditional", :int) where "f[1] > 1" asked for 1 time, never there',
        '  ("awaited", :str) asked for 1 time, never there',
        f"{shm_url}-other:",
        '  1 tuple like ("go", 2) put, never taken and never read',
    ]


def checked(tmp_path, *events):
    """Check a record with these lines."""
    path = tmp_path / "run.jsonl"
    lines = [event if type(event) is str else json.dumps(event) for event in events]
    path.write_text("".join(f"{line}\n" for line in lines))
    return command("check", path)


def event(verb, url="shm://a", pid=1, **told):
    return {"time_ns": 1, "pid": pid, "space": url, "verb": verb, "kinds": []} | told


def test_the_empty_tuple_is_one_as_any_other(tmp_path):
    fine = checked(tmp_path, event("put", tuple=[]), event("take", template=[], tuple=[]))
    assert (fine.returncode, fine.stdout) == (0, "shm://a:\n  fine\n")
    left = checked(tmp_path, event("put", tuple=[]), event("take", template=['"a"'], tuple=None))
    assert "1 tuple like () put, never taken" in left.stdout


def test_a_near_miss_counts_the_tuples_with_the_value_that_it_names(tmp_path):
    puts = [event("put", tuple=[tag, "1"]) for tag in ('"a"', '"b"', '"b"', '"c"')]
    takes = [event("take", template=["_", ":int"], tuple=put["tuple"]) for put in puts]
    asked = event("take", template=['"z"', ":int"], tuple=None)
    said = checked(tmp_path, *puts, *takes, asked).stdout
    assert 'with "a" instead of "z" as field 0 it would match 1 tuple\n' in said


def test_a_near_miss_counts_equal_tuples_one_by_one(tmp_path):
    for copies in (1, 2, 4, 7, 100):
        puts = [event("put", tuple=['"a"', "1"])] * copies + [event("put", tuple=['"a"', "2"])] * 3
        takes = [event("take", template=["_", ":int"], tuple=put["tuple"]) for put in puts]
        asked = event("take", template=['"z"', ":int"], tuple=None)
        said = checked(tmp_path, *puts, *takes, asked).stdout
        assert f'with "a" instead of "z" as field 0 it would match {copies + 3} tuples\n' in said


def test_a_private_space_is_another_one_in_each_process(tmp_path):
    put = event("put", "mem://jobs", 1, tuple=['"a"'])
    taken = event("take", "mem://jobs", 2, template=['"a"'], tuple=None)
    check = checked(tmp_path, put, taken)
    assert check.returncode == 1
    assert check.stdout.splitlines() == [
        "mem://jobs of process 1:",
        '  1 tuple like ("a") put, never taken and never read',
        "mem://jobs of process 2:",
        '  ("a") asked for 1 time, never there',
    ]


def test_a_tuple_that_is_to_go_by_itself_is_no_finding(tmp_path, shm_url):
    program = """
import sys, tupelo as ts
with ts.connect(sys.argv[1]) as space:
    space.put("short-lived", 1, lease=0.01)
"""
    _, out = recorded(tmp_path, shm_url, program)
    assert command("check", out).returncode == 0


HOSTILE = (
    "[" * 100_000,
    "5",
    '{"verb": "put"}',
    event("put", tuple="abc"),
    event("put", tuple=[1, 2]),
    event("put", tuple=["((("]),
    event("take", template=[1], tuple=None),
    event("take", template=["((("], tuple=None),
    event("take", template=['("a") where "f[0] +"'], tuple=None),
    event("no such verb", template=[]),
    event("put", 5, tuple=[]),
    event("put", "mem://a", "pid", tuple=[]),
    event("move", template=[], to="shm://b", count=float("inf")),
    event("put", tuple=['"' + "x" * 1_000_000]),
)


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_line_that_nobody_writes_is_refused_in_few_words(tmp_path, line):
    check = checked(tmp_path, line)
    assert check.returncode == 2, check.stdout
    assert "Traceback" not in check.stderr
    assert len(check.stderr) < 1_000


def test_what_a_record_says_does_not_move_the_cursor(tmp_path):
    check = checked(tmp_path, event("put", "shm://\x1b[2J\ud800", tuple=['"\x1b[2J"']))
    assert check.returncode == 1
    assert "\x1b" not in check.stdout
    assert "\\x1b[2J\\ud800" in check.stdout


def test_an_empty_record_says_so(tmp_path):
    check = checked(tmp_path)
    assert (check.returncode, "no operations" in check.stdout) == (0, True)
