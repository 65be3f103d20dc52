"""Programs that prepare something for a peer."""

import os
import select
import signal

import pytest

from tupelo_bench.harness.lifetime import ServerFailedError
from tupelo_bench.harness.steps import step

PATIENCE_S = 60


class ToldToEndError(Exception):
    """As who is told to end by a signal."""


def end(*_):
    raise ToldToEndError


def test_a_step_that_fails_says_why(tmp_path):
    with pytest.raises(ServerFailedError, match=r"cc failed\n(.*\n)*.*no-such-file"):
        step(tmp_path, "cc", "no-such-file.c")


def test_what_a_step_keeps_for_a_while_lies_in_its_folder(tmp_path):
    step(tmp_path, "sh", "-c", 'test "$TMPDIR" = "$PWD"')


def test_who_is_told_to_end_leaves_nothing_of_a_step(tmp_path):
    receiver, sender = os.pipe()
    os.set_inheritable(sender, True)
    before = signal.signal(signal.SIGALRM, end)
    try:
        # It has begun when it says so: the signal comes to who waits for it.
        program = f"sleep 1000 & kill -ALRM {os.getpid()}; sleep 1000"
        with pytest.raises(ToldToEndError):
            step(tmp_path, "sh", "-c", program, pass_fds=[sender])
    finally:
        signal.signal(signal.SIGALRM, before)
        os.close(sender)
    # Nobody has the other end any more.
    ended, _, _ = select.select([receiver], [], [], PATIENCE_S)
    assert ended == [receiver]
    os.close(receiver)
