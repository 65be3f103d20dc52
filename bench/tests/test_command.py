"""`tupelo bench`: what it shows, writes, and refuses."""

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET  # of our own files
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tupelo as ts
from tupelo_bench.backends.redis import Redis
from tupelo_bench.backends.registry import PEERS
from tupelo_bench.command.arguments import arguments, budget_s
from tupelo_bench.harness.record import BadRecordError, load


class Links(HTMLParser):
    """The addresses that a page asks for."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        address = named.get("src") or (named.get("href") if tag in {"link", "use"} else None)
        if address and not address.startswith("#"):
            self.found.append((tag, address))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def written(bench, folder):
    """A quick run of one experiment, made once."""
    if not (folder / "run.json").exists():
        run = bench("mem", "--quick", "--vs", "mp,sqlite,redis", "--out", folder)
        assert run.returncode == 0, run.stdout + run.stderr
        (folder / "shown").write_text(run.stdout)
    return folder


def test_a_run_is_recorded_with_machine_versions_and_command(written):
    run = load(written / "run.json")
    assert run.command[:3] == ["tupelo", "bench", "mem"]
    assert run.machine["processors"]
    assert {"tupelo", "python", "sqlite"} <= set(run.versions)
    assert run.quick
    assert not run.failures


def test_every_backend_has_a_put_and_a_take_of_every_entry(written):
    run = load(written / "run.json")
    backends = {measure.backend for measure in run.of("mem")}
    assert {"tupelo-shm", "tupelo-mem", "mp-queue", "mp-manager", "sqlite"} <= backends
    for metric in ("put", "take"):
        found = list(run.find("mem", metric, entry="Double 2048", fill=500, placement="apart"))
        assert {measure.backend for measure in found} == backends
        assert all(measure.groups == [5, 5] and min(measure.samples) > 0 for measure in found)


def test_a_server_is_measured_on_the_processor_of_its_client_too(written):
    run = load(written / "run.json")
    together = {measure.backend for measure in run.find("mem", "put", placement="together")}
    assert "mp-manager" in together
    assert not together & {"tupelo-shm", "mp-queue", "sqlite"}
    assert [place.split(":")[0] for place in run.placements["mem"]] == ["apart", "together"]


def test_what_a_peer_can_not_do_is_said(written):
    run = load(written / "run.json")
    remarks = [remark for remark in run.remarks if remark.backend == "mp-queue"]
    assert {remark.why for remark in remarks} == {"can not"}
    assert "mp-queue" in (written / "shown").read_text()


def test_the_yardsticks_are_in_every_run(written):
    run = load(written / "run.json")
    metrics = {measure.metric for measure in run.of("yardsticks")}
    two = {"shared byte", "longest pause", "share of pauses"}
    shared = two if len(os.sched_getaffinity(0)) > 1 else set()
    keyed = {"dict insert by key", "dict pop by key"}
    assert metrics == keyed | {"dict insert + pop", "memcpy 16 KiB", "ping-pong"} | shared


def test_the_csv_has_a_line_per_measure(written):
    with (written / "run.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(load(written / "run.json").measures)
    assert all(float(row["mean"]) >= 0 for row in rows)


def test_every_figure_is_a_picture_and_on_the_page(written):
    page = (written / "report.html").read_text(encoding="utf-8")
    figures = list((written / "figures").glob("*.svg"))
    assert figures
    for figure in figures:
        assert ET.parse(figure).getroot().tag.endswith("svg")  # noqa: S314
    assert page.count("<img") == len(figures)


def test_the_page_needs_nothing_but_the_figures_beside_it(written):
    links = Links()
    links.feed((written / "report.html").read_text(encoding="utf-8"))
    figures = {("img", f"figures/{path.name}") for path in written.glob("figures/*")}
    assert set(links.found) == figures


def test_a_page_alone_needs_nothing_else(bench, written, tmp_path):
    run = bench("mem", "--record", written / "run.json", "--html", tmp_path / "page.html")
    assert run.returncode == 0, run.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    links = Links()
    links.feed(page)
    assert links.found == []
    assert page.count("<svg") == len(list(written.glob("figures/*")))


def test_the_files_are_small_and_can_be_made_again_from_the_record(bench, written, tmp_path):
    # A full run of everything may have 5 MB.
    assert sum(path.stat().st_size for path in written.rglob("*")) < 1_000_000
    again = bench("mem", "--record", written / "run.json", "--out", tmp_path)
    assert again.returncode == 0, again.stderr
    for path in written.rglob("*.*"):
        assert (tmp_path / path.relative_to(written)).read_bytes() == path.read_bytes()


def test_the_results_have_the_yardsticks_and_link_every_figure(written):
    page = (written / "README.md").read_text(encoding="utf-8")
    assert "A quick run" in page
    assert "dict insert + pop" in page
    for figure in (written / "figures").glob("*.svg"):
        assert f"(figures/{figure.name})" in page


def test_two_runs_are_compared(bench, written, tmp_path):
    second = bench(
        "mem", "--quick", "--vs", "", "--compare", written / "run.json",
        "--save", tmp_path / "run.json",
    )  # fmt: skip
    assert second.returncode == 0, second.stderr
    assert "since the old run" in second.stdout
    assert "are in the old run only" in second.stdout


def test_a_file_that_is_no_record_is_refused_before_anything_runs(bench, tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"no": "record"}')
    run = bench("mem", "--quick", "--compare", path)
    assert run.returncode == 1
    assert "is not the record of a run" in run.stderr
    with pytest.raises(BadRecordError):
        load(path)


def test_an_unknown_peer_is_wrong_usage(bench):
    run = bench("mem", "--quick", "--vs", "kafka")
    assert run.returncode == 2
    assert "there is no peer 'kafka'" in run.stderr


def test_everybody_is_compared_with_whom_one_asks_for(bench, written):
    record = written / "run.json"
    run = bench("mem", "--record", record, "--against", "sqlite")
    assert run.returncode == 0, run.stderr
    heads = [line.split() for line in run.stdout.splitlines() if line.lstrip().startswith("sqlite")]
    others = ["tupelo-shm", "tupelo-mem", "mp-queue", "mp-manager"]
    others += [] if Redis.missing() else ["redis"]
    assert ["sqlite", *others] in heads
    for words, why in (
        (("mem", "--record", record, "--against", "grpc"), "has no measure of grpc: it is of mach"),
        (("mem", "--vs", "redis", "--against", "sqlite"), "is not measured: add it to --vs redis"),
        (("mem", "--against", "reds"), "there is no 'reds': did you mean redis? there are tupelo"),
    ):
        refused = bench(*words)
        assert refused.returncode in {1, 2}
        assert why in refused.stderr
        assert refused.stdout == ""


@pytest.mark.parametrize(
    "word",
    ["--entries=a,b", "--operations=0", "--operations=-1,2,3", "--budget=nan", "--budget=0"],
)
def test_a_value_that_can_not_be_is_wrong_usage_and_nothing_is_measured(bench, word):
    run = bench("settle", "--quick", word)
    assert run.returncode == 2
    assert f"argument {word.partition('=')[0]}: " in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""  # not even the first line of progress


ENTRIES = "needs 4 numbers, for Null, String, Array, File in this order"
OPERATIONS = "needs 3 numbers, for read, take, write in this order"
NO_LIMIT = "no limit is --budget none"
REFUSED = (  # what is typed, what is wrong with it, what to type instead
    ("--entries=a,b", f"'a' is no number in 'a,b': {ENTRIES}", "as in --entries=45,15,25,15"),
    ("--entries=null,Strng", f"'null' is no number in 'null,Strng': {ENTRIES}", "=1,1,0,0?"),
    ("--entries=1,2", f"2 numbers in '1,2': {ENTRIES}", "as in --entries=45,15,25,15"),
    ("--entries=1,2,3,nan", "'nan' is not finite", "as in --entries=45,15,25,15"),
    ("--entries=", f"'' is no number in '': {ENTRIES}", "as in --entries=45,15,25,15"),
    ("--operations=0", f"1 number in '0': {OPERATIONS}", "as in --operations=0,0,100"),
    ("--operations=0,0,0", f"nothing is above 0 in '0,0,0': {OPERATIONS}", "=0,0,100"),
    ("--operations=-1,2,3", f"'-1' is less than 0 in '-1,2,3': {OPERATIONS}", "=0,0,100"),
    ("--operations=1e400,0,0", "'1e400' is not finite", "as in --operations=0,0,100"),
    ("--operations=1e308,1e308,0", "the sum is too large", "as in --operations=0,0,100"),
    ("--operations=writes", "'writes' is no number", "did you mean --operations=0,0,1?"),
    ("--operations -1,2,3", "expected one argument", "type --operations=R,T,W"),
    ("--budget=nan", "'nan' is no number of minutes", "as in --budget 30"),
    ("--budget=ten", "'ten' is no number of minutes", "as in --budget 30"),
    ("--budget=inf", "'inf' is no number of minutes", NO_LIMIT),
    ("--budget=None", "'None' is no number of minutes", NO_LIMIT),
    ("--budget=-inf", "'-inf' minutes are no time", "the least is --budget 1"),
    ("--budget=-1", "'-1' minutes are no time", "the least is --budget 1"),
    ("--budget=0", "'0' minutes are no time", "the least is --budget 1"),
    ("--budget=1.5", "must be whole minutes, not '1.5'", "type --budget 2"),
    ("--budget=1e400", "'1e400' minutes are more than a week", NO_LIMIT),
    (f"--budget={'9' * 5_000}", "999...' minutes are more than a week", NO_LIMIT),
    ("--repeats=x", "'x' is no whole number", "as in --repeats 10"),
    ("--repeats=0", "must be 1 or more, not 0", "type --repeats 1"),
    ("--seed=-3", "must be 0 or more, not -3", "type --seed 0"),
    ("--seed=x", "'x' is no whole number", "as in --seed 1"),
    ("--bugdet 3", "unrecognized arguments: --bugdet 3", "did you mean --budget? there are"),
    ("settle", "unrecognized arguments: settle", "one of mem, settle, cases"),
)


@pytest.mark.parametrize(("words", "fact", "way_out"), REFUSED, ids=lambda text: text[:30])
def test_a_refusal_says_what_is_wrong_and_what_to_type(capsys, words, fact, way_out):
    with pytest.raises(SystemExit) as ended:
        arguments().parse_args(["mem", *words.split(" ")])
    assert ended.value.code == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert fact in message
    assert way_out in message


def test_an_unknown_experiment_is_refused_with_the_nearest(capsys):
    for words, way_out in (["mme"], "did you mean mem? there are mem,"), ([], "as in tupelo bench"):
        with pytest.raises(SystemExit) as ended:
            arguments().parse_args(words)
        assert ended.value.code == 2
        assert way_out in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "seconds"), [("none", None), ("1", 60.0), ("90", 5_400.0), ("10080", 604_800.0)]
)
def test_a_budget_is_whole_minutes_up_to_a_week_or_none(word, seconds):
    assert budget_s(arguments().parse_args(["mem", "--budget", word])) == seconds


def test_peers_tells_what_is_here(bench):
    run = bench("peers")
    assert run.returncode == 0
    lines = {line.split()[0]: line for line in run.stdout.splitlines()}
    assert " yes " in lines["sqlite"]
    assert all(" yes " in line or "install" in line for line in lines.values())
    assert all(peer.title in lines[peer.name] for peer in PEERS)


def test_a_quiet_run_prints_nothing(bench):
    run = bench("peers", "--quiet")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_help_tells_how_to_run_without_a_limit(bench):
    assert "--budget MINUTES|none" in bench("--help").stdout


@pytest.mark.parametrize("experiment", ["settle", "cases", "rpc", "sort"])
def test_every_experiment_runs_and_its_results_are_right(bench, tmp_path, experiment):
    run = bench(
        experiment, "--quick", "--vs", "redis,udp,grpc", "--repeats", "1", "--out", tmp_path
    )
    assert run.returncode == 0, run.stdout + run.stderr
    record = load(tmp_path / "run.json")
    assert not record.failures
    assert "tupelo-shm" in {measure.backend for measure in record.of(experiment)}
    assert list((tmp_path / "figures").glob(f"{experiment}-*.svg"))
    again = bench(experiment, "--record", tmp_path / "run.json", "--save", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "again").read_bytes() == (tmp_path / "run.json").read_bytes()


@pytest.mark.parametrize("option", ["--out", "--save", "--html"])
def test_where_nothing_can_be_written_nothing_is_measured(bench, tmp_path, option):
    (tmp_path / "file").write_text("in use")
    place = tmp_path / "file" / "below"
    run = bench("mem", "--quick", "--vs", "", option, place)
    assert run.returncode == 1
    assert (
        f"tupelo bench: {option} {place} can not be written (not a directory): name a" in run.stderr
    )
    assert "Traceback" not in run.stderr
    assert run.stdout == ""  # not even the first line of progress
    assert (tmp_path / "file").read_text() == "in use"


DAMAGED = (  # members of a measure that no run writes
    *({"samples": wrong} for wrong in ([], None, ["a"], [True], [float("nan")], [10**400], 5)),
    *({"exponent": wrong} for wrong in ("a", 0.5, 399, 9_999, None)),
    *({"groups": wrong} for wrong in ([0], [5, 99], ["a"], 5)),
    *({"parameters": []}, {"metric": 5}, {"histogram": "junk"}, {"unknown": 1}),
)


@pytest.mark.parametrize("change", DAMAGED, ids=str)
def test_a_record_with_damaged_members_is_refused(written, tmp_path, change):
    raw = json.loads((written / "run.json").read_text())
    raw["measures"][-1] |= change
    (tmp_path / "run.json").write_text(json.dumps(raw))
    with pytest.raises(BadRecordError, match=r"is not the record of a run"):
        load(tmp_path / "run.json")


def test_a_record_that_lacks_something_is_refused_in_words(bench, written, tmp_path):
    raw = json.loads((written / "run.json").read_text())
    lacks_unit = {k: v for k, v in raw["measures"][0].items() if k != "unit"}
    for change, why in (
        ({"measures": [lacks_unit]}, "a measure lacks unit"),
        ({"measures": [5]}, "a measure is not what a run writes"),
        ({"odd": 1}, "the run has an unknown odd"),
    ):
        (tmp_path / "run.json").write_text(json.dumps(raw | change))
        with pytest.raises(BadRecordError, match=why):
            load(tmp_path / "run.json")
    other = bench("sort", "--record", written / "run.json")
    assert other.returncode == 1
    assert "has no measure of sort: it is of mem" in other.stderr


@pytest.mark.parametrize("name", ["machine", "versions", "begin", "notes"])
def test_a_record_of_another_form_is_refused(written, tmp_path, name):
    raw = json.loads((written / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(raw | {name: 5}))
    with pytest.raises(BadRecordError, match=r"is not what a run writes"):
        load(tmp_path / "run.json")


@pytest.mark.parametrize(
    "text", ["", "[]\n", '{"verb": "put"', '{"verb":"put","kinds":5}\n', "\xff"]
)
def test_a_workload_that_is_no_history_is_refused(bench, tmp_path, text):
    path = tmp_path / "history.jsonl"
    path.write_bytes(text.encode("latin-1"))
    run = bench("settle", "--quick", "--vs", "", "--workload", path)
    assert run.returncode == 1
    assert "tupelo record" in run.stderr
    assert "Traceback" not in run.stderr


RECORDED = """
import tupelo as ts

with ts.connect("mem://recorded") as space:
    for number in range(20):
        space.put("job", number)
    for number in range(15):
        space.take("job", number)
"""


def test_a_recorded_program_ages_a_space(bench, tmp_path):
    history = tmp_path / "history.jsonl"
    program = (sys.executable, "-c", RECORDED)
    record = (sys.executable, "-m", "tupelo.record", "--out", history, "--", *program)
    subprocess.run(record, check=True)
    out = tmp_path / "out"
    run = bench("settle", "--quick", "--vs", "", "--workload", history, "--out", out)
    assert run.returncode == 0, run.stderr
    measures = load(out / "run.json").measures
    aged = {measure.parameters.get("aged by") for measure in measures}
    assert len(aged - {None}) == 1
    assert any(measure.metric == "cleaning" for measure in measures)


def test_a_broken_package_of_a_peer_hides_no_other_peer(bench, tmp_path, monkeypatch):
    (tmp_path / "redis.py").write_text("raise RuntimeError('broken')")
    server = tmp_path / "redis-server"  # its package is looked at where its server is
    server.write_text("#!/bin/sh\n")
    server.chmod(0o755)
    for name in ("PATH", "PYTHONPATH"):
        monkeypatch.setenv(name, f"{tmp_path}{os.pathsep}{os.environ.get(name, '')}")
    run = bench("peers")
    assert run.returncode == 0, run.stderr
    lines = {line.split()[0]: line for line in run.stdout.splitlines()}
    assert set(lines) == {peer.name for peer in PEERS}
    assert "the Python package redis does not work: RuntimeError('broken')" in lines["redis"]


def test_without_numpy_it_says_what_to_install(bench, tmp_path, monkeypatch):
    lack = "raise ModuleNotFoundError(\"No module named 'numpy'\", name='numpy')"
    (tmp_path / "numpy.py").write_text(lack)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    run = bench("mem", "--quick")
    assert run.returncode == 1
    assert run.stderr == (
        "tupelo bench: no Python package numpy, which every experiment needs:"
        " pip install ./bench in a checkout\n"
    )


@pytest.fixture
def short_path():
    """A folder in which a Unix socket has a name that is not too long."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


WITH_SERVER = (
    "mp-manager",  # whose server every Python has
    # And one that is no Python program, where it is installed.
    pytest.param("redis", marks=pytest.mark.skipif(Redis.missing() is not None, reason="no Redis")),
)


@pytest.mark.parametrize("peer", WITH_SERVER)
def test_who_is_told_to_end_leaves_nothing_behind(short_path, peer):
    environment = os.environ | {"TMPDIR": str(short_path)}
    command = [sys.executable, "-m", "tupelo_bench", "mem", "--quick", "--vs", peer]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as run:
        while not list(short_path.glob(f"tupelo-bench-{peer}-*")):  # its server is about to start
            assert run.poll() is None
        run.send_signal(signal.SIGTERM)
        run.communicate()
    assert run.returncode == 130
    assert not list(short_path.glob("tupelo-bench-*"))
    assert not [one["name"] for one in ts.spaces() if f"-{run.pid}-" in one["name"]]


def processes_in(folder):
    """The processes that have this folder for their temporary files, as the run and its servers."""
    mark, found = f"TMPDIR={folder}".encode(), []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # one that has ended, or of somebody else
            if mark in environment.read_bytes().split(b"\0"):
                found.append(int(environment.parent.name))
    return found


@pytest.mark.parametrize("peer", WITH_SERVER)
def test_who_is_killed_leaves_no_process_behind(short_path, peer, eventually):
    environment = os.environ | {"TMPDIR": str(short_path)}
    command = [sys.executable, "-m", "tupelo_bench", "mem", "--quick", "--vs", peer]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment) as run:
        while not list(short_path.glob(f"tupelo-bench-{peer}-*")):
            assert run.poll() is None
        while len(list(short_path.glob("tupelo-bench-*"))) < 2:  # that of its workers
            assert run.poll() is None
        assert len(processes_in(short_path)) > 1
        run.kill()
    eventually(lambda: processes_in(short_path) == [])
    for one in ts.spaces():  # which a next run would remove
        if f"-{run.pid}-" in one["name"]:
            ts.remove(f"shm://{one['name']}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_that_reaches_the_whole_group_ends_the_run_without_a_report(short_path, number):
    out = short_path / "out"
    command = [*(sys.executable, "-m", "tupelo_bench", "mem", "--quick", "--vs", "mp-manager")]
    pipe, environment = subprocess.PIPE, os.environ | {"TMPDIR": str(short_path)}
    # Where the tests run behind a shell's `&`, SIGINT is ignored, and the run would inherit that.
    before = signal.signal(number, signal.SIG_DFL)
    run = subprocess.Popen(
        [*command, "--out", out], stdout=pipe, stderr=pipe, text=True, env=environment,
        start_new_session=True,
    )  # fmt: skip
    signal.signal(number, before)
    with run:
        while not list(short_path.glob("tupelo-bench-mp-manager-*/manager.sock")):
            assert run.poll() is None
        while len(list(short_path.glob("tupelo-bench-*"))) < 2:  # that of its workers
            assert run.poll() is None
        os.killpg(run.pid, number)
        os.killpg(run.pid, number)  # as `timeout` does it
        output, errors = run.communicate(timeout=60)
    assert (run.returncode, errors) == (130, "")
    assert "failed" not in output
    assert list(out.iterdir()) == []
    assert not list(short_path.glob("tupelo-bench-*"))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("peers", "--out", "x"), "--out: peers only lists the peers"),
        (("mem", "--record", "x", "--quick", "--seed", "2"), "--quick, --seed: with --record"),
    ],
)
def test_an_option_that_would_say_nothing_is_refused(bench, words, why):
    run = bench(*words)
    assert run.returncode == 2
    assert why in run.stderr


def test_a_record_is_resumed_with_the_peers_and_experiments_that_are_named(bench, tmp_path):
    words = ("all", "--only", "sort", "--quick", "--resume", tmp_path, "--repeats")
    first = bench(*words, "1", "--peer", "tupelo-shm,mp-queue")
    assert first.returncode == 0, first.stdout + first.stderr
    run = load(tmp_path / "run.json")
    assert {m.backend for m in run.of("sort")} == {"tupelo-shm", "mp-queue"}
    second = bench(*words, "3", "--peer", "mp-queue")
    assert second.returncode == 0, second.stdout + second.stderr
    run = load(tmp_path / "run.json")
    counts = {(m.backend, len(m.samples)) for m in run.find("sort", "response time")}
    assert counts == {("tupelo-shm", 1), ("mp-queue", 3)}
    assert len(run.sittings) == 2
    assert "Made in 2 sittings" in (tmp_path / "README.md").read_text()
    anew = bench(*words, "2", "--peer", "mp-queue", "--anew")
    assert anew.returncode == 0, anew.stdout + anew.stderr
    run = load(tmp_path / "run.json")
    counts = {(m.backend, len(m.samples)) for m in run.find("sort", "response time")}
    assert counts == {("tupelo-shm", 1), ("mp-queue", 2)}
    refused = bench(*words, "3", "--seed", "5")
    assert refused.returncode == 1
    assert "type --seed 1 to resume it" in refused.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("all", "--vs", "redis", "--peer", "redis"), "--vs beside --peer"),
        (("mem", "--only", "sort"), "--only beside mem"),
        (("all", "--only", "sorting"), "did you mean sort?"),
        (("all", "--resume", "a", "--out", "b"), "--out beside --resume"),
        (("all", "--anew"), "--anew without --resume"),
        (("mem", "--peer", "red"), "there is no peer 'red'"),
    ],
)
def test_what_is_run_in_part_has_to_make_sense(bench, words, told):
    run = bench(*words, "--quick")
    assert run.returncode == 2
    assert told in run.stderr
