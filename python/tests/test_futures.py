"""take_future and read_future."""

import math
import os
import random
import signal
import threading
from asyncio import CancelledError as TaskCancelled
from concurrent.futures import CancelledError, wait

import pytest
from resources import open_descriptors, own_threads

import tupelo as ts
import tupelo.futures
from tupelo import linda
from tupelo.batteries import Pool
from tupelo.futures import PromptFuture


def test_futures_are_fulfilled_as_tuples_come(space):
    futures = [space.take_future("answer", n, str) for n in range(100)]
    assert not any(future.done() for future in futures)
    for n in reversed(range(100)):
        space.put("answer", n, str(n))
    assert [future.result() for future in futures] == [("answer", n, str(n)) for n in range(100)]
    assert space.stat()["waiters"] == 0


def test_ten_thousand_futures_wait_by_what_one_waits_by_and_each_gets_its_own_tuple_t4(space):
    futures = [space.take_future("reply", 0, str)]
    descriptors, threads = open_descriptors(), own_threads()
    futures += [space.take_future("reply", n, str) for n in range(1, 10_000)]
    assert space.stat()["waiters"] == 10_000
    # What another test has used may end meanwhile.
    assert own_threads() <= threads
    assert open_descriptors() <= descriptors
    for n in random.sample(range(10_000), 10_000):
        space.put("reply", n, str(n))
    assert [future.result(60) for future in futures] == [
        ("reply", n, str(n)) for n in range(10_000)
    ]


def test_what_is_there_is_had_at_once(space):
    space.put("a", 1)
    read, taken = space.read_future("a", int), space.take_future("a", int)
    assert (read.done(), taken.done()) == (True, True)
    assert read.result() == taken.result() == ("a", 1)
    assert space.count("a", int) == 0


def test_a_cancelled_future_leaves_the_line_and_its_tuple_t5(space, eventually):
    first, second = space.take_future("a", int), space.take_future("a", int)
    assert first.cancel()
    with pytest.raises(CancelledError):
        first.result()
    space.put("a", 1)
    assert second.result() == ("a", 1)
    assert not second.cancel()
    third = space.take_future("a", int)
    third.cancel()
    eventually(lambda: space.stat()["waiters"] == 0)
    space.put("a", 2)
    assert space.take("a", int, timeout=0) == ("a", 2)


def test_who_waits_for_a_future_learns_that_it_was_cancelled(space):
    future = space.take_future("a", int)
    waiting = threading.Thread(target=wait, args=([future],), daemon=True)
    waiting.start()
    assert future.cancel()
    assert future.cancel(), "it stays cancelled"
    waiting.join(30)
    assert not waiting.is_alive()
    assert wait([future], timeout=0).done == {future}


def test_a_future_that_is_cancelled_while_it_is_looked_at_holds_up_no_other(space, monkeypatch):
    class CancelledThen(PromptFuture):
        def cancelled(self):
            was = super().cancelled()
            self.cancel()  # as another thread may, right after
            return was

    with monkeypatch.context() as patched:
        patched.setattr("tupelo.futures.PromptFuture", CancelledThen)
        space.take_future("a", 1)
    other = space.take_future("a", 2)
    space.put("a", 1)
    assert space.take("a", 1) == ("a", 1)
    space.put("a", 2)
    assert other.result(timeout=60) == ("a", 2)


def test_cancelling_while_tuples_come_loses_none_t5(space):
    futures = [space.take_future("n", int) for _ in range(500)]
    putter = threading.Thread(target=lambda: [space.put("n", n) for n in range(500)])
    putter.start()
    cancelled = [future for future in futures[::2] if future.cancel()]
    putter.join()
    rest = [future for future in futures if future not in cancelled]
    left = space.take_all("n", int)
    while len(left) + len(rest) < 500 or not all(future.done() for future in rest):
        done, _ = wait(rest, timeout=0.01)
        left += space.take_all("n", int)
        if len(done) == len(rest) and len(left) + len(rest) == 500:
            break
    got = [future.result()[1] for future in rest] + [n for _, n in left]
    assert sorted(got) == list(range(500))


def test_closing_fails_what_still_waits(new_url):
    url = new_url("mem")
    other = ts.connect(url)
    later = other.take_future("never")
    other.close()
    with pytest.raises(ts.SpaceClosed):
        later.result()


def test_closing_while_tuples_come_leaves_no_future_without_an_end(space):
    """Also those whose tuple came at the moment when the connection was closed."""
    for _ in range(50):
        other = ts.connect(space.url)
        futures = [other.take_future("n", n) for n in range(200)]
        putter = threading.Thread(target=lambda: [space.put("n", n) for n in range(200)])
        putter.start()
        futures[20].result()
        other.close()
        putter.join()
        for future in futures:
            problem = future.exception(timeout=60)
            assert problem is None or isinstance(problem, ts.SpaceClosed)
        space.take_all("n", int)


def test_bonitas_names_do_the_same(space):
    with linda.connect(space.url) as lindas:
        later = lindas.dispatch("a", int)
        assert not linda.arrived(later)
        lindas.out("a", 1)
        assert linda.obtain(later) == ("a", 1)


def test_a_number_that_is_anothers_by_the_time_of_the_callback_stays_that_ones(space, monkeypatch):
    others = []

    class FulfilledLate(PromptFuture):
        def set_result(self, result):
            if not others:
                asking = threading.Thread(
                    target=lambda: others.append(space.take_future("other", int))
                )
                asking.start()
                asking.join()
            super().set_result(result)

    monkeypatch.setattr("tupelo.futures.PromptFuture", FulfilledLate)
    first = space.take_future("first", int)
    space.put("first", 1)
    assert first.result() == ("first", 1)
    space.put("other", 2)
    assert others[0].result(timeout=60) == ("other", 2)


@pytest.mark.parametrize("raised", [SystemExit, TaskCancelled, KeyboardInterrupt])
def test_a_callback_that_raises_holds_up_no_other_future(space, caplog, eventually, raised):
    def give_up(_):
        raise raised

    asked, other = space.take_future("a", int), space.take_future("b", int)
    asked.add_done_callback(give_up)
    space.put("a", 1)
    assert asked.result(timeout=60) == ("a", 1)
    space.put("b", 2)
    assert other.result(timeout=60) == ("b", 2)
    space.put("c", 3)
    assert space.take_future("c", int).result(timeout=60) == ("c", 3)
    eventually(lambda: "exception calling" in caplog.text)


@pytest.mark.usefixtures("shm")
def test_the_child_of_a_fork_waits_for_no_lock_of_futures(shm_url):
    with tupelo.futures._collectors_lock:  # noqa: SLF001 - as another thread may have it then
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            with ts.connect(shm_url) as own:
                later = own.take_future("a", int)
                own.put("a", 1)
                os._exit(0 if later.result() == ("a", 1) else 2)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_thread_that_can_not_be_had_is_told_and_the_next_future_is_fulfilled(space, monkeypatch):
    def refused(_):
        message = "can't start new thread"
        raise RuntimeError(message)

    with monkeypatch.context() as none:
        none.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="new thread"):
            space.take_future("a")
    space.put("a")
    assert space.try_take("a") == ("a",)
    future = space.take_future("b")
    space.put("b")
    assert future.result(60) == ("b",)


def test_control_c_while_the_thread_starts_leaves_one_that_fulfils_every_future(
    space, monkeypatch, eventually
):
    start = threading.Thread.start
    before = set(threading.enumerate())

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    def fulfilling():
        new = set(threading.enumerate()) - before
        return [thread for thread in new if thread.name == "tupelo futures"]

    with monkeypatch.context() as once:
        once.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            space.take_future("n", int)
    futures = [space.take_future("n", n) for n in range(1_000)]
    eventually(lambda: len(fulfilling()) == 1)
    for n in range(1_000):
        space.put("n", n)
    assert [future.result(timeout=60) for future in futures] == [("n", n) for n in range(1_000)]
    eventually(lambda: space.stat()["waiters"] == 0)


def test_a_callback_that_sleeps_holds_up_no_future(space):
    go_on = threading.Event()
    called = []

    def sleeps(future):
        called.append(future.result())
        go_on.wait(60)

    slow = [space.take_future("slow", n) for n in range(3)]
    for future in slow:
        future.add_done_callback(sleeps)
        future.add_done_callback(lambda future: called.append(future.result()))
    others = [space.take_future("other", n) for n in range(10)]
    space.put_all([("slow", n) for n in range(3)] + [("other", n) for n in range(10)])
    assert [future.result(60) for future in others] == [("other", n) for n in range(10)]
    assert [future.result(60) for future in slow] == [("slow", n) for n in range(3)]
    go_on.set()
    ended = threading.Event()
    last = space.take_future("last")
    last.add_done_callback(lambda _: ended.set())
    space.put("last")
    assert ended.wait(60)
    last.add_done_callback(called.append)
    assert called[-1] is last  # at once, as for any future that is done


def test_the_callbacks_of_a_future_come_in_their_order_and_one_that_raises_is_told(space, caplog):
    came = []
    ended = threading.Event()
    future = space.take_future("job")
    future.add_done_callback(came.append)
    future.add_done_callback(lambda _: 1 / 0)
    future.add_done_callback(lambda _: ended.set())
    space.put("job")
    assert ended.wait(60)
    assert came == [future]
    assert "ZeroDivisionError" in caplog.text


def test_a_task_that_sleeps_in_a_callback_holds_up_no_other_task(space):
    go_on = threading.Event()
    with Pool(space.url, workers=2) as pool:
        slow = pool.submit(math.sqrt, 4.0)
        slow.add_done_callback(lambda _: go_on.wait(60))
        assert pool.submit(math.sqrt, 9.0).result(60) == 3.0
        assert slow.result(60) == 2.0
        assert pool.submit(math.sqrt, 16.0).result(60) == 4.0
        go_on.set()
