"""`python -m tupelo.demo`: the demos run, check their results, and refuse bad input clearly."""

import io
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from console import INSTALLED
from serving import server

import tupelo as ts
from tupelo.demo import database, sort, spaces
from tupelo.demo.number_lines import BadLineError, merged, pack, parse, unpack
from tupelo.formatting import bar, count, duration
from tupelo.terminal import Terminal


def demo(
    *words: str | Path,
    stdout: int = subprocess.PIPE,
    program: Sequence[str | Path] = (sys.executable, "-m", "tupelo.demo"),
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, program), *map(str, words)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_password_search_finds_every_password_and_loses_no_pair():
    run = demo("password", "--pairs", "2000", "--workers", "2", "--searches", "10", "--alone")
    assert run.returncode == 0, run.stderr
    assert "10 searches at once" in run.stdout
    assert "every password right" in run.stdout
    assert "2 000 pairs taken back" in run.stdout
    assert "none missing" in run.stdout


def test_the_password_search_runs_by_way_of_a_server(tmp_path):
    words = ("password", "--pairs", "500", "--workers", "2", "--searches", "5", "--alone")
    with server(tmp_path / "tupelo.sock") as process:
        address = f"unix://{tmp_path / 'tupelo.sock'}"
        for where in (["--server", address], ["--serve"]):
            run = demo(*words, *where)
            assert run.returncode == 0, run.stderr
            assert "500 pairs taken back" in run.stdout
        # It was there, and its spaces are removed again.
        assert process.poll() is None
    refused = demo(*words, "--server", address)
    assert refused.returncode == 1
    assert "TUP-002" in refused.stderr or "no such socket" in refused.stderr


def test_a_file_is_sorted_by_way_of_a_server(tmp_path):
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("\n".join(map(str, range(2_000, 0, -1))), encoding="utf-8")
    run = demo("sort", numbers, "--workers", "2", "--alone", "--serve")
    assert run.returncode == 0, run.stderr


def test_a_space_of_a_demo_is_one_of_the_server_that_was_named():
    assert spaces.url_of("a", None) == "shm://a"
    assert spaces.url_of("a", "tcp://hub:7667/") == "tcp://hub:7667/a"
    assert spaces.url_of("a", "tls://hub?ca=/ca.pem") == "tls://hub/a?ca=/ca.pem"
    assert spaces.url_of("a", "unix:///t.sock") == "unix:///t.sock?space=a"
    assert (
        spaces.url_of("a", "unix:///t.sock?reconnect_s=1") == "unix:///t.sock?space=a&reconnect_s=1"
    )


def test_the_same_work_is_done_without_a_space_and_shown_beside_it():
    run = demo("password", "--pairs", "1000", "--workers", "2", "--searches", "5")
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("every password right") == 3
    table = run.stdout.split("\n\n")[-2].splitlines()
    assert table[0].split() == ["Tupelo", "Queue", "+", "dict", "Manager.dict"]
    assert [line[:17] for line in table[-3:]] == [
        f"  one search, {figure}" for figure in ("p50", "p99", "max")
    ]


def test_the_page_says_which_searches_of_killed_workers_ran_again():
    words = ("--pairs", "1000", "--workers", "2", "--searches", "20", "--alone", "--kill", "3")
    run = demo("password", *words)
    assert run.returncode == 0, run.stderr
    told = re.findall(
        r"  worker (\d+) killed while it searched for [0-9a-f]{8}…:"
        r" worker (\d+) has done it again, attempt (\d)\n",
        run.stdout,
    )
    assert len(told) == 3
    assert all(killed != other and attempt >= "2" for killed, other, attempt in told)
    assert "with 3 workers killed on the way, every password right; 3 ran again" in run.stdout
    assert "nobody was replaced" not in run.stdout
    assert "1 000 pairs taken back" in run.stdout


def test_the_others_finish_all_the_work_of_those_that_were_killed():
    words = ("--pairs", "1000", "--workers", "3", "--searches", "20", "--alone", "--kill", "2")
    run = demo("password", *words)
    assert run.returncode == 0, run.stderr
    told = re.findall(r"  worker (\d+) killed .* worker (\d+) has done it again", run.stdout)
    killed, others = zip(*told, strict=True)
    assert others[1] not in killed
    assert "40 searches with 2 workers killed on the way, every password right" in run.stdout
    assert "  nobody was replaced: 1 of 3 did what was left\n" in run.stdout
    assert "1 000 pairs taken back" in run.stdout


def test_what_make_demo_runs_kills_workers_and_finds_every_password_k2():
    """In a smaller size, and by the program that it installs, as there."""
    makefile = (Path(__file__).parents[2] / "Makefile").read_text("utf-8")
    (words,) = re.findall(r"^\t@\$\(BIN\)/tupelo (demo .*)$", makefile, re.MULTILINE)
    words = words.removesuffix(" $(DEMO_SERVER)")  # nothing without URL=
    smaller = ("--pairs", "1000", "--workers", "2", "--searches", "20")
    run = demo(*words.split(), *smaller, program=[INSTALLED])
    assert run.returncode == 0, run.stderr
    assert run.stdout.count(" killed while it searched for ") == 2
    assert "with 2 workers killed on the way, every password right; 2 ran again" in run.stdout
    assert "1 000 pairs taken back" in run.stdout
    assert run.stdout.count("every password right") == 4  # also beside what others use


def test_a_file_is_sorted_by_those_who_are_left(tmp_path):
    source = tmp_path / "numbers.txt"
    source.write_text("\n".join(map(str, range(5000, 0, -1))))
    run = demo("sort", source, "--workers", "2", "--kill", "3")
    assert run.returncode == 0, run.stderr
    assert run.stdout.count(" killed while it sorted part 0\n") == 3
    assert re.search(r"part 0 sorted again by worker \d+, attempt 4\n", run.stdout)
    assert "the results are equal" in run.stdout


def test_demos_leave_no_space_behind():
    words = ["password", "--pairs", "100", "--workers", "2", "--searches", "1", "--alone"]
    command = [sys.executable, "-m", "tupelo.demo", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as run:
        assert run.wait(timeout=120) == 0
    # Its own: another demo may run meanwhile, of somebody who looks at one.
    listing = [path.name for path in Path("/dev/shm").iterdir()]  # noqa: S108
    assert not [name for name in listing if f"tupelo-demo-password-{run.pid}" in name]


def test_what_a_killed_demo_left_behind_is_removed_by_the_next_and_nothing_else():
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    left = {f"tupelo-demo-{rest}" for rest in (f"password-{ended.pid}", f"sort-{ended.pid}")}
    left.add(f"tupelo-demo-password-{ended.pid}-3")
    others = {f"tupelo-demo-sort-{os.getpid()}", f"demo-{ended.pid}", f"demo-sort-{ended.pid}"}
    for name in left | others:
        ts.connect(f"shm://{name}").close()
    try:
        assert demo("sort", "/nonexistent").returncode == 1
        names = {space["name"] for space in ts.spaces()}
        assert names.isdisjoint(left)
        assert others <= names
    finally:
        for name in left | others:
            with suppress(ts.SpaceNotFound):
                ts.remove(f"shm://{name}")


def test_passwords_are_seven_digits_and_never_repeat():
    passwords = [database.password(index) for index in range(100_000)]
    assert len(set(passwords)) == len(passwords)
    assert {len(password) for password in passwords} == {7}


def test_the_digest_of_the_case_study_is_right():
    assert database.digest("7723567") == "dd157c03313e452ae4a7a5b72407b3a9"


@pytest.mark.parametrize("kind", ["integers", "floats", "mixed and beyond 64 bits"])
def test_a_file_is_sorted(tmp_path, kind):
    choice = random.Random(kind)
    draw = {
        "integers": lambda: choice.randrange(-1000, 1000),
        "floats": lambda: choice.uniform(-1, 1),
        "mixed and beyond 64 bits": lambda: choice.choice([1.5, -7, 10**30, -(10**30)]),
    }[kind]
    numbers = [draw() for _ in range(5000)]
    source = tmp_path / "numbers.txt"
    source.write_text("\n".join(map(str, numbers)))
    run = demo("sort", source, "--workers", "2", "--out", tmp_path / "sorted.txt")
    assert run.returncode == 0, run.stderr
    assert "the results are equal" in run.stdout
    lines = (tmp_path / "sorted.txt").read_text().split()
    assert lines == list(map(str, sorted(numbers)))


def test_no_more_parts_are_under_way_than_find_room():
    mib = 1 << 20
    assert sort.parts_ahead(4, 256 * mib) == 16
    assert sort.parts_ahead(64, 256 * mib) == 42
    assert sort.parts_ahead(64, mib) == 1


def test_a_file_that_is_larger_than_the_space_is_sorted(tmp_path, shm_url):
    numbers = 12 * (1 << 17)  # twelve parts, as long when they are sorted
    source = tmp_path / "numbers.txt"
    source.write_text("1234567\n" * numbers)
    plan = sort.Plan(source, workers=2, out=None, url=f"{shm_url}?size=8M")
    parts, _ = sort.with_workers(plan, Terminal(io.StringIO()))
    assert len(parts) == 12
    assert sum(map(len, parts)) == numbers


def test_a_bad_line_is_named(tmp_path):
    source = tmp_path / "numbers.txt"
    source.write_text("1\n2\n\nthree\n4\n")
    run = demo("sort", source)
    assert run.returncode == 1
    assert run.stderr == f"tupelo demo sort: {source}, line 4: 'three' is not a number\n"


def test_a_bad_line_far_in_the_file_is_named_by_its_number_in_the_file(tmp_path):
    source = tmp_path / "numbers.txt"
    source.write_text("123456789\n" * 400_000 + "nan\n")
    run = demo("sort", source, "--workers", "2")
    assert run.stderr == f"tupelo demo sort: {source}, line 400001: 'nan' is not a number\n"


def test_a_file_without_numbers_is_refused(tmp_path):
    source = tmp_path / "empty.txt"
    source.write_text("\n\n")
    run = demo("sort", source)
    assert run.returncode == 1
    assert run.stderr == f"tupelo demo sort: {source} has no numbers; one per line is expected\n"


def test_a_missing_file_is_named(tmp_path):
    run = demo("sort", tmp_path / "missing.txt")
    assert run.returncode == 1
    assert (
        run.stderr == f"tupelo demo sort: {tmp_path / 'missing.txt'}: No such file or directory\n"
    )


def test_a_reader_that_has_enough_ends_a_demo_without_a_word(tmp_path):
    source = tmp_path / "numbers.txt"
    source.write_text("2\n1\n")
    reading, writing = os.pipe()
    os.close(reading)
    run = demo("sort", source, "--workers", "1", stdout=writing)
    os.close(writing)
    assert (run.returncode, run.stderr) == (141, "")


def test_an_output_that_can_not_be_written_is_told_without_a_name(tmp_path):
    source = tmp_path / "numbers.txt"
    source.write_text("2\n1\n")
    with Path("/dev/full").open("wb") as full:
        run = demo("sort", source, "--workers", "1", stdout=full.fileno())
    assert (run.returncode, run.stderr) == (1, "tupelo demo sort: No space left on device\n")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_quiet_demo_prints_nothing_wherever_it_is_told_to(tmp_path, place):
    (tmp_path / "numbers.txt").write_text("2\n1\n")
    words = ["sort", tmp_path / "numbers.txt", "--workers", "1", "--no-color"]
    words.insert(place, "--quiet")
    run = demo(*words)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_help_shows_examples():
    assert "tupelo demo sort numbers.txt" in demo("--help").stdout
    assert "tupelo demo sort numbers.txt" in demo().stdout
    assert demo().returncode == 2


def test_merging_gives_what_sorting_gives():
    for seed in range(50):
        choice = random.Random(seed)
        parts = [
            sorted(choice.randrange(50) for _ in range(choice.randrange(60))) for _ in range(5)
        ]
        everything = sorted(number for part in parts for number in part)
        assert [n for block in merged(parts, 20) for n in block] == everything, f"seed {seed}"


@pytest.mark.parametrize("numbers", [[1, 2], [1.5, -0.0], [1, 2.5], [10**30], []])
def test_packed_numbers_come_back(numbers):
    assert list(unpack(pack(numbers))) == numbers


def test_a_line_that_is_no_number_is_told_by_its_index():
    with pytest.raises(BadLineError, match="line 2: 'two' is not a number"):
        parse(b"1\ntwo\n")


@pytest.mark.parametrize("line", [b"9" * 5000, b"-" + b"9" * 5000, b"1e400"])
def test_a_number_that_no_float_can_hold_is_refused_and_not_infinite(line):
    with pytest.raises(BadLineError, match="line 2: "):
        parse(b"1\n" + line + b"\n")


def test_what_is_written_as_infinite_is():
    assert parse(b"inf\n1\n-Infinity\n") == [math.inf, 1, -math.inf]


def test_figures_are_readable():
    assert (count(1_234_567), duration(0.00123), duration(12.3)) == (
        "1 234 567",
        "1.23 ms",
        "12.3 s",
    )
    assert (bar(1, 2).count("█"), bar(0, 0).count("█")) == (16, 0)
