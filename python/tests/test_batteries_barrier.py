"""Barrier and Latch: nobody goes on too early, and nobody waits for the dead without a word."""

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest
from stopping import stop

import tupelo as ts
from tupelo import REST, F, aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Barrier, BrokenBarrier, Latch
from tupelo.batteries.verbs import AtOnce


def start(code, *words):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stderr=subprocess.PIPE, text=True
    )


class Thread(threading.Thread):
    """A thread whose result, or exception, can be had."""

    def __init__(self, work):
        super().__init__()
        self._work = work
        self.start()

    def run(self):
        try:
            self.outcome = self._work()
        except Exception as error:  # noqa: BLE001
            self.outcome = error

    def result(self):
        self.join()
        return self.outcome


def test_the_parties_of_each_round_meet_and_get_different_numbers(space):
    def party():
        barrier = Barrier(space, "epoch", parties=5)
        numbers = []
        for epoch in range(20):
            space.put("step", epoch)
            numbers.append(barrier.wait(timeout=60))
            assert space.count("step", epoch) == 5
        return numbers

    threads = [Thread(party) for _ in range(5)]
    rounds = zip(*[thread.result() for thread in threads], strict=True)
    assert [sorted(numbers) for numbers in rounds] == [[0, 1, 2, 3, 4]] * 20


PARTY = """
import sys
import tupelo as ts
from tupelo.batteries import Barrier

space = ts.connect(sys.argv[1], create=False)
barrier = Barrier(space, "epoch", parties=3, party=sys.argv[2])
for epoch in range(int(sys.argv[3])):
    barrier.wait(timeout=60)
    space.put("passed", sys.argv[2], epoch)
space.take("go on", sys.argv[2])
"""


def test_who_is_killed_is_named_by_those_who_wait_for_it_in_vain(shm, shm_url):
    """C1: the tuple is whole; a dead party is one that does not come."""
    child = start(PARTY, shm_url, "mortal", 1)
    others = [
        Thread(
            lambda name=name, timeout=timeout: [
                Barrier(shm, "epoch", parties=3, party=name).wait(timeout=60),
                shm.take("go", name),
                Barrier(shm, "epoch", parties=3, party=name).wait(timeout=timeout),
            ]
        )
        for name, timeout in (("ada", 0.2), ("bob", None))
    ]
    shm.take("passed", "mortal", 0, timeout=60)
    child.kill()
    child.communicate()
    shm.put("go", "bob")
    shm.read("tupelo.barrier", "epoch", 3, 1, 1, ["bob"], ..., timeout=60)
    shm.put("go", "ada")
    for other in others:
        error = other.result()
        assert isinstance(error, BrokenBarrier)
        assert error.missing == ("mortal",)
        assert error.arrived == ("bob", "ada")
        assert error.args[0].startswith("barrier 'epoch' is broken: 2 of 3 parties came")
        assert error.args[0].endswith("in round 1; missing: mortal")
        assert error.code == "TUP-030"
        assert error.space == shm_url


def test_a_party_that_is_killed_while_it_waits_has_come(shm, shm_url):
    child = start(PARTY, shm_url, "mortal", 1)
    shm.read("tupelo.barrier", "epoch", 3, 0, 1, ["mortal"], [], timeout=60)
    child.kill()
    child.communicate()
    other = Thread(lambda: Barrier(shm, "epoch", parties=3).wait())
    Barrier(shm, "epoch", parties=3).wait(timeout=60)
    assert other.result() in (1, 2)


def test_a_stopped_party_finds_its_round_passed(shm, shm_url, eventually):
    child = start(PARTY, shm_url, "stopped", 1)
    shm.read("tupelo.barrier", "epoch", 3, 0, 1, ["stopped"], [], timeout=60)
    eventually(lambda: shm.stat()["waiters"] == 1)  # outside of every critical section
    stop(child)
    other = Thread(lambda: Barrier(shm, "epoch", parties=3).wait())
    Barrier(shm, "epoch", parties=3).wait(timeout=60)
    other.result()
    assert shm.try_take("passed", "stopped", 0) is None
    child.send_signal(signal.SIGCONT)
    shm.put("go on", "stopped")
    assert child.communicate(timeout=60)[1] == ""
    assert child.returncode == 0


def test_a_timeout_breaks_the_barrier_for_all_until_it_is_reset(space, eventually):
    barrier = Barrier(space, "epoch", parties=3, party="ada")
    other = Thread(lambda: Barrier(space, "epoch", parties=3, party="bob").wait())
    eventually(lambda: space.stat()["waiters"] == 1)
    with pytest.raises(BrokenBarrier, match=r"2 of 3 parties came within 0\.01 s, in round 0; the"):
        barrier.wait(timeout=0.01)
    assert isinstance(other.result(), BrokenBarrier)
    with pytest.raises(BrokenBarrier, match="there came: bob, ada"):
        barrier.wait(timeout=60)
    barrier.reset()
    threads = [Thread(barrier.wait) for _ in range(3)]
    assert sorted(thread.result() for thread in threads) == [0, 1, 2]


def test_a_reset_breaks_the_round_that_others_wait_in(space, eventually):
    other = Thread(lambda: Barrier(space, "epoch", parties=2, party="bob").wait())
    eventually(lambda: space.stat()["waiters"] == 1)
    Barrier(space, "epoch", parties=2).reset()
    assert isinstance(other.result(), BrokenBarrier)
    assert space.try_read(REST) == ("tupelo.barrier", "epoch", 2, 1 << 32, 0, [], [])


def test_a_party_that_is_paused_over_a_reset_does_not_pass_by_the_rounds_after_it(
    space, monkeypatch
):
    """It has come to the round that was reset, and looks when others have met two times since."""
    look = AtOnce.read

    async def paused(self, *template, **options):
        monkeypatch.undo()
        Barrier(space, "epoch", parties=2).reset()
        for _ in range(2):
            other = Thread(lambda: Barrier(space, "epoch", parties=2, party="bob").wait(60))
            Barrier(space, "epoch", parties=2, party="cy").wait(60)
            other.result()
        return await look(self, *template, **options)

    monkeypatch.setattr(AtOnce, "read", paused)
    with pytest.raises(BrokenBarrier, match="is broken: it was reset\n") as caught:
        Barrier(space, "epoch", parties=2, party="ada").wait(timeout=60)
    assert caught.value.arrived == caught.value.missing == ()
    assert space.try_read(REST)[3:5] == ((1 << 32) + 2, 0)


def test_an_interrupted_wait_is_as_if_it_had_not_been(shm, shm_url, eventually):
    """T5: the barrier is not broken, and the party is not counted."""
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + PARTY
    child = start(code, shm_url, "interrupted", 1)
    eventually(lambda: shm.stat()["waiters"] == 1)
    child.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in child.communicate(timeout=60)[1]
    assert shm.try_read(REST) == ("tupelo.barrier", "epoch", 3, 0, 0, [], [])


def test_a_cancelled_wait_is_as_if_it_had_not_been(space):
    async def main():
        async with aio.connect(space.url) as shared:
            barrier = awaited.Barrier(shared, "epoch", parties=2, party="task")
            task = asyncio.create_task(barrier.wait())
            await shared.read("tupelo.barrier", "epoch", 2, 0, 1, ["task"], [], timeout=60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.gather(barrier.wait(), barrier.wait()) == [0, 1]
            with pytest.raises(BrokenBarrier, match="missing: task"):
                await barrier.wait(timeout=0.01)
            await barrier.reset()
            assert await asyncio.gather(barrier.wait(), barrier.wait()) == [0, 1]

    asyncio.run(main())


def test_a_barrier_for_one_lets_it_through(space):
    barrier = Barrier(space, "alone", parties=1)
    assert [barrier.wait(timeout=0) for _ in range(3)] == [0, 0, 0]
    (name,) = space.try_read("tupelo.barrier", "alone", 1, 3, 0, [], ...)[6]
    assert name == f"process {os.getpid()}"
    assert Thread(lambda: Barrier(space, "alone", parties=1).wait()).result() == 0
    (name,) = space.try_read("tupelo.barrier", "alone", 1, 4, 0, [], ...)[6]
    assert name.startswith(f"process {os.getpid()} Thread-")


def test_a_message_names_so_many_parties_and_counts_the_rest(space):
    space.put("tupelo.barrier", "crowd", 30, 1, 0, [], [f"p{n}" for n in range(30)])
    with pytest.raises(BrokenBarrier, match=r"missing: p1, p2, .*, p20 and 9 more") as caught:
        Barrier(space, "crowd", parties=30, party="p0").wait(timeout=0)
    assert len(caught.value.missing) == 29


def test_the_tuple_of_a_barrier_may_be_put_by_others(space):
    space.put("tupelo.barrier", "epoch", 2, 0, 0, [], [])
    thread = Thread(lambda: Barrier(space, "epoch", parties=2).wait())
    assert {Barrier(space, "epoch", parties=2).wait(), thread.result()} == {0, 1}
    assert space.count(REST) == 1


def test_who_comes_first_by_the_words_of_the_page_meets_those_who_use_the_battery(space):
    """docs/batteries.md: how the first tuple of a barrier and of a latch is put by hand."""
    first = ("tupelo.barrier", "epoch", 2, 0, 1, ["by hand"], [])
    absent = ts.like("tupelo.barrier", "epoch", int, int, int, list, list)
    assert space.put_if_absent(*first, unless=absent)
    assert Barrier(space, "epoch", parties=2, party="ada").wait(timeout=60) == 1
    passed = ("tupelo.barrier", "epoch", 2, 1, 0, [], ["by hand", "ada"])
    assert space.try_read("tupelo.barrier", "epoch", 2, F >= 1, int, list, list) == passed
    assert not space.put_if_absent(*first, unless=absent)

    absent = ts.like("tupelo.latch", "ready", int, int)
    assert space.put_if_absent("tupelo.latch", "ready", 2, 1, unless=absent)
    latch = Latch(space, "ready", count=2)
    assert latch.left == 1
    by_hand = ("tupelo.latch", "ready", 2, 1)
    assert space.try_swap(*by_hand, to=("tupelo.latch", "ready", 2, 0)) == by_hand
    latch.wait(timeout=60)
    assert space.try_read("tupelo.latch", "ready", 2, 0) is not None


def test_a_barrier_whose_tuple_was_taken_away_is_broken(space):
    """Of what others did to its tuple a party learns when its time is over."""

    def party():
        Barrier(space, "epoch", parties=2, party="ada").wait(timeout=0.5)

    thread = Thread(party)
    space.take("tupelo.barrier", REST, timeout=60)
    assert isinstance(thread.result(), BrokenBarrier)


def test_a_latch_opens_when_nothing_is_left(space):
    latch = Latch(space, "ready", count=3)
    assert latch.left == latch.count == 3
    threads = [Thread(lambda: Latch(space, "ready", count=3).wait()) for _ in range(2)]
    assert latch.count_down() == 2
    with pytest.raises(ts.Timeout, match=r"latch 'ready' did not open within 0\.01 s: 2 of 3 are"):
        latch.wait(timeout=0.01)
    assert latch.count_down(5) == 0
    assert latch.count_down() == 0
    assert [thread.result() for thread in threads] == [None, None]
    latch.wait(timeout=0)
    assert latch.left == 0
    assert space.take_all(REST) == [("tupelo.latch", "ready", 3, 0)]


def test_who_waits_for_a_latch_hears_of_a_party_that_comes_later_with_another_count(
    space, eventually
):
    waiting = Thread(lambda: Latch(space, "ready", count=2).wait())
    eventually(lambda: space.stat()["waiters"] == 1)
    assert Latch(space, "ready", count=3).count_down(3) == 0
    error = waiting.result()
    assert isinstance(error, ValueError)
    assert str(error).startswith("latch 'ready' has the count 3 in ")


def test_a_latch_has_not_opened_when_one_of_another_count_is_taken_away(space, monkeypatch):
    latch = Latch(space, "ready", count=2)
    left, looks = latch._core.left, []  # noqa: SLF001 - it comes before and after a look

    async def left_in_turn():
        looks.append("look")
        if len(looks) == 2:
            space.take("tupelo.latch", "ready", 3, 3)
        found = await left()
        if len(looks) == 1:
            space.put("tupelo.latch", "ready", 3, 3)
        return found

    monkeypatch.setattr(latch._core, "left", left_in_turn)  # noqa: SLF001
    with pytest.raises(ts.Timeout, match="2 of 2 are left"):
        latch.wait(timeout=0.05)


def test_a_latch_beside_one_of_another_count_is_refused_and_not_looked_at_for_ever(space):
    space.put_all([("tupelo.latch", "ready", 2, 1), ("tupelo.latch", "ready", 3, 1)])
    with pytest.raises(ValueError, match="latch 'ready' has the count 3 in "):
        Latch(space, "ready", count=2).wait()


def test_who_is_interrupted_when_another_was_faster_takes_nobody_elses_place_t5(
    space, eventually, monkeypatch
):
    late = Barrier(space, "epoch", parties=2, party="ada")
    state, looks, others = late._core._state, [], []  # noqa: SLF001 - between look and step

    async def state_in_turn(verbs):
        looks.append("look")
        if len(looks) == 2:
            raise KeyboardInterrupt
        found = await state(verbs)
        if len(looks) == 1:
            wait = Barrier(space, "epoch", parties=2, party="ada").wait
            others.append(Thread(wait))
            eventually(lambda: space.count("tupelo.barrier", str, int, int, 1, REST) == 1)
        return found

    with monkeypatch.context() as interrupted:
        interrupted.setattr(late._core, "_state", state_in_turn)  # noqa: SLF001
        with pytest.raises(KeyboardInterrupt):
            late.wait(timeout=60)
    assert space.count("tupelo.barrier", str, int, int, 1, REST) == 1
    assert late.wait(timeout=60) == 1
    assert others[0].result() == 0


COUNTS_DOWN = """
import sys
import tupelo as ts
from tupelo.batteries import Counter, Latch

space = ts.connect(sys.argv[1], create=False)
latch, mine = Latch(space, "work", count=10**9), Counter(space, sys.argv[2])
while True:
    latch.count_down()
    mine += 1
"""


def test_who_is_killed_while_it_counts_down_has_counted_or_not(shm, shm_url, eventually):
    names = ["a", "b", "c"]
    children = [start(COUNTS_DOWN, shm_url, name) for name in names]
    from tupelo.batteries import Counter  # noqa: PLC0415

    eventually(lambda: all(Counter(shm, name).value > 50 for name in names))
    for child in children:
        child.kill()
        child.communicate()
    counted = 10**9 - Latch(shm, "work", count=10**9).left
    assert 0 <= counted - sum(Counter(shm, name).value for name in names) <= 3


def test_tasks_wait_for_a_latch(space):
    async def main():
        async with aio.connect(space.url) as shared:
            latch = awaited.Latch(shared, "go")
            waiting = [asyncio.create_task(latch.wait(timeout=60)) for _ in range(3)]
            await asyncio.sleep(0)
            assert await latch.left() == 1
            assert await latch.count_down() == 0
            assert await asyncio.gather(*waiting) == [None] * 3

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "error", "problem"),
    [
        (lambda s: Barrier(s, "a", parties=0), ValueError, "parties is 0: give a number from 1 to"),
        (lambda s: Barrier(s, "a", parties=4097), ValueError, "from 1 to 4096"),
        (lambda s: Barrier(s, "a", parties=2.0), TypeError, "parties has the type float: give an"),
        (lambda s: Barrier(s, 3, parties=2), TypeError, "name has the type int"),
        (lambda s: Barrier(s, "a", parties=2, party=3), TypeError, "party has the type int"),
        (lambda s: Barrier(s, "a", parties=2).wait(-1), ValueError, "timeout"),
        (lambda s: Barrier(s, "a", parties=2).wait("1"), TypeError, "timeout"),
        (lambda s: Latch(s, "a", count=0), ValueError, "count is 0: give a number from 1 to"),
        (lambda s: Latch(s, "a").count_down(0), ValueError, "by is 0: give a number from 1 to"),
        (lambda s: Latch(s, "a").wait(-1), ValueError, "timeout"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_happens(space, call, error, problem):
    with pytest.raises(error, match=problem):
        call(space)
    assert space.count(REST) == 0


def test_who_expects_another_number_of_parties_or_another_count_is_told(space):
    Barrier(space, "epoch", parties=1).wait()
    other = Barrier(space, "epoch", parties=2)
    for call in (lambda: other.wait(0), other.reset):
        with pytest.raises(ValueError, match=r"barrier 'epoch' has 1 parties in .*, and 2 here"):
            call()
    Latch(space, "go", count=2).count_down()
    other = Latch(space, "go", count=3)
    for call in (other.count_down, lambda: other.left, other.wait):
        with pytest.raises(ValueError, match=r"latch 'go' has the count 2 in .*, and 3 here"):
            call()


def test_what_is_shown_says_where_it_is(space):
    assert repr(Barrier(space, "a", parties=2)) == f"<Barrier 'a' of 2 in {space.url}>"
    assert repr(Latch(space, "a", count=2)) == f"<Latch 'a' of 2 in {space.url}>"
    assert (Barrier(space, "a", parties=2).name, Barrier(space, "a", parties=2).parties) == ("a", 2)
    assert Latch(space, "b").name == "b"


def test_after_a_cancelled_wait_each_party_still_has_a_number_of_its_own(space):
    async def meet():
        async with aio.connect(space.url) as connection:
            barrier = awaited.Barrier(connection, "x", parties=3)
            first, second = (asyncio.ensure_future(barrier.wait()) for _ in range(2))
            await connection.read("tupelo.barrier", "x", int, int, 2, list, list)
            first.cancel()
            await asyncio.wait([first])
            return await asyncio.gather(second, barrier.wait(), barrier.wait())

    assert sorted(asyncio.run(meet())) == [0, 1, 2]
