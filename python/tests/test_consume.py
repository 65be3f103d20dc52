"""consume and finish."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import tupelo as ts
from tupelo import REST, F, aio, like
from tupelo._native import waiter
from tupelo.consuming import SIGN, Mark


def test_it_takes_until_finished_and_empty(space):
    space.put_all(("square", n) for n in range(3))
    space.finish("square", int)
    assert list(space.consume("square", int)) == [("square", 0), ("square", 1), ("square", 2)]


def test_the_mark_is_the_documented_tuple_and_put_once(space):
    space.finish("square", int)
    space.finish("square", int)
    ((*mark, number),) = space.read_all(REST)
    assert mark == ["tupelo.finish", False, '("square", :int)']
    assert list(space.consume("square", int)) == []
    over = (SIGN, True, str(like("square", int)), number)
    assert space.read_all(REST) == [over]
    space.finish("square", int)
    ((*renewed, other),) = space.read_all(REST)
    assert renewed == mark
    assert other != number


def test_the_mark_ends_consumers_that_begin_later_too(space):
    space.finish("square", int)
    for _ in range(3):
        assert list(space.consume("square", int)) == []


def test_it_ends_only_for_an_equal_template(space):
    space.finish("square", str)
    space.put("square", 1)
    assert next(space.consume("square", int, idle=60)) == ("square", 1)
    assert list(space.consume("square", int, idle=0)) == []


def test_taking_the_mark_away_reopens(space):
    space.finish("square", int)
    space.take(SIGN, bool, str, int)
    space.put("square", 7)
    assert list(space.consume("square", int, idle=0)) == [("square", 7)]


def run_batch(space):
    space.put_all(("square", n) for n in range(3))
    space.finish("square", int)
    assert list(space.consume("square", int)) == [("square", n) for n in range(3)]
    assert list(space.consume("square", int)) == []  # one that comes late ends, too


def test_the_mark_of_a_batch_does_not_end_the_next_one(space, eventually):
    run_batch(space)
    space.put("square", 3)
    with ThreadPoolExecutor(1) as pool:
        consumer = pool.submit(lambda: list(space.consume("square", int)))
        eventually(lambda: consumer.done() or space.stat()["waiters"] == 2)
        space.put("square", 4)
        space.finish("square", int)
        assert consumer.result() == [("square", 3), ("square", 4)]
    run_batch(space)


def test_a_mark_does_not_end_the_next_batch_of_asyncio(space):
    async def main():
        async with aio.connect(space.url) as shared:
            run_batch(space)
            await shared.put("square", 3)
            taken = []

            async def consume():
                taken.extend([n async for _, n in shared.consume("square", int)])

            task = asyncio.create_task(consume())
            while not task.done() and space.stat()["waiters"] < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
            await shared.put("square", 4)
            await shared.finish("square", int)
            await task
            assert taken == [3, 4]
            await shared.finish("square", int)
            assert [n async for _, n in shared.consume("square", int)] == []

    asyncio.run(main())


def test_the_mark_of_the_next_batch_stays_when_a_consumer_of_the_first_ends_late(space):
    """It had looked at the first mark, and the others were through with the second batch."""
    template = like("square", int)
    mark = Mark(space, template)
    space.finish("square", int)

    def next_batch_passes():
        run_batch(space)
        space.finish("square", int)
        return True

    assert not mark.ends(next_batch_passes)
    assert space.count(SIGN, False, str, int) == 1
    assert mark.ends(lambda: True)


def test_a_batch_is_not_over_while_something_of_it_is_claimed(space):
    space.put("square", 7)
    claim = space.claim("square", int)
    space.finish("square", int)
    assert list(space.consume("square", int, idle=0.01)) == []
    assert space.count(SIGN, False, str, int) == 1
    claim.done()
    assert list(space.consume("square", int)) == []
    assert space.count(SIGN, True, str, int) == 1


def test_it_gives_up_when_nothing_came_for_so_long(space):
    space.put("square", 1)
    assert list(space.consume("square", int, idle=0.01)) == [("square", 1)]
    assert space.stat()["waiters"] == 0


@pytest.mark.parametrize(
    "template", [("square", int), (like("square", int) | like("cube", F > 2),)]
)
def test_waiting_consumers_share_the_work_and_all_end(space, template, eventually):
    with ThreadPoolExecutor(4) as pool:
        consumers = [pool.submit(lambda: list(space.consume(*template))) for _ in range(4)]
        eventually(lambda: space.stat()["waiters"] == 8)
        space.put_all(("square", n) for n in range(1_000))
        space.finish(*template)
        taken = [fields for consumer in consumers for fields in consumer.result()]
    assert sorted(taken) == [("square", n) for n in range(1_000)]  # T1
    assert space.stat()["waiters"] == 0


def test_finishing_wakes_a_waiting_consumer(space, eventually):
    with ThreadPoolExecutor(1) as pool:
        consumer = pool.submit(lambda: list(space.consume("square", int)))
        eventually(lambda: space.stat()["waiters"] == 2)
        space.finish("square", int)
        assert consumer.result() == []


class HandedOverInVain:
    """A place in the wait queue that seems served at first, by a put that dies and is undone."""

    def __init__(self, place):
        self._place = place
        self._was_asked = False

    def wait(self, timeout):
        if self._was_asked:
            return self._place.wait(timeout)
        self._was_asked = True
        return True

    def finish(self):
        pytest.fail("it would wait, and keep every other thread from running")

    def __getattr__(self, name):
        return getattr(self._place, name)


def test_what_was_handed_over_and_undone_does_not_end_a_consumer(space, monkeypatch, eventually):
    def place(space, want, *template):
        found = waiter(space, want, *template)
        return HandedOverInVain(found) if want == "take" else found

    monkeypatch.setattr("tupelo.consuming.waiter", place)
    with ThreadPoolExecutor(1) as pool:
        consumer = pool.submit(next, space.consume("square", int))
        eventually(lambda: consumer.done() or space.stat()["waiters"] == 2)
        space.put("square", 7)
        assert consumer.result() == ("square", 7)


def test_a_consumer_that_stops_early_loses_nothing(space):
    space.put_all(("square", n) for n in range(10))
    for _, n in space.consume("square", int):
        if n == 3:
            break
    assert space.count("square", int) == 6


def test_a_mistake_shows_at_the_call(space):
    with pytest.raises(ValueError, match="idle is -1"):
        space.consume("square", int, idle=-1)
    with pytest.raises(TypeError, match='has no keyword argument "timeout"'):
        space.consume("square", int, timeout=3)
    with pytest.raises(ts.TemplateError):
        space.consume("square", F)


WORKER = """
import sys
import tupelo as ts

with ts.connect(sys.argv[1], create=False) as space:
    for _, n in space.consume("square", int):
        space.put("squared", n, n * n)
"""


def test_processes_consume_together(shm, shm_url):
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, shm_url]) for _ in range(3)]
    shm.put_all(("square", n) for n in range(500))
    shm.finish("square", int)
    squares = shm.take_many("squared", int, int, n=500, timeout=60)
    assert sorted(squares) == [("squared", n, n * n) for n in range(500)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]


def test_it_does_not_end_while_a_match_is_claimed(space, eventually):
    space.put("square", 7)
    claim = space.claim("square", int)
    space.finish("square", int)
    with ThreadPoolExecutor(1) as pool:
        consumer = pool.submit(lambda: list(space.consume("square", int)))
        eventually(lambda: space.stat()["waiters"] > 0)
        assert not consumer.done()
        claim.abort()
        assert consumer.result() == [("square", 7)]  # O9


def test_it_ends_when_the_last_claim_is_done(space, eventually):
    space.put("square", 7)
    claim = space.claim("square", int)
    space.finish("square", int)
    with ThreadPoolExecutor(1) as pool:
        consumer = pool.submit(lambda: list(space.consume("square", int)))
        eventually(lambda: space.stat()["waiters"] > 0)
        claim.done()
        assert consumer.result() == []


def test_a_worker_killed_in_the_middle_costs_the_tuple_in_its_hands(shm, shm_url):
    code = (
        "import sys, signal, os, tupelo as ts\n"
        "space = ts.connect(sys.argv[1])\n"
        "next(space.consume('square', int))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    shm.put_all(("square", n) for n in range(10))
    killed = subprocess.run([sys.executable, "-c", code, shm_url], check=False, timeout=60)
    assert killed.returncode == -9
    shm.finish("square", int)
    for _, n in shm.consume("square", int):
        shm.put("squared", n)
    with pytest.raises(ts.Timeout, match="9 of 10 tuples matched"):
        shm.take_many("squared", int, n=10, timeout=0)
