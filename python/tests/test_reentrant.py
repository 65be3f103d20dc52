"""Finalizers and handlers of signals call verbs and cancel futures, whatever they interrupt."""

import asyncio
import math
import subprocess
import sys
import threading

import pytest

import tupelo as ts
from tupelo import REST, aio
from tupelo.tasks import evaluation

PROGRAM = """
import gc, signal, sys, threading
import tupelo as ts

def main(url, how, seconds=2.0):
    space = ts.connect(url, size="64M")
    futures = [space.take_future("never", n) for n in range(100)]
    came = []

    def act(*_):
        "What is to be possible anywhere."
        came.append(None)
        space.put("by the way", len(came))
        space.try_take("by the way", int)
        space.count("by the way", int)
        if futures:
            futures.pop().cancel()
        futures.append(space.take_future("never", 7))

    class Finalized:
        def __init__(self):
            self.itself = self  # so that it takes the collector of garbage to find it

        def __del__(self):
            act()

    if how == "signals":
        signal.signal(signal.SIGALRM, act)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    else:
        gc.set_threshold(20)
    end = threading.Event()
    threading.Timer(seconds, end.set).start()
    while not end.is_set():
        if how == "finalizers":
            Finalized()
        future = space.take_future("mine", int)
        space.put("mine", 1)
        assert future.result(60) == ("mine", 1)
        later = [space.take_future("later", n) for n in range(5)]
        for one in later:
            assert one.cancel()
        space.put_all([("several", [n]) for n in range(10)])
        assert len(space.take_all("several", list)) == 10
        with space.transaction() as t:
            t.put("in it")
            t.take("in it")
    signal.setitimer(signal.ITIMER_REAL, 0)
    gc.set_threshold(0)
    assert len(came) > 20, len(came)
    print("went on")

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


@pytest.mark.parametrize("how", ["signals", "finalizers"])
def test_verbs_and_futures_are_safe_in_handlers_and_finalizers(url, tmp_path, how):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), url, how],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")


def test_a_future_that_is_cancelled_has_given_back_what_it_was_handed_when_cancel_returns_t5(space):
    for number in range(3000):
        future = space.take_future("job", int)
        space.put("job", number)
        if future.cancel():
            assert space.take_all("job", int) == [("job", number)]
        else:
            assert future.result(60) == ("job", number)


def test_tasks_of_a_loop_that_is_closed_leave_the_line_at_once_l5(space):
    shared = aio.connect(space.url)

    loop = asyncio.new_event_loop()
    waiting = loop.create_task(shared.take("job"))
    loop.run_until_complete(asyncio.sleep(0.01))
    assert space.stat()["waiters"] == 1
    loop.close()
    assert space.stat()["waiters"] == 0
    space.put("job")
    assert space.take_all(REST) == [("job",)]
    assert not waiting.done()
    shared.close()


def test_a_pool_is_made_once_though_the_handler_of_a_signal_makes_it_too(space, monkeypatch):
    made = evaluation._made  # noqa: SLF001 - the moment that is wanted
    nested = []

    def made_and_interrupted(*arguments, **options):
        if not nested:
            nested.append(None)
            nested[0] = space.eval("inner", ts.call(math.sqrt, 4.0))
        return made(*arguments, **options)

    monkeypatch.setattr(evaluation, "_made", made_and_interrupted)
    ended = threading.Event()
    outer = []

    def call():
        outer.append(space.eval("outer", ts.call(math.sqrt, 9.0)).result(60))
        ended.set()

    threading.Thread(target=call, daemon=True).start()
    assert ended.wait(60)
    assert outer == [("outer", 3.0)]
    assert nested[0].result(60) == ("inner", 2.0)
