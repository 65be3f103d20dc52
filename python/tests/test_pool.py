"""Pool: a function over many values, whatever happens to the workers."""

import asyncio
import itertools
import math
import os
import signal
import subprocess
import sys
from concurrent.futures import wait
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from attempts import in_one_attempt
from stopping import waiting

import tupelo as ts
from tupelo import REST
from tupelo.aio.batteries import Pool as AioPool
from tupelo.batteries import Pool
from tupelo.batteries.progress import Bar

sys.path.insert(0, str(Path(__file__).parent))
import calls


def test_map_returns_the_results_in_the_order_of_the_values(space):
    with Pool(space.url, workers=2) as pool:
        assert list(pool.map(calls.double, range(5000))) == [2 * n for n in range(5000)]
    assert space.count(REST) == 0


def test_the_fastest_first_are_all_of_them(space):
    with Pool(space.url, workers=3) as pool:
        results = pool.map(math.pow, range(100), itertools.repeat(2), as_completed=True)
        assert sorted(results) == [n * n for n in range(100)]


def test_a_slow_one_does_not_hold_up_the_fastest(shm, shm_url):
    with Pool(shm_url, workers=2) as pool:
        words = ["slow", *range(20)]
        results = pool.map(partial(calls.wait_if, shm_url), words, as_completed=True)
        assert sorted(itertools.islice(results, 20)) == list(range(20))
        shm.put("go on", "slow")
        assert list(results) == ["slow"]


def test_the_values_may_be_without_end(space):
    with Pool(space.url, workers=2) as pool:
        results = pool.map(calls.double, itertools.count())
        assert list(itertools.islice(results, 10_000)) == [2 * n for n in range(10_000)]
        results.close()
        assert list(pool.map(calls.double, [1])) == [2]
    assert space.count(REST) == 0


def test_nothing_to_do_is_done_at_once(space):
    with Pool(space.url, workers=1) as pool:
        assert list(pool.map(calls.double, [])) == []


def test_two_maps_at_once_do_not_mix(space):
    with Pool(space.url, workers=2) as pool:
        one, other = pool.map(calls.double, range(900)), pool.map(math.sqrt, range(900))
        pairs = list(zip(one, other, strict=True))
    assert pairs == [(2 * n, math.sqrt(n)) for n in range(900)]


def test_submit_returns_a_future(space):
    with Pool(space.url, workers=2, retries=1) as pool:
        futures = [pool.submit(calls.double, x=n) for n in range(50)]
        bad = pool.submit(calls.fail)
        assert [future.result(60) for future in futures] == [2 * n for n in range(50)]
        assert bad.exception(60).attempts == 2


def test_the_end_of_the_block_waits_for_what_was_submitted(space):
    with Pool(space.url, workers=1) as pool:
        futures = [pool.submit(calls.double, n) for n in range(100)]
    assert [future.result(0) for future in futures] == [2 * n for n in range(100)]


def test_the_workers_are_processes_and_end_with_the_block(shm, shm_url, eventually):
    with Pool(shm_url, workers=2) as pool:
        pids = set(pool.map(calls.pid, range(200)))
        assert pids <= set(pool.pids())
        assert os.getpid() not in pids
    eventually(lambda: {p["pid"] for p in shm.stat()["processes"] if p["alive"]} == {os.getpid()})


def test_by_default_there_is_a_worker_per_processor_that_may_be_used(shm_url):
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with Pool(shm_url) as pool:
            assert len(pool.pids()) == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_an_exception_in_the_block_kills_the_workers(shm, shm_url):
    with pytest.raises(ZeroDivisionError), Pool(shm_url, workers=1) as pool:
        later = pool.submit(calls.wait_for, shm_url, "never")
        shm.take("began", "never", int, timeout=60)
        raise ZeroDivisionError
    assert isinstance(later.exception(0), ts.RemoteError)
    assert shm.count(REST) == 0


# Tasks, and how many workers are killed.
KILLS = [(3_000, 5), (10_000, 20)]


@pytest.mark.parametrize(("tasks", "kills"), KILLS)
def test_of_killed_workers_no_task_is_lost(shm, shm_url, tasks, kills, eventually):
    """K2: whoever is killed is replaced, and what it was doing is done again."""
    with Pool(shm_url, workers=2) as pool:
        results = pool.map(calls.double, range(tasks), as_completed=True)
        every = tasks // kills
        done = []
        for number, result in enumerate(results):
            done.append(result)
            if number % every == every // 2:
                eventually(lambda: len(pool.pids()) == 2)  # the one before was replaced
                os.kill(pool.pids()[number % 2], signal.SIGKILL)
        assert sorted(done) == [2 * n for n in range(tasks)]
        eventually(lambda: len(pool.pids()) == 2)
    assert shm.count(REST) == 0


def test_a_pool_whose_mark_was_taken_for_that_of_a_dead_program_makes_another(shm, shm_url):
    thief = shm.take_future("tupelo.pool", str)
    with Pool(shm_url, workers=1) as pool:
        assert pool.submit(calls.double, 2).result(timeout=60) == 4
        assert thief.result(timeout=60)[0] == "tupelo.pool"
    assert shm.count(REST) == 0


@in_one_attempt
def test_the_mark_of_a_pool_that_lives_long_stays(shm, shm_url, monkeypatch):
    """Who cleans up after dead programs would take what is there of this one for theirs."""
    monkeypatch.setattr("tupelo.tasks.local.A_WEEK_S", 0.2)
    with Pool(shm_url, workers=1), pytest.raises(ts.Timeout):
        shm.claim("tupelo.pool", str, timeout=0.7)  # beyond what it lasts unless it is renewed
    assert shm.count(REST) == 0


def test_a_worker_that_is_stopped_loses_its_task_to_another(shm, shm_url, eventually):
    """K2, K3: silence for longer than the time to live; the late answer is refused."""
    with Pool(shm_url, workers=2, ttl=0.3) as pool:
        later = pool.submit(calls.kill_or_wait, shm_url)
        _, pid = shm.take("began", int, timeout=60)
        # Before, it may be inside of a lock of the space, which grows for its first who waits.
        eventually(lambda: waiting(shm, "str") == 1)
        os.kill(pid, signal.SIGSTOP)
        _, other = shm.take("began", int, timeout=60)
        assert other != pid
        os.kill(pid, signal.SIGCONT)
        # One for each, and for those who have the task when a claim is lost once more.
        shm.put_all([("go on",)] * 10)
        result = later.result(60)
    assert result in {pid, other, *(begun for _, begun in shm.take_all("began", int))}
    shm.take_all("go on")
    assert shm.count(REST) == 0


def test_a_task_that_takes_too_long_is_ended_and_says_where_it_was(shm, shm_url):
    with Pool(shm_url, workers=1, timeout=0.3, retries=1) as pool:
        late = pool.submit(calls.sleep_for_ever)
        assert pool.submit(calls.double, 2).result(60) == 4
        error = late.exception(60)
    assert error.kind == "builtins.TimeoutError"
    assert isinstance(error.__cause__, TimeoutError)
    assert error.attempts == 2
    assert "in sleep_for_ever" in str(error)
    assert "the task ran for longer than 0.3 s" in str(error)
    assert shm.count(REST) == 0


def test_a_task_that_lets_no_other_thread_run_is_ended_too(shm, shm_url, capfd):
    """A call of C code that keeps the interpreter to itself."""
    with Pool(shm_url, workers=1, timeout=0.2) as pool:
        error = pool.submit(calls.hold_the_interpreter).exception(60)
    assert "3 workers were killed, crashed or were stopped" in str(error)
    assert "hold_the_interpreter" in capfd.readouterr().err
    assert shm.count(REST) == 0


def test_tasks_that_are_in_time_are_not_disturbed(shm_url):
    # All of them together take longer than one may.
    with Pool(shm_url, workers=1, timeout=2) as pool:
        assert list(pool.map(calls.double_slowly, range(60))) == [2 * n for n in range(60)]
        assert list(pool.map(calls.double, range(3000))) == [2 * n for n in range(3000)]


@pytest.mark.parametrize("when_full", ["error", "wait"])
def test_a_full_space_only_slows_it_down(new_url, when_full):
    """B1: tasks wait for room, and answers too; room comes with the answers that are taken."""
    url = new_url("shm")
    space = ts.connect(url, tuples_max=40, when_full=when_full)
    with space, Pool(url, workers=2) as pool:
        assert list(pool.map(calls.double, range(1000))) == [2 * n for n in range(1000)]
        assert space.stat()["tuples"] <= 40


@pytest.mark.parametrize("when_full", ["error", "wait", "drop-oldest"])
@pytest.mark.parametrize("scheme", ["mem", "shm"])
def test_a_result_that_is_larger_than_the_space_is_a_failure(new_url, scheme, when_full):
    url = new_url(scheme)
    with ts.connect(url, size="2M", when_full=when_full), Pool(url, workers=2, retries=2) as pool:
        first, error, last = pool.map(bytes, [10, 4 << 20, 20], return_exceptions=True)
        assert (len(first), len(last)) == (10, 20)
        (failure,) = pool.failures
        assert failure.error is error
        assert (failure.attempts, failure.error.kind) == (1, "tupelo.SpaceFull")
        assert "over the 2097152 that the space may hold" in str(failure.error)


def test_tasks_that_their_space_has_dropped_are_not_waited_for(shm_url):
    space = ts.connect(shm_url, tuples_max=10, when_full="drop-oldest")
    with space, Pool(shm_url, workers=1) as pool:
        first = pool.submit(calls.wait_for, shm_url, "slow")
        space.take("began", "slow", int, timeout=60)
        results = pool.map(calls.double, range(100))
        space.put("go on", "slow")
        with pytest.raises(ts.RemoteError, match="tasks and their answers are not in the space"):
            list(results)
        assert first.result(60) == "slow"


def test_a_space_without_any_room_is_refused(new_url):
    url = new_url("mem")
    with ts.connect(url, tuples_max=1) as space:
        space.put("full")
        with Pool(url, workers=1) as pool:
            with pytest.raises(ts.SpaceFull):
                pool.map(calls.double, [1])
            space.take("full")


@pytest.mark.parametrize("when_full", ["error", "wait"])
@pytest.mark.parametrize("scheme", ["mem", "shm"])
def test_a_pool_ends_well_in_a_space_that_has_no_room_to_tell_its_workers(
    new_url, scheme, when_full
):
    url = new_url(scheme)
    with ts.connect(url, tuples_max=9, when_full=when_full) as space:
        with Pool(url, workers=2) as pool:
            assert list(pool.map(calls.double, [1, 2])) == [2, 4]
            with pytest.raises(ts.SpaceFull):
                while True:
                    space.put("in the way", timeout=0)
        assert space.count("in the way") == space.stat()["tuples"]


@pytest.mark.parametrize("when_full", ["error", "wait"])
def test_workers_that_can_not_start_end_the_pool_also_in_a_full_space(tmp_path, shm_url, when_full):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from tupelo.batteries import Pool\n"
        "if __name__ != '__main__':\n"
        "    raise RuntimeError('not here')\n"
        "with Pool(sys.argv[1], workers=2) as pool:\n"
        "    list(pool.map(abs, range(1000)))\n",
        encoding="utf-8",
    )
    with ts.connect(shm_url, tuples_max=9, when_full=when_full):
        run = subprocess.run(
            [sys.executable, program, shm_url],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert run.returncode == 1
    assert "before it was ready" in run.stderr


@pytest.mark.parametrize(
    "work", ["print(list(pool.map(abs, [1])))", "task = pool.submit(abs, 1)\nprint(task.result())"]
)
def test_workers_that_can_not_start_end_the_pool_with_the_reason(tmp_path, shm_url, work):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, sys\n"
        "from tupelo.batteries import Pool\n"
        "if __name__ != '__main__':\n"
        "    raise RuntimeError('not here')\n"
        # Two might print their reasons into each other.
        "with Pool(sys.argv[1], workers=1) as pool:\n"
        f"    {work}\n",
        encoding="utf-8",
    )
    ts.connect(shm_url).close()
    run = subprocess.run(
        [sys.executable, program, shm_url], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 1
    assert "RuntimeError: not here" in run.stderr, run.stderr
    assert "before it was ready" in run.stderr


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"workers": 0}, ValueError, "workers is 0: give a number from 1 to 4096"),
        ({"workers": "2"}, TypeError, "workers has the type str"),
        ({"retries": -1}, ValueError, "retries is -1"),
        ({"timeout": 0}, ValueError, "timeout is 0"),
        ({"timeout": -1}, ValueError, "timeout is -1"),
        ({"ttl": 0}, ValueError, "ttl is 0"),
        ({"ttl": None}, TypeError, "ttl has the type NoneType"),
        ({"timeout": "x"}, TypeError, "timeout has the type str"),
    ],
)
@pytest.mark.parametrize("face", [Pool, AioPool])
def test_arguments_that_make_no_sense_are_refused(face, options, kind, message):
    with pytest.raises(kind, match=message):
        face("mem://never", **options)


def test_a_strict_pool_sends_no_objects(space):
    with Pool(space.url, workers=1, objects="strict") as pool:
        assert list(pool.map(calls.double, [1])) == [2]
        with pytest.raises(ts.NotEncodable, match=r"strict"):
            pool.map(calls.double, [{1}])
        with pytest.raises(ts.NotEncodable, match="partial"):
            pool.submit(partial(calls.double, 1))
        error = pool.submit(calls.a_set).exception(60)
        assert "a set, which this space refuses" in str(error)
    with pytest.raises(ValueError, match="objects is 'some'"), Pool(space.url, objects="some"):
        pass


def test_threads_can_not_be_timed(new_url):
    with pytest.raises(ValueError, match="nothing stops a thread: use shm://"):
        with Pool(new_url("mem"), timeout=1):
            pass


def test_use_outside_of_the_block_is_refused(space):
    pool = Pool(space.url, workers=1)
    with pytest.raises(RuntimeError, match="inside of its block"):
        pool.submit(calls.double, 1)
    with pool:
        with pytest.raises(TypeError, match="function is a lambda"):
            pool.map(lambda x: x, [1])
        with pytest.raises(TypeError, match="function has the type int"):
            pool.submit(7)
        with pytest.raises(TypeError, match="give an iterable"):
            pool.map(calls.double)
        with pytest.raises(ts.NotEncodable, match="generator"):
            list(pool.map(calls.double, [calls.unsendable()]))
    with pytest.raises(RuntimeError, match="started already"), pool:
        pass


def test_asyncio_has_the_same(space):
    async def main():
        async with AioPool(space.url, workers=2, retries=1) as pool:
            doubled = [result async for result in pool.map(calls.double, range(1000))]
            assert doubled == [2 * n for n in range(1000)]
            one, other = await asyncio.gather(
                pool.submit(calls.double, 1), pool.submit(calls.double, "x")
            )
            assert (one, other) == (2, "xx")
            with pytest.raises(ts.RemoteError, match="attempt 2 of 2"):
                await pool.submit(calls.fail)
            halves = pool.map(
                calls.half_of_even, range(4), as_completed=True, return_exceptions=True
            )
            kinds = [type(half).__name__ async for half in halves]
            assert sorted(kinds) == ["RemoteError", "RemoteError", "int", "int"]
            assert sorted(failure.args for failure in pool.failures) == [(1,), (3,)]
            endless = pool.map(calls.double, itertools.count())
            assert [await anext(endless) for _ in range(3)] == [0, 2, 4]
            await endless.aclose()

    asyncio.run(main())
    assert space.count(REST) == 0


def test_a_task_of_asyncio_that_is_cancelled_ends_its_pool(shm, shm_url):
    async def main():
        async with AioPool(shm_url, workers=1) as pool:
            await pool.submit(calls.wait_for, shm_url, "never")

    async def cancelled():
        task = asyncio.create_task(main())
        await asyncio.to_thread(shm.take, "began", "never", int, timeout=60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert shm.count(REST) == 0


class Screen(list):
    """What a bar is drawn on."""

    def write(self, text):
        self.append(text)

    def flush(self):
        pass

    def isatty(self):
        return True


def test_progress_is_shown_on_a_terminal_only(capsys, monkeypatch):
    with Pool("mem://progress", workers=1, progress=True) as pool:
        assert list(pool.map(calls.double, range(10))) == [2 * n for n in range(10)]
    assert capsys.readouterr().err == ""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with Pool("mem://progress", workers=1, progress=True) as pool:
        assert list(pool.map(calls.double, range(10))) == [2 * n for n in range(10)]
        list(pool.map(calls.double, (n for n in range(3))))
    shown = "".join(screen)
    assert "double  " + "█" * 32 + "  10 of 10\n" in shown
    assert "double  3" in shown
    assert Bar("x", 3, screen)


def test_a_result_that_can_not_be_stored_is_called_the_result(space):
    """And not by its place in the answer, which nobody knows."""
    with Pool(space.url, workers=1) as pool:
        for function, place in (
            (calls.unsendable, "the result is"),
            (calls.unsendable_within, r"the result\[1\]\['a'\] is"),
        ):
            with pytest.raises(ts.RemoteError, match=f"TUP-004: {place} a generator"):
                pool.submit(function).result(60)


def test_what_is_no_exception_fails_a_task_and_not_its_worker(space):
    with Pool(space.url, workers=2) as pool:
        futures = [pool.submit(calls.give_up) for _ in range(5)]
        for future in futures:
            with pytest.raises(ts.RemoteError, match="CancelledError"):
                future.result(60)
        assert pool.submit(math.sqrt, 4.0).result(60) == 2.0


def test_a_thread_that_is_interrupted_breaks_its_pool_and_nobody_waits_for_ever():
    interrupted = pytest.raises(ts.RemoteError, match="KeyboardInterrupt")
    with interrupted, Pool("mem://interrupted", workers=2) as pool:
        pool.submit(calls.interrupt).result(60)


def test_a_pool_that_can_not_clean_up_ends_its_workers_and_its_futures(shm_url, monkeypatch):
    def refuse(*_):
        raise ts.SpaceFull

    with pytest.raises(ts.SpaceFull), Pool(shm_url, workers=1) as pool:
        future = pool.submit(calls.wait_if, shm_url, "slow")
        monkeypatch.setattr("tupelo.tasks.local.discard_queue", refuse)
        message = "the user's own"
        raise ValueError(message)
    with pytest.raises(ts.RemoteError, match="ended before this task"):
        future.result(60)


def test_who_waits_for_a_task_learns_that_it_was_withdrawn(shm_url):
    with Pool(shm_url, workers=1) as pool:
        pool.submit(calls.wait_if, shm_url, "slow")
        ts.connect(shm_url).take("began", "slow", int)
        withdrawn = pool.submit(math.sqrt, 4.0)
        assert withdrawn.cancel()
        assert wait([withdrawn], timeout=60).done == {withdrawn}
        ts.connect(shm_url).put("go on", "slow")


def test_a_failed_task_with_an_array_at_the_head_of_a_tuple_is_told_and_the_next_one_is_done(space):
    numbers = np.zeros(3)
    with Pool(space.url, workers=1) as pool:
        failed = pool.submit(calls.fail, (numbers, 1, 2, 3))
        with pytest.raises(ts.RemoteError):
            failed.result(60)
        assert pool.submit(math.sqrt, 4.0).result(60) == 2.0


def test_a_callback_that_ends_its_thread_keeps_no_other_answer_back(space):
    with Pool(space.url, workers=1) as pool:
        first = pool.submit(math.sqrt, 4.0)
        first.add_done_callback(lambda _: sys.exit())
        assert first.result(60) == 2.0
        assert pool.submit(math.sqrt, 9.0).result(60) == 3.0


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_a_worker_that_ends_well_without_being_told_to_is_replaced(shm_url, end):
    with Pool(shm_url, workers=1, retries=0) as pool:
        (pid,) = pool.pids()
        if end == "kill":
            os.kill(pid, signal.SIGTERM)
        else:
            with pytest.raises(ts.RemoteError, match="workers"):
                pool.submit(os._exit, 0).result(60)
        assert pool.submit(math.sqrt, 4.0).result(60) == 2.0
        assert pool.pids() != [pid]


CHILDREN_OF_NOBODY = """
import math, signal, sys
import tupelo as ts
from tupelo.batteries import Pool
if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with ts.spawn(print, "spawned"):
        pass
    with Pool(sys.argv[1], workers=1) as pool:
        signal.pidfd_send_signal(__import__("os").pidfd_open(pool.pids()[0]), signal.SIGKILL)
        print(pool.submit(math.sqrt, 4.0).result(60))
"""


def output_of(program, tmp_path, url):
    """Run a program of its own to its good end; return what it printed."""
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, str(tmp_path / "program.py"), url]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_workers_are_replaced_where_the_system_forgets_how_children_ended(shm_url, tmp_path):
    assert output_of(CHILDREN_OF_NOBODY, tmp_path, shm_url) == "spawned\n2.0\n"


WITHOUT_DESCRIPTOR = """
import math, sys
from tupelo.batteries import Pool
class Nothing:
    def write(self, text): return len(text)
    def flush(self): pass
sys.stderr = Nothing()
if __name__ == "__main__":
    with Pool(sys.argv[1], workers=1, timeout=60) as pool:
        print(pool.submit(math.sqrt, 4.0).result(60))
"""


def test_a_time_limit_needs_no_descriptor_for_errors(shm_url, tmp_path):
    assert output_of(WITHOUT_DESCRIPTOR, tmp_path, shm_url) == "2.0\n"


def test_a_result_whose_own_code_fails_while_it_is_stored_fails_alone(space):
    with Pool(space.url, workers=1) as pool:
        failed = pool.submit(calls.unreadable)
        with pytest.raises(ts.RemoteError, match="not now"):
            failed.result(60)
        assert pool.submit(math.sqrt, 4.0).result(60) == 2.0
