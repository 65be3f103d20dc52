"""Spaces of a server, by `unix://` and `tcp://` URLs."""

import json
import os
import re
import shutil
import signal
import socket as sockets
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import pytest
from conformance import synchronous
from console import run
from serving import server
from stopping import stop

import tupelo as ts
from tupelo._native import put_text

CASES = [
    case
    for path in sorted((Path(__file__).parents[2] / "conformance").glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
]
NUMBERS = count()


@pytest.fixture(scope="module")
def port():
    """The URL of a server's spaces at a port, which end in NAME."""
    with server("tcp://127.0.0.1:0") as process:
        yield process.url


@pytest.fixture(params=["unix", "tcp"])
def url(request, socket):
    if request.param == "tcp":
        port = request.getfixturevalue("port")
        return f"{port.replace('NAME', f'test-{next(NUMBERS)}')}?size=16M"
    return f"unix://{socket}?space=test-{next(NUMBERS)}&size=16M"


@pytest.fixture
def space(url):
    with ts.connect(url) as space:
        yield space


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_case_holds(case, socket):
    synchronous.hold(case, lambda: f"unix://{socket}?space=case-{next(NUMBERS)}&size=16M")


def test_the_verbs_of_the_first_program(space):
    space.put("job", 7, b"resize")
    assert space.count("job", ...) == 0
    assert space.count("job", int, bytes) == 1
    assert space.read("job", int, ...) == ("job", 7, b"resize")
    assert space.take("job", int, ..., timeout=1.0) == ("job", 7, b"resize")
    assert space.try_take("job", int, ...) is None
    assert space.put_all(("n", n) for n in range(5)) == 5
    assert space.take_many("n", int, n=2) == [("n", 0), ("n", 1)]
    assert space.swap("n", 2, to=("n", 20)) == ("n", 2)
    assert space.take_all("n", int) == [("n", 3), ("n", 4), ("n", 20)]
    assert space.put_if_absent("leader", 1, unless=("leader", int))
    assert not space.put_if_absent("leader", 2, unless=("leader", int))


def test_a_take_waits_for_a_put_of_another_thread(url):
    with ts.connect(url) as space:
        taken = []
        takers = [
            threading.Thread(target=lambda n=n: taken.append(space.take("job", n)))
            for n in range(8)
        ]
        for taker in takers:
            taker.start()
        for n in reversed(range(8)):
            space.put("job", n)
        for taker in takers:
            taker.join()
        assert sorted(taken) == [("job", n) for n in range(8)]


def test_other_threads_run_while_one_waits_for_the_server(space):
    """The interpreter's lock is let go of: the thread that puts could not run otherwise."""
    threading.Timer(0.01, space.put, ("late", 1)).start()
    assert space.take("late", int, timeout=60) == ("late", 1)


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_a_timeout_names_the_template_and_removes_nothing(space, timeout):
    space.put("job", 1)
    with pytest.raises(ts.Timeout, match=r"nothing matched \(\"task\", :int\)"):
        space.take("task", int, timeout=timeout)
    assert space.count("job", int) == 1


def test_what_waits_for_several_or_for_none_is_woken(space):
    threading.Timer(0.01, space.put_all, [[("n", n) for n in range(3)]]).start()
    assert space.take_many("n", int, n=3, timeout=60) == [("n", 0), ("n", 1), ("n", 2)]
    space.put("busy")
    threading.Timer(0.01, space.take, ("busy",)).start()
    space.wait_none("busy", timeout=60)
    threading.Timer(0.01, space.put, ("state", "idle")).start()
    assert space.swap("state", str, to=("state", "busy"), timeout=60) == ("state", "idle")


def test_a_tuple_that_python_can_not_represent_stays_v3(space):
    put_text(space, 'at, timestamp("2031-05-04T16:20:00.123456789Z")')
    for take in (space.take, space.try_take, space.take_all):
        with pytest.raises(ts.NotEncodable, match="nanoseconds"):
            take("at", ...)
    assert space.count("at", ...) == 1
    assert space.discard("at", ...) == 1
    assert space.count("at", ...) == 0


def test_ctrl_c_ends_a_blocked_take_which_has_no_effect_t5(space):
    main = threading.get_ident()
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()
        space.take("job", int)
    space.put("job", 1)
    assert space.take("job", int, timeout=60) == ("job", 1)


def test_a_space_of_a_server_has_every_verb(space, url):
    with space.subscribe("job", int, on={"put", "take", "return"}) as events:
        lease = space.put("job", 1, lease=60)
        assert 59 < lease.expires_in_s <= 60
        with pytest.raises(ZeroDivisionError), space.claim("job", int, max_attempts=2):
            raise ZeroDivisionError
        with space.claim("job", int) as (_, number):
            assert number == 1
        assert [next(events).kind for _ in range(3)] == ["put", "return", "take"]
    space.put("account", "alice", 100)
    with space.transaction() as t:
        _, _, money = t.take("account", "alice", int)
        t.put("account", "alice", money - 10)
    assert list(space.scan("account", str, int)) == [("account", "alice", 90)]
    assert "1 tuple matches" in str(space.explain("account", str, int))
    assert space.stat()["tuples"] == 1
    future = space.take_future("late", int)
    space.put("late", 1)
    assert future.result(timeout=60) == ("late", 1)
    with ts.connect(re.sub(r"\btest-\d+", f"other-{next(NUMBERS)}", url)) as other:
        assert space.move_to(other, "account", str, int) == 1
        assert ts.search([space, other], "account", str, int, timeout=60).space is other


def test_the_claim_of_a_killed_program_is_back_at_once_and_its_transaction_undone_l5(space, url):
    space.put("job", 1)
    space.put("job", 2)
    program = (
        "import os, signal, tupelo as ts\n"
        f"space = ts.connect({url!r})\n"
        "claim = space.claim('job', int)\n"
        "t = space.transaction(ttl=3600)\n"
        "t.take('job', int)\n"
        "t.put('never', 1)\n"
        "space.put('ready')\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        space.take("ready", timeout=60)
        assert space.count("job", int) == 0
        process.kill()
    claims = [space.claim("job", int, timeout=60, ttl=3600) for _ in range(2)]
    assert sorted((claim.tuple, claim.attempt) for claim in claims) == [
        (("job", 1), 2),
        (("job", 2), 1),
    ]
    assert space.count("never", int) == 0
    for claim in claims:
        claim.done()


def test_a_claim_is_lost_and_a_transaction_aborted_with_the_server(tmp_path):
    path = str(tmp_path / "tupelo.sock")
    url = f"unix://{path}?space=jobs"
    with server(path) as process, ts.connect(url, reconnect_s=0) as space:
        space.put("job", 1)
        claim = space.claim("job", int)
        transaction = space.transaction()
        process.kill()
        process.wait()
        with pytest.raises(ts.ConnectionLost):
            space.count("job", int)
        with pytest.raises(ts.ClaimLost, match="it has ended with its connection"):
            claim.done()
        with pytest.raises(ts.Aborted, match="has ended with its connection"):
            transaction.commit()


def test_the_command_line_looks_at_a_space_of_a_server(socket):
    url = f"unix://{socket}?space=looked-at-{next(NUMBERS)}"
    with ts.connect(url) as space:
        space.put("job", 1)
        claim = space.claim("job", int, ttl=3600)
        assert json.loads(run("stat", url, "--json").stdout)["tuples"] == 0
        assert "claimed by" in run("explain", url, "job", ":int").stdout
        claim.abort("no paper")
        assert run("take", url, "job", ":int", "--exec", "true").returncode == 0
        assert space.count("job", int) == 0


def test_the_child_of_a_fork_goes_on_with_the_space(space):
    space.put("parent", 1)
    child = os.fork()
    if child == 0:
        try:
            space.put("child", *space.take("parent", int))
        finally:
            os._exit(0)
    assert space.take("child", "parent", int, timeout=60) == ("child", "parent", 1)
    os.waitpid(child, 0)


def test_another_process_takes_part(space, url):
    program = f"import tupelo as ts; s = ts.connect({url!r}); s.put(*s.take('ask', int), 'done')"
    with subprocess.Popen([sys.executable, "-c", program]):
        space.put("ask", 1)
        assert space.take("ask", int, "done", timeout=60) == ("ask", 1, "done")


def test_objects_of_other_machines_are_refused_unless_somebody_says_so(port):
    url = port.replace("NAME", f"test-{next(NUMBERS)}")
    with ts.connect(url) as space, ts.connect(url, objects="pickle") as trusting:
        assert (space.objects, trusting.objects) == ("strict", "pickle")
        with pytest.raises(ts.NotEncodable, match="strict"):
            space.put("job", {1, 2})
        trusting.put("job", {1, 2})
        with pytest.raises(ts.NotEncodable, match="strict"):
            space.take("job", ...)
        assert trusting.take("job", ...) == ("job", {1, 2})


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the page makes them with openssl")
def test_the_certificates_of_the_page_are_what_server_and_clients_need(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "server.md").read_text("utf-8")
    blocks = [
        block for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if "openssl" in block
    ]
    # Its host is not one that this machine knows.
    script = "".join(blocks).replace("DNS:hub", "IP:127.0.0.1")
    ran = subprocess.run(["sh", "-ec", script], cwd=tmp_path, capture_output=True, check=False)  # noqa: S607
    assert (len(blocks), ran.returncode) == (2, 0), ran.stderr
    line = next(line for line in page.splitlines() if line.startswith("tupelo serve --listen tls"))
    options = [tmp_path / word if "." in word else word for word in line.split()[4:]]
    with server("tls://127.0.0.1:0", *options) as process:
        url = f"{process.url.replace('NAME', 'jobs')}?ca={tmp_path}/ca.pem"
        with pytest.raises(ts.ConnectionLost, match="asks for a certificate"):
            ts.connect(url)
        with ts.connect(
            f"{url}&certificate={tmp_path}/worker.pem&key={tmp_path}/worker.key"
        ) as space:
            space.put("job", 7)
            assert space.take("job", int) == ("job", 7)


def test_the_program_of_the_readme_runs_on_a_server_by_its_url_alone(port, tmp_path):
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    program = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    assert program.count("shm://squares") == 2
    file = tmp_path / "squares.py"
    url = port.replace("NAME", f"squares-{next(NUMBERS)}")
    file.write_text(program.replace("shm://squares", url), "utf-8")
    ran = subprocess.run(
        [sys.executable, file], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.returncode) == ("332833500\n", 0), ran.stderr


def test_what_is_no_address_is_refused_with_one_that_is():
    with pytest.raises(ValueError, match=r"names no space(.|\n)*tcp://hub:7667/jobs"):
        ts.connect("tcp://hub:7667")
    with pytest.raises(ts.ConnectionLost, match=r"nothing listens there(.|\n)*tupelo serve"):
        ts.connect("tcp://127.0.0.1:1/jobs")


def test_no_server_is_connection_lost_with_what_to_type(tmp_path):
    with pytest.raises(ts.ConnectionLost, match="there is no such socket") as lost:
        ts.connect(f"unix://{tmp_path}/none.sock?space=jobs")
    assert lost.value.code == "TUP-002"
    assert "tupelo serve --socket" in lost.value.hint
    assert isinstance(lost.value, ConnectionError)


def test_a_killed_server_ends_a_blocked_take_with_connection_lost(tmp_path):
    path = str(tmp_path / "tupelo.sock")
    url = f"unix://{path}?space=jobs"
    with server(path) as process, ts.connect(url, reconnect_s=0) as space:
        threading.Timer(0.05, process.kill).start()
        with pytest.raises(ts.ConnectionLost, match="was lost"):
            space.take("job", int)
        process.wait()
        with pytest.raises(ts.ConnectionLost, match="nobody listens"):
            space.put("job", 1)


def test_ctrl_c_ends_a_call_that_a_stopped_server_does_not_answer(tmp_path):
    path = str(tmp_path / "tupelo.sock")
    with server(path) as process, ts.connect(f"unix://{path}?space=jobs") as space:
        stop(process)
        main = threading.get_ident()
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT)).start()
            space.put("job", 1)
        process.send_signal(signal.SIGCONT)
        # It was on its way; the connection goes on.
        assert space.take("job", int, timeout=60) == ("job", 1)


def test_a_call_ends_with_its_timeout_though_a_stopped_server_says_nothing(tmp_path):
    path = str(tmp_path / "tupelo.sock")
    with server(path) as process, ts.connect(f"unix://{path}?space=jobs") as space:
        future = space.take_future("future", int)
        stop(process)
        ticks = []
        ticker = threading.Timer(0.05, ticks.append, (1,))
        ticker.start()
        with pytest.raises(ts.Timeout):
            space.take("job", int, timeout=0.1)
        # Nor did the call keep others from running.
        late = space.take_future("late", int)
        ticker.join()
        process.send_signal(signal.SIGCONT)
        # What came while nobody waited any more is there.
        space.put("job", 1)
        space.put("future", 1)
        space.put("late", 1)
        assert space.take("job", int, timeout=60) == ("job", 1)
        assert future.result(timeout=60) == ("future", 1)
        assert late.result(timeout=60) == ("late", 1)


def test_a_tuple_that_a_stopped_program_was_handed_goes_to_another_one(port):
    """A program that is stopped in a take has what it is handed for the time of its session.

    Then its take waits on.
    """
    url = port.replace("NAME", f"test-{next(NUMBERS)}")
    program = (
        "import tupelo as ts\n"
        f"space = ts.connect({url!r}, reconnect_s=1)\n"
        "future = space.take_future('job', int)\n"
        "space.put('ready')\n"
        "print(future.result(), flush=True)\n"
    )
    with (
        ts.connect(url) as space,
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        space.take("ready", timeout=60)
        stop(process)
        space.put("job", 1)
        assert space.take("job", int, timeout=60) == ("job", 1)
        process.send_signal(signal.SIGCONT)
        space.put("job", 2)
        assert process.stdout.readline() == "('job', 2)\n"


def test_a_supervisor_is_told_when_the_server_serves(tmp_path, monkeypatch):
    """As systemd is, by a unit with `Type=notify`."""
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        supervisor.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with server(tmp_path / "tupelo.sock") as process:
            told = supervisor.recv(1000).decode()
        assert told == f"READY=1\nSTATUS=serving {process.url}\n"
        # A name that is no file.
        name = f"tupelo-test-{os.getpid()}"
        with sockets.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM) as abstract:
            abstract.bind(f"\0{name}")
            abstract.settimeout(60)
            monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
            with server(tmp_path / "tupelo.sock"):
                assert abstract.recv(1000).startswith(b"READY=1\n")


def test_the_unit_starts_a_server_that_there_is():
    unit = (Path(__file__).parents[2] / "deploy" / "tupelo.service").read_text("utf-8")
    start = re.search(r"^ExecStart=\S+/(tupelo serve .*)$", unit, re.MULTILINE)[1].split()
    listen = start[start.index("--listen") + 1]
    assert listen == "tcp://127.0.0.1:7667"
    with server("tcp://127.0.0.1:0", *start[start.index("--listen") + 2 :]) as process:
        process.send_signal(signal.SIGHUP)
        name = f"unit-{os.getpid()}"
        with ts.connect(process.url.replace("NAME", name)) as space:
            space.put("job", 1)
            assert space.take("job", int) == ("job", 1)
        ts.remove(f"shm://{name}")
