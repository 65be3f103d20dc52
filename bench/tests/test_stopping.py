"""What the suite does when it is told to end."""

import subprocess
import sys

import pytest

# The helper hears the signal, as a thread of NumPy may, and this one handles it.
PROGRAM = """
import os, signal, sys, threading, time
from tupelo_bench.harness import stopping

stopping.listen()
told = threading.Event()
helper = threading.Thread(target=told.wait)
helper.start()
try:
    with stopping.endings_wait():
        with stopping.endings_wait():
            if sys.argv[1] == "another":
                signal.pthread_kill(helper.ident, signal.SIGHUP)
            else:
                signal.raise_signal(signal.SIGHUP)
            told.set()
            helper.join()
            while sys.argv[1] == "another" and not stopping.told():
                time.sleep(0)
            print("inner")
        print("outer")
    print("behind")
except KeyboardInterrupt:
    print("ended", stopping.told())
"""


@pytest.mark.parametrize("thread", ["this", "another"])
def test_who_is_told_to_end_does_so_behind_the_block_whichever_thread_hears_it(thread):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, thread],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (run.stdout.split("\n")[:3], run.stderr) == (["inner", "outer", "ended True"], "")
