"""Programs that go on when their server is killed and started again."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from serving import Restarted

import tupelo as ts

NUMBERS = itertools.count()


@pytest.fixture
def served():
    served = Restarted()
    try:
        yield served
    finally:
        served.kill()


@pytest.fixture
def url(served):
    name = f"restarts-{os.getpid()}-{next(NUMBERS)}"
    yield served.url(name)
    ts.remove(f"shm://{name}")


def test_calls_that_wait_go_on_over_a_restart(served, url):
    with ts.connect(url) as space:
        taken = []
        takers = [
            threading.Thread(target=lambda n=n: taken.append(space.take("job", n)))
            for n in range(4)
        ]
        for taker in takers:
            taker.start()
        future = space.take_future("future", int)
        served.restart()
        for n in range(4):
            space.put("job", n)
        space.put("future", 1)
        for taker in takers:
            taker.join()
        assert sorted(taken) == [("job", n) for n in range(4)]
        assert future.result(timeout=60) == ("future", 1)


def test_calls_begin_while_there_is_no_server_and_are_done_when_there_is_one(served, url):
    with ts.connect(url) as space:
        space.put("job", 1)
        served.kill()
        timer = threading.Timer(0.2, served.start)
        timer.start()
        assert space.count("job", int) == 1
        assert space.take("job", int) == ("job", 1)
        timer.join()


def test_a_call_ends_with_its_own_timeout_while_there_is_no_server(served, url):
    with ts.connect(url) as space:
        served.kill()
        with pytest.raises(ts.Timeout):
            space.take("job", int, timeout=0.05)
        served.start()
        space.put("job", 1)
        assert space.take("job", int, timeout=60) == ("job", 1)


def test_what_was_left_open_has_ended_with_the_server_l5(served, url):
    with ts.connect(url) as space:
        space.put("job", 1)
        space.put("job", 2)
        claim = space.claim("job", int, ttl=3600)
        transaction = space.transaction(ttl=3600)
        transaction.take("job", int)
        served.restart()
        assert space.count("job", int) == 2
        with pytest.raises(ts.ClaimLost, match="it has ended with its connection"):
            claim.done()
        with pytest.raises(ts.Aborted, match="has ended with its connection"):
            transaction.commit()
        assert space.count("job", int) == 2


def test_a_subscription_goes_on_and_says_that_events_were_missed_n2(served, url):
    with ts.connect(url) as space, space.subscribe("job", int) as events:
        space.put("job", 1)
        first = next(events)
        assert (first.tuple, first.missed) == (("job", 1), 0)
        served.restart()
        # A put that is on its way to a server that is killed may have happened: so first a look.
        assert space.count("job", int) == 1
        # Until it listens again, what happens is not heard: that is what `missed` says.
        event = None
        while event is None:
            space.put("job", 2)
            with suppress(ts.Timeout):
                event = events.next(timeout=0.1)
        assert event.missed == 1
        assert event.seq == first.seq + 2


def test_without_time_to_connect_again_the_next_call_says_so_and_the_one_after_connects(
    served, url
):
    with ts.connect(url, reconnect_s=0) as space:
        space.put("job", 1)
        served.kill()
        with pytest.raises(ts.ConnectionLost) as lost:
            space.take("job", int)
        assert lost.value.code == "TUP-002"
        served.start()
        assert space.take("job", int, timeout=60) == ("job", 1)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [(-1, ValueError), (float("nan"), ValueError), (1e9, ValueError), ("1", TypeError)],
)
def test_a_time_that_makes_no_sense_is_refused(given, refusal):
    with pytest.raises(refusal, match="reconnect_s"):
        ts.connect("tcp://127.0.0.1:1/jobs", reconnect_s=given)


def test_the_time_stands_in_the_url_so_that_other_processes_have_it(socket):
    url = f"unix://{socket}?space=restarts-{next(NUMBERS)}"
    with ts.connect(url, reconnect_s=0.5) as space:
        assert space.url == f"{url}&reconnect_s=0.5"
    with ts.connect(f"{url}&reconnect_s=7", reconnect_s=0.5) as space:
        assert space.url == f"{url}&reconnect_s=7"
    with pytest.raises(ValueError, match="reconnect_s"):
        ts.connect(f"{url}&reconnect_s=x")


PROGRAM = """
import sys, time
from tupelo.batteries import Pool

def double(n):
    time.sleep(0.01)
    return 2 * n

if __name__ == "__main__":
    with Pool(sys.argv[1], workers=3) as pool:
        total = 0
        for n, result in enumerate(pool.map(double, range(300))):
            total += result
            if n % 100 == 0:
                print(pool.pids()[0], flush=True)
        print(total, flush=True)
"""


def test_a_pool_finishes_while_its_server_is_killed_twice_and_workers_are_killed(
    served, url, tmp_path
):
    """In another process with another working directory: all that they share is the port."""
    (tmp_path / "program.py").write_text(PROGRAM, "utf-8")
    with ts.connect(url) as space:
        space.put("keeps the space")
    with subprocess.Popen(
        [sys.executable, "program.py", url], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as program:
        for _ in range(2):
            worker = int(program.stdout.readline())
            served.kill()
            os.kill(worker, signal.SIGKILL)
            served.start()
        program.stdout.readline()
        assert program.stdout.readline() == f"{sum(2 * n for n in range(300))}\n"
        assert program.wait() == 0
