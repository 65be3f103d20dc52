"""Pool: what ends, or breaks, in the middle of something leaves nothing, and somebody is told."""

import asyncio
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import tupelo as ts
from tupelo import REST
from tupelo.aio.batteries import Pool as AioPool
from tupelo.batteries import Pool
from tupelo.tasks import crew, discarding, evaluation

sys.path.insert(0, str(Path(__file__).parent))
import calls


class Starts:
    """Processes of a crew that start one by one: the first, and the others when told so."""

    def __init__(self, monkeypatch):
        self.pids = []
        self.first, self.go_on = threading.Event(), threading.Event()
        start = crew._Member.start  # noqa: SLF001

        def start_in_turn(*arguments):
            member = start(*arguments)
            self.pids.append(member.pid)
            self.first.set()
            self.go_on.wait(60)
            return member

        monkeypatch.setattr("tupelo.tasks.crew._Member.start", start_in_turn)


def is_gone(pid):
    """Whether a process has ended, and somebody has waited for it."""
    return not Path(f"/proc/{pid}").exists()


def test_a_pool_of_asyncio_that_is_cancelled_while_it_starts_leaves_no_workers(
    shm, shm_url, monkeypatch, eventually
):
    starts = Starts(monkeypatch)

    async def enter():
        async with AioPool(shm_url, workers=3):
            pytest.fail("it was cancelled")

    async def main():
        task = asyncio.create_task(enter())
        await asyncio.to_thread(starts.first.wait, 60)
        task.cancel()
        starts.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    eventually(lambda: all(map(is_gone, starts.pids)))
    assert shm.count(REST) == 0


def test_a_pool_of_asyncio_that_is_cancelled_while_it_waits_for_room_ends_at_once(
    shm_url, eventually
):
    async def enter():
        async with AioPool(shm_url, workers=1):
            pytest.fail("it was cancelled")

    async def main(space):
        task = asyncio.create_task(enter())
        await asyncio.to_thread(eventually, lambda: space.stat()["waiting_for_room"] == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ts.connect(shm_url, tuples_max=1, when_full="wait") as space:
        space.put("in the way")
        asyncio.run(main(space))
        assert space.take_all(REST) == [("in the way",)]


def test_an_interrupt_while_workers_start_leaves_none(shm, shm_url, monkeypatch):
    starts = Starts(monkeypatch)
    start = crew._Member.start  # noqa: SLF001
    starts.go_on.set()

    def interrupted(*arguments):
        if starts.first.is_set():
            raise KeyboardInterrupt
        return start(*arguments)

    monkeypatch.setattr("tupelo.tasks.crew._Member.start", interrupted)
    with pytest.raises(KeyboardInterrupt), Pool(shm_url, workers=2):
        pass
    assert len(starts.pids) == 1
    assert is_gone(starts.pids[0])
    assert shm.count(REST) == 0


def test_what_can_not_be_read_here_is_thrown_away_too(shm_url):
    generous = ts.connect(shm_url, objects="pickle")
    with generous, ts.connect(shm_url, objects="strict") as strict:
        generous.put("tupelo.answer", "q/0", 0, "done", {1})
        generous.put("tupelo.answer", "another/0", 0, "done", {1})
        with pytest.raises(ts.NotEncodable):
            strict.take_all("tupelo.answer", REST)
        discarding.discard_queue(strict, "q")
        assert generous.read_all(REST) == [("tupelo.answer", "another/0", 0, "done", {1})]


@pytest.mark.parametrize("end", ["breaks", "is ended"])
def test_a_task_that_is_submitted_while_its_pool_ends_fails(space, monkeypatch, end):
    with Pool(space.url, workers=1) as pool:
        inner = pool._pool  # noqa: SLF001
        submit = inner.mailbox.submit

        def submit_late(*arguments, **options):
            if end == "breaks":
                inner._break("no worker can go on")  # noqa: SLF001
            else:
                inner.kill()
            return submit(*arguments, **options)

        monkeypatch.setattr(inner.mailbox, "submit", submit_late)
        future = pool.submit(calls.double, 2)
        with pytest.raises(ts.RemoteError, match=r"can go on|before this task was done"):
            future.result(60)
        with pytest.raises(ts.RemoteError):
            pool.submit(calls.double, 2)
    assert space.count(REST) == 0


def test_a_failure_of_a_map_that_nobody_iterates_is_raised_at_the_end(space):
    with pytest.raises(ts.RemoteError, match=r"half_of_even\(\d\) failed") as caught:
        with Pool(space.url, workers=2) as pool:
            pool.map(calls.half_of_even, range(4))
    assert caught.value.__notes__ == ["1 more task has failed: look at pool.failures"]
    assert sorted(failure.args for failure in pool.failures) == [(1,), (3,)]
    assert space.count(REST) == 0


def test_a_failure_of_a_map_that_is_iterated_in_part_is_raised_at_the_end(space):
    with pytest.raises(ts.RemoteError, match=r"half_of_even\(3\) failed"):
        with Pool(space.url, workers=1) as pool:
            results = pool.map(calls.half_of_even, [2, 0, 3])
            assert next(results) == 1
    results.close()  # the pool is gone: nothing is left to be taken back
    assert space.count(REST) == 0


def test_a_map_that_nobody_iterates_says_that_no_worker_could_go_on():
    with pytest.raises(ts.RemoteError, match="KeyboardInterrupt"):
        with Pool("mem://interrupted-map", workers=1) as pool:
            pool.map(calls.interrupt_if, [True, False])


def test_a_map_that_was_not_iterated_and_has_not_failed_is_no_error(space):
    with Pool(space.url, workers=2) as pool:
        pool.map(calls.double, range(2000))
        assert pool.failures == []
    assert space.count(REST) == 0


def test_what_is_answered_to_a_map_that_was_given_up_is_removed(shm, shm_url):
    answers = ("tupelo.answer", str, int, str, ...)
    with Pool(shm_url, workers=1) as pool:
        results = pool.map(calls.wait_if, [shm_url] * 3, [1, "slow", 2])
        assert next(results) == 1
        shm.take("began", "slow", int, timeout=60)
        results.close()
        tasks = ("tupelo.task", REST)
        assert shm.count(*tasks) == 0  # but one, which is being done
        shm.put("go on", "slow")
        shm.wait_none(*tasks, timeout=60)
        assert shm.count(*answers) == 1
        assert list(pool.map(calls.double, [1])) == [2]
        assert shm.count(*answers) == 0


def test_what_was_answered_before_a_map_is_given_up_is_removed_at_once(space):
    with Pool(space.url, workers=1) as pool:
        results = pool.map(calls.double, range(3000), as_completed=True)
        next(results)
        space.wait_none("tupelo.task", REST, timeout=60)
        results.close()
        assert space.count("tupelo.answer", REST) == 0


def test_a_map_whose_values_can_not_be_had_leaves_no_tasks(shm, shm_url):
    def values():
        yield from ["slow"] * 256
        yield from range(256)
        message = "no more"
        raise OverflowError(message)

    with Pool(shm_url, workers=1) as pool:
        with pytest.raises(OverflowError):
            pool.map(calls.wait_if, [shm_url] * 1000, values())
        assert shm.count("tupelo.task", REST) == 0
        shm.put("go on", "slow")
        # At most one had begun.
        assert pool.submit(calls.double, 2).result(60) == 4
    assert shm.take_all("began", REST)[1:] == []


LOST = r"TUP-011: double\(0\) and its answer are not in the space any more: it drops its oldest"


def test_futures_of_tasks_that_their_space_has_dropped_say_so(shm_url):
    space = ts.connect(shm_url, tuples_max=10, when_full="drop-oldest")
    with space, Pool(shm_url, workers=1) as pool:
        first = pool.submit(calls.wait_for, shm_url, "slow")
        space.take("began", "slow", int, timeout=60)
        futures = [pool.submit(calls.double, n) for n in range(100)]
        # While the worker is busy, and others of them wait.
        with pytest.raises(ts.RemoteError, match=LOST):
            futures[0].result(60)
        space.put("go on", "slow")
        assert first.result(60) == "slow"
        assert futures[-1].result(60) == 198


def test_who_awaits_a_task_that_its_space_has_dropped_is_told(shm_url):
    async def main(space):
        async with asyncio.timeout(60), AioPool(shm_url, workers=1) as pool:
            first = asyncio.create_task(pool.submit(calls.wait_for, shm_url, "slow"))
            await asyncio.to_thread(space.take, "began", "slow", int, timeout=60)
            tasks = [asyncio.create_task(pool.submit(calls.double, n)) for n in range(100)]
            with pytest.raises(ts.RemoteError, match=LOST):
                await tasks[0]
            space.put("go on", "slow")
            assert await first == "slow"
            assert await tasks[-1] == 198
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(outcomes[1], ts.RemoteError)

    with ts.connect(shm_url, tuples_max=10, when_full="drop-oldest") as space:
        asyncio.run(main(space))


@pytest.mark.parametrize("scheme", ["mem", "shm"])
def test_a_pool_for_which_there_is_no_thread_says_so(new_url, scheme, monkeypatch):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name.startswith(("tupelo crew", "tupelo worker")):
            message = "can't start new thread"
            raise RuntimeError(message)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    url = new_url(scheme)
    with ts.connect(url) as space:
        with pytest.raises(RuntimeError, match="can't start new thread"), Pool(url, workers=1):
            pass
        assert space.count(REST) == 0


def test_a_pool_of_threads_whose_block_raises_leaves_no_tuples(new_url, eventually):
    url, others = new_url("mem"), workers()
    with ts.connect(url) as space:
        for _ in range(20):
            with pytest.raises(ZeroDivisionError), Pool(url, workers=2) as pool:
                assert pool.submit(calls.double, 2).result(60) == 4
                raise ZeroDivisionError
            assert space.read_all(REST) == []
        eventually(lambda: workers() <= others)


def test_a_pool_of_threads_of_asyncio_whose_block_raises_leaves_no_tuples(new_url, eventually):
    url, others = new_url("mem"), workers()

    async def main():
        async with AioPool(url, workers=2) as pool:
            assert await pool.submit(calls.double, 2) == 4
            raise ZeroDivisionError

    with ts.connect(url) as space:
        for _ in range(20):
            with pytest.raises(ZeroDivisionError):
                asyncio.run(main())
            assert space.read_all(REST) == []
        eventually(lambda: workers() <= others)


def test_a_thread_at_work_when_its_pool_is_killed_takes_its_tuples_with_it(new_url, eventually):
    url, others = new_url("mem"), workers()
    with ts.connect(url) as space:
        with pytest.raises(ZeroDivisionError), Pool(url, workers=3) as pool:
            futures = [pool.submit(calls.wait_for, url, word) for word in ("one", "other")]
            for word in ("one", "other"):
                space.take("began", word, int)
            raise ZeroDivisionError
        for future in futures:
            with pytest.raises(ts.RemoteError, match="the pool was ended"):
                future.result(60)
        for word in ("one", "other"):
            space.put("go on", word)
        eventually(lambda: workers() <= others)
        assert space.read_all(REST) == []


def test_no_thread_starts_while_others_are_told_to_end(new_url, monkeypatch):
    """As those of a pool of asyncio that is cancelled while another thread starts them."""

    class AddsOne(crew.Server):
        @property
        def is_to_end(self):
            return self.is_told

        @is_to_end.setter
        def is_to_end(self, is_told):
            self.is_told = is_told
            if is_told:
                threads.add(1)

    monkeypatch.setattr(crew, "Server", AddsOne)
    space, others = ts.connect(new_url("mem")), workers()
    threads = crew.Threads(space, crew.Terms("queue"), pytest.fail)
    threads.add(2)
    threads.kill()
    threads.leave()
    assert workers() <= others
    with pytest.raises(ts.SpaceClosed):
        space.stat()


def test_threads_that_have_ended_may_be_killed(new_url):
    """As by Ctrl-C at the end of a pool: that is what is raised then."""
    space, others = ts.connect(new_url("mem")), workers()
    threads = crew.Threads(space, crew.Terms("queue"), pytest.fail)
    threads.add(2)
    threads.end()
    threads.kill()
    threads.leave()
    assert workers() <= others


def is_closed(crew_of_threads):
    try:
        crew_of_threads._space.stat()  # noqa: SLF001 - nobody else has it
    except ts.SpaceClosed:
        return True
    return False


def test_a_pool_whose_thread_was_interrupted_leaves_nothing(new_url, eventually):
    others = workers()
    with Pool(new_url("mem"), workers=2) as pool:
        assert isinstance(pool.submit(calls.interrupt).exception(60), ts.RemoteError)
    eventually(lambda: workers() <= others)
    assert is_closed(pool._pool.crew)  # noqa: SLF001


def test_a_pool_of_threads_that_can_not_clean_up_leaves_no_thread(new_url, monkeypatch):
    def refuse(*_):
        raise ts.SpaceFull

    others = workers()
    with pytest.raises(ts.SpaceFull), Pool(new_url("mem"), workers=2) as pool:
        monkeypatch.setattr("tupelo.tasks.local.discard_queue", refuse)
        raise ZeroDivisionError
    assert workers() <= others
    assert is_closed(pool._pool.crew)  # noqa: SLF001


def test_ctrl_c_while_a_pool_is_cleaned_up_is_what_is_raised(new_url, monkeypatch):
    refusals = [KeyboardInterrupt(), ts.SpaceFull("there is no room")]

    def refuse(*_):
        raise refusals.pop(0)

    with pytest.raises(KeyboardInterrupt) as interrupted, Pool(new_url("mem"), workers=2):
        monkeypatch.setattr("tupelo.tasks.local.discard_queue", refuse)
        raise ZeroDivisionError
    assert interrupted.value.__notes__ == ["TUP-005: there is no room"]
    assert refusals == []


def test_threads_of_eval_that_were_interrupted_leave_nothing(new_url):
    with ts.connect(new_url("mem")) as space:
        with pytest.raises(ts.RemoteError):
            space.eval(ts.call(calls.interrupt)).result(60)
        (broken,) = (pool for key, pool in evaluation._pools.items() if space.url in key)  # noqa: SLF001
        assert space.eval(ts.call(calls.double, 2)).result(60) == (4,)
        assert is_closed(broken.crew)


def workers():
    """Return the threads that are workers, also of what other tests have begun."""
    return {thread for thread in threading.enumerate() if "tupelo worker" in thread.name}


AFTERWARDS = "a pool works inside of its block"


@pytest.mark.parametrize("error", [None, ZeroDivisionError()], ids=repr)
def test_a_pool_whose_block_is_over_says_so(new_url, error):
    url = new_url("mem")
    with suppress(ZeroDivisionError), Pool(url, workers=1) as pool:
        if error is not None:
            raise error
    for use in (
        lambda: pool.submit(calls.double, 1),
        lambda: pool.map(calls.double, [1]),
        pool.pids,
    ):
        with pytest.raises(RuntimeError, match=AFTERWARDS):
            use()

    async def main():
        with suppress(ZeroDivisionError):
            async with AioPool(url, workers=1) as pool:
                if error is not None:
                    raise error
        with pytest.raises(RuntimeError, match=AFTERWARDS):
            await pool.submit(calls.double, 1)
        with pytest.raises(RuntimeError, match=AFTERWARDS):
            await anext(pool.map(calls.double, [1]))
        with pytest.raises(RuntimeError, match=AFTERWARDS):
            pool.pids()

    asyncio.run(main())
