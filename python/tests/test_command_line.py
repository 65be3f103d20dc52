"""The console script: the command line of the native module, on the same spaces."""

import signal
import subprocess
import sys

import pytest
from console import command, run

import tupelo as ts
from tupelo import REST
from tupelo._native import waiter


def test_the_command_line_and_python_share_spaces(shm, shm_url):
    assert run("put", shm_url, "job", "7", "cat.png").returncode == 0
    assert shm.take("job", int, str) == ("job", 7, "cat.png")
    shm.put("job", 8, 2.5)
    taken = run("take", shm_url, "job", ":int", "_")
    assert (taken.returncode, taken.stdout) == (0, '("job", 8, 2.5)\n')


@pytest.mark.usefixtures("shm")
def test_exit_codes_pass_through(shm_url):
    assert run("--version").stdout == f"tupelo {ts.__version__}\n"
    assert run("nonsense").returncode == 2
    assert run("take", shm_url, "job", "--try").returncode == 3
    ts.remove(shm_url)
    assert run("take", shm_url, "job", "--try").returncode == 5


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_what_is_printed_to_a_closed_stream_is_not_printed_into_a_space(shm, shm_url, closed):
    shm.put("job", 7)
    for words in (["read", "job", "_"], ["read", "nothing", "--timeout", "10ms"], ["stat"]):
        verb, *rest = words
        shell = ["sh", "-c", f'"$@" {closed}', "sh", *command(verb, shm_url, *rest)]
        assert subprocess.run(shell, capture_output=True, timeout=60, check=False).returncode in (
            0,
            3,
        )
    with ts.connect(shm_url, create=False) as again:
        assert again.take("job", int) == ("job", 7)
    program = f"import os, tupelo\nos.close(1)\ns = tupelo.connect({shm_url!r})\nos.write(1, b'x')"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 1
    assert shm.stat()["shapes"]


def test_ctrl_c_ends_a_waiting_command(shm, shm_url, eventually):
    waiting = subprocess.Popen(command("take", shm_url, "job", "_"))
    eventually(lambda: shm.stat()["waiters"] == 1)
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(60) == -signal.SIGINT


BEYOND_PYTHON = {
    "timestamp('2031-05-04T16:20:00.123456789Z')": "whose nanoseconds a datetime can not hold",
    "list(timestamp('2031-05-04T16:20:00.123456789Z'))": r"field 1\[0\] is the timestamp",
    "map(1: 'int', 1.0: 'float')": "a map with keys that Python calls equal",
    "map(list(1): 'x')": "which no dict can have",
    "opaque('marshal', 'some.Type', b'')": "which Python can not read",
}


@pytest.mark.parametrize("word", BEYOND_PYTHON)
def test_a_tuple_that_python_can_not_represent_stays_in_the_space(shm, shm_url, word):
    assert run("put", shm_url, "x", word).returncode == 0
    blocked = waiter(shm, "take", "x", ...)
    assert blocked.wait(0)
    refusals = [shm.try_read, shm.read, shm.try_take, shm.take, shm.take_all, shm.read_all]
    with pytest.raises(ts.NotEncodable, match=BEYOND_PYTHON[word]):
        blocked.finish()
    for verb in refusals:
        with pytest.raises(ts.NotEncodable, match=BEYOND_PYTHON[word]):
            verb("x", ...)
        assert shm.count("x", ...) == 1  # V3
    assert shm.count(REST) == 1
