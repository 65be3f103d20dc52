"""A condition that takes its time: other threads run, and the call can be ended (M9, O3)."""

import signal
import sys
import threading
import time

import pytest

import tupelo as ts

SLOW = " || ".join(f'f[1].contains("{number}")' for number in range(20))
"""True of no tuple here, and asked of each for long."""


@pytest.fixture
def full(shm):
    """Return a space with tuples that all have to be asked."""
    shm.put_all(("text", "x" * 2_000) for _ in range(4_000))
    return shm


def test_other_threads_run_while_a_condition_is_asked(full):
    counted = 0
    is_over = False

    def count():
        nonlocal counted
        while not is_over:
            counted += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    # From here on a thread only runs where another one lets it.
    sys.setswitchinterval(1_000)
    other = threading.Thread(target=count)
    try:
        other.start()
        before = counted
        assert full.try_read("text", str, where=SLOW) is None
        after = counted
    finally:
        is_over = True
        sys.setswitchinterval(interval)
        other.join()
    assert after > before


@pytest.mark.parametrize("verb", ["take", "read", "claim"])
def test_a_call_gives_up_in_the_middle_when_its_time_is_over_o3(full, verb):
    with pytest.raises(ts.Timeout, match="before every tuple was looked at") as caught:
        getattr(full, verb)("text", str, where=SLOW, timeout=0.001)
    assert caught.value.code == "TUP-003"
    assert full.count("text", str) == 4_000


def test_a_call_that_does_not_wait_looks_at_every_tuple_o4(full):
    full.put("text", "7")
    assert full.take("text", str, where=SLOW, timeout=0) == ("text", "7")


class Stopped(Exception):
    """What the handler of a signal raises."""


@pytest.mark.parametrize("verb", ["try_take", "try_read", "count", "take_all"])
def test_a_signal_ends_a_call_in_the_middle_and_nothing_has_happened(full, verb):
    def stop(_number, _frame):
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    try:
        # The timer begins inside: on a busy machine it may be over before the call begins.
        with pytest.raises(Stopped):
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            # There is no such field, so each tuple that is asked is counted.
            getattr(full, verb)("text", str, where=f"{SLOW} || f[9] == 1")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert full.stat()["where_errors"] < 4_000
    assert full.count("text", str) == 4_000
