"""Ctrl-C ends every call that waits, with no effect on the space (T5)."""

import signal
import subprocess
import sys

import pytest

import tupelo as ts
from tupelo import REST

PROGRAM = """
import signal, sys
import tupelo as ts
from tupelo import F, like

space = ts.connect(sys.argv[1], create=False)
# The parent of a test run may ignore it, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    {call}
except KeyboardInterrupt:
    assert space.stat()["waiters"] == 0
    print("interrupted")
"""

# What waits, and how many places in the wait queue it has meanwhile.
CALLS = {
    "take": ('space.take("job", int)', 1),
    "take with a timeout": ('space.take("job", int, timeout=1000)', 1),
    "take of alternatives": ('space.take(like("job", int) | like("stop", F > 3))', 1),
    "claim": ('space.claim("job", int)', 1),
    "read": ('space.read("job", int)', 1),
    "take_many": ('space.take_many("job", str, n=2)', 1),
    "swap": ('space.swap("job", int, to=("job", "new"))', 1),
    "wait_none": ('space.wait_none("job", str)', 1),
    "put": ('space.put("job", "too much", timeout=1000)', 1),
    "consume": ('next(space.consume("job", int))', 2),
}


def start(code, url):
    return subprocess.Popen(
        [sys.executable, "-c", code, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("verb", CALLS)
def test_an_interrupted_call_has_no_effect(shm_url, verb, eventually):
    call, places = CALLS[verb]
    with ts.connect(shm_url, tuples_max=1) as space:
        space.put("job", "text")
        child = start(PROGRAM.format(call=call), shm_url)
        eventually(lambda: space.stat()["waiters"] == places)
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=60)
        assert (out, error, child.returncode) == ("interrupted\n", "", 0)
        assert space.read_all(REST) == [("job", "text")]  # T5
        eventually(lambda: space.stat()["waiters"] == 0)


def test_a_signal_that_the_program_handles_does_not_end_the_wait(shm, shm_url, eventually):
    code = """
import signal, sys
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
signal.signal(signal.SIGUSR1, lambda *_: space.put("handled"))
print(space.take("job", int))
"""
    child = start(code, shm_url)
    eventually(lambda: shm.stat()["waiters"] == 1)
    child.send_signal(signal.SIGUSR1)
    assert shm.take("handled", timeout=60) == ("handled",)
    assert shm.stat()["waiters"] == 1
    shm.put("job", 1)
    out, error = child.communicate(timeout=60)
    assert (out, error) == ("('job', 1)\n", "")


def test_an_interrupt_never_loses_a_tuple_that_arrives_at_the_same_moment(shm, shm_url, eventually):
    """The tuple is in the space, or was returned: whatever came first, nothing in between."""
    code = """
import signal, sys
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
signal.signal(signal.SIGINT, signal.default_int_handler)
taken = None
try:
    taken = space.take("job", int)
except KeyboardInterrupt:
    pass
signal.signal(signal.SIGINT, signal.SIG_IGN)
print(taken)
"""
    for number in range(20):
        child = start(code, shm_url)
        eventually(lambda: shm.stat()["waiters"] == 1)
        child.send_signal(signal.SIGINT)
        shm.put("job", number)
        out, error = child.communicate(timeout=60)
        assert error == ""
        left = shm.take_all("job", int)
        assert (out, left) in [
            ("None\n", [("job", number)]),
            (f"('job', {number})\n", []),
        ]
