"""`tupelo record` and `tupelo check`: what was put for nobody, and asked for in vain."""

import json
import re
import subprocess
import sys

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
                print(space.take("sorted_part", list, "sorted", timeout=2))
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
    run, out = recorded(tmp_path, shm_url, SORTING.format(written="sort_array"))
    assert "the master waits for ever" in run.stdout
    check = command("check", out)
    assert check.returncode == 1
    assert re.search(
        r'2 tuples like \("sort_array", list\([\d, ]+\), "sorted"\) put, never taken', check.stdout
    )
    assert '("sorted_part", :list, "sorted") asked for' in check.stdout
    assert 'with "sort_array" instead of "sorted_part" as field 0 it would match 2' in check.stdout


def test_the_listing_as_it_was_meant_is_fine(tmp_path, shm_url):
    run, out = recorded(tmp_path, shm_url, SORTING.format(written="sorted_part"))
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
