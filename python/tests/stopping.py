"""Stopping other processes, as Ctrl-Z and a debugger do."""

import os
import signal


def stop(process):
    """Stop a child, and return when each of its threads has come to a halt.

    The signal alone says little: a thread on another processor goes on for a moment.
    """
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert process.poll() is None


def waiting(space, *kinds):
    """Return how many are in the wait queue for tuples of a shape.

    These are outside of every critical section, where a process that is stopped would stall all.
    """
    return sum(shape["waiting"] for shape in space.stat()["shapes"] if shape["kinds"] == kinds)
