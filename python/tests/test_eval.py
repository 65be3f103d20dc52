"""eval: tuples that appear when others have computed them."""

import asyncio
import gc
import math
import os
import signal
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import tupelo as ts
from tupelo import REST, aio
from tupelo.tasks import evaluation
from tupelo.tasks.crew import Processes, Threads, processors
from tupelo.tasks.local import LocalPool

sys.path.insert(0, str(Path(__file__).parent))
import calls

WORKERS = "tupelo.dead", "tupelo.task", "tupelo.answer", "tupelo.end"


def tuples_of_tasks(space):
    return [found for word in WORKERS for found in space.read_all(word, REST)]


def test_the_tuple_appears_and_its_future_is_the_tuple(space):
    later = space.eval("sqrt", 2.0, ts.call(math.sqrt, 2.0))
    assert space.take("sqrt", 2.0, float, timeout=60) == ("sqrt", 2.0, math.sqrt(2.0))
    assert later.result(60) == ("sqrt", 2.0, math.sqrt(2.0))
    assert tuples_of_tasks(space) == []


def test_all_active_fields_are_computed(space):
    later = space.eval(ts.call(calls.double, 4), "plain", ts.call(calls.double, x="ab"))
    assert later.result(60) == (8, "plain", "abab")
    assert space.count(8, "plain", "abab") == 1


def test_it_is_computed_by_threads_or_by_other_processes(shm):
    assert shm.eval("by", ts.call(calls.pid), on="threads").result(60) == ("by", os.getpid())
    assert shm.eval("by", ts.call(calls.pid), on="processes").result(60) != ("by", os.getpid())
    assert shm.eval("by", ts.call(calls.pid)).result(60) != ("by", os.getpid())


def test_many_are_computed_each_once(space):
    numbers = range(200)
    futures = [space.eval("double", n, ts.call(calls.double, n)) for n in numbers]
    assert [future.result(60) for future in futures] == [("double", n, 2 * n) for n in numbers]
    assert sorted(space.take_all("double", int, int)) == [("double", n, 2 * n) for n in numbers]


def test_an_exception_comes_back_with_its_traceback_as_text(space):
    later = space.eval("never", ts.call(calls.fail, "division by nought"))
    with pytest.raises(ts.RemoteError, match="TUP-011") as caught:
        later.result(60)
    error = caught.value
    assert error.code == "TUP-011"
    assert error.kind == "builtins.ZeroDivisionError"
    assert error.attempts == 1
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert error.__cause__.args == ("division by nought",)
    message = str(error)
    assert message.startswith("TUP-011: eval('never', fail('division by nought')) failed on ")
    assert 'calls.py", line ' in message
    assert "ZeroDivisionError: division by nought" in message
    assert "serving.py" not in message  # of the worker itself, nothing
    if space.url.startswith("mem://"):  # no other process can look there
        queue = space.read("tupelo.dead", str, REST, timeout=0)[1]
        look = f"space.read_all('tupelo.dead', '{queue}', ts.REST)"
        assert len(space.read_all("tupelo.dead", queue, REST)) == 1
    else:
        look = f"tupelo read {space.url} tupelo.dead "
    assert f"look:  {look}" in error.hint
    assert space.count("never", REST) == 0


def test_a_failed_call_is_kept_as_a_dead_letter(space):
    later = space.eval("never", ts.call(calls.fail))
    assert later.exception(60) is not None
    ((_, _, function, arguments, _, _, error),) = space.take_all(ts.like("tupelo.dead", REST))
    assert function == "tupelo.eval"
    assert arguments == ("never", ("tupelo.call", "calls:fail", (), {}))
    assert error["attempts"] == 1
    assert error["type"] == "builtins.ZeroDivisionError"


def test_an_exception_of_a_class_of_its_own_needs_no_pickle(space):
    error = space.eval(ts.call(calls.fail_in_own_way)).exception(60)
    assert error.kind == "calls.OwnError"
    assert error.__cause__ is None
    assert "OwnError: 1 and 2" in str(error)


def test_a_call_that_exits_has_failed(space):
    error = space.eval(ts.call(calls.leave, 3)).exception(60)
    assert error.kind == "builtins.SystemExit"
    assert space.eval(ts.call(calls.double, 1)).result(60) == (2,)


def test_a_result_that_can_not_be_stored_is_a_failure(space):
    error = space.eval("x", ts.call(calls.unstorable)).exception(60)
    assert error.kind == "tupelo.NotEncodable"
    assert "TUP-004: field 1 is a bytearray" in str(error)  # of the tuple, not of the answer
    assert space.count("x", REST) == 0
    error = space.eval(ts.call(calls.unstorable), ts.call(calls.unstorable_within)).exception(60)
    assert "TUP-004: field 0 is a bytearray" in str(error)
    error = space.eval("x", 7, ts.call(calls.unstorable_within)).exception(60)
    assert "TUP-004: field 2[1]['a'] is a bytearray" in str(error)


def test_a_call_whose_worker_is_killed_is_computed_again_at_once(shm, shm_url):
    shm.put("kill", "once")  # K2
    later = shm.eval("done", ts.call(calls.kill_first, shm_url, "once"))
    assert later.result(60) == ("done", "survived")
    pids = {found[1] for found in shm.take_all("began", int, "once")}
    assert len(pids) == 2
    assert len(shm.take_all("done", str)) == 1


def test_a_call_that_kills_every_worker_fails_at_last(shm, shm_url):
    shm.put_all([("kill", "always")] * 10)
    error = shm.eval("done", ts.call(calls.kill_first, shm_url, "always")).exception(60)
    assert "3 workers were killed, crashed or were stopped" in str(error)
    assert error.attempts == 3
    assert len(shm.take_all("began", int, "always")) == 3
    assert shm.count("done", REST) == 0


def test_what_has_not_begun_can_be_cancelled(shm, shm_url):
    first = shm.eval(ts.call(calls.wait_for, shm_url, "first"), on="threads")
    shm.take("began", "first", int, timeout=60)
    others = [shm.eval("n", ts.call(calls.double, n), on="threads") for n in range(50)]
    blocked = [
        shm.eval(ts.call(calls.wait_for, shm_url, "more"), on="threads")
        for _ in range(len(os.sched_getaffinity(0)))
    ]
    assert not first.cancel()
    cancelled = [future for future in blocked if future.cancel()]
    shm.put_all([("go on", "first"), *[("go on", "more")] * len(os.sched_getaffinity(0))])
    assert first.result(60) == ("first",)
    assert [future.result(60) for future in others] == [("n", 2 * n) for n in range(50)]
    for future in cancelled:
        assert future.cancelled()
        assert future.cancel()
    assert not first.cancel()


def test_a_partial_is_sent_as_an_object_where_that_is_allowed(shm, shm_url):
    assert shm.eval("p", ts.call(partial(math.pow, 2.0), 3.0)).result(60) == ("p", 8.0)
    with ts.connect(shm_url, objects="strict") as strict:
        with pytest.raises(ts.NotEncodable, match="partial"):
            strict.eval("p", ts.call(partial(math.pow, 2.0), 3.0))
        assert strict.eval("p", ts.call(math.pow, 2.0, 3.0)).result(60) == ("p", 8.0)


def local_function():
    def inside():
        return 1

    return inside


@pytest.mark.parametrize(
    ("arguments", "keywords", "kind", "message"),
    [
        (("x", 1), {}, TypeError, "eval needs a field that is a tupelo.call"),
        ((), {}, TypeError, "eval needs a field that is a tupelo.call"),
        ((ts.call(lambda: 1),), {}, TypeError, "function is a lambda: workers find a function by"),
        ((ts.call(local_function()),), {}, TypeError, "inside, inside of another function"),
        ((ts.call(math.sqrt, 2.0),), {"on": "moon"}, ValueError, "on is 'moon': give 'processes'"),
        ((ts.call(math.sqrt, 2.0),), {"on": 7}, TypeError, "on is of the type int"),
        ((ts.call(math.sqrt, 2.0),), {"at": 7}, TypeError, 'eval.. has no keyword argument "at"'),
        ((ts.call(calls.double, calls.unsendable()),), {}, ts.NotEncodable, "generator"),
    ],
)
def test_what_makes_no_sense_is_refused(space, arguments, keywords, kind, message):
    with pytest.raises(kind, match=message):
        space.eval(*arguments, **keywords)
    assert tuples_of_tasks(space) == []


@pytest.mark.parametrize("on", ["processes", "workers"])
def test_private_memory_has_no_other_processes(new_url, on):
    with ts.connect(new_url("mem")) as space:
        with pytest.raises(ValueError, match=r"no other process sees mem://.*: use shm://"):
            space.eval("x", ts.call(math.sqrt, 2.0), on=on)


def test_a_call_is_no_value(space):
    with pytest.raises(ts.NotEncodable, match=r"computed by space\.eval"):
        space.put("x", ts.call(math.sqrt, 2.0))
    with pytest.raises(TypeError, match="function has the type int: give a function"):
        ts.call(7)
    assert repr(ts.call(math.sqrt, 2.0)) == "<call sqrt(2.0)>"


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[2])
import calls
import tupelo as ts

if __name__ == "__main__":
    with ts.connect(sys.argv[1], create=False) as space:
        {what}
"""


def program(tmp_path, what):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(what=what), encoding="utf-8")
    return path


def start(path, *words):
    return subprocess.Popen(
        [sys.executable, path, *words, Path(__file__).parent], stderr=subprocess.PIPE, text=True
    )


def test_a_program_that_ends_waits_for_what_it_has_begun(shm, shm_url, tmp_path):
    what = 'space.eval("late", ts.call(calls.wait_for, sys.argv[1], "end"))'
    child = start(program(tmp_path, what), shm_url)
    shm.take("began", "end", int, timeout=60)
    assert shm.count("late", str) == 0
    shm.put("go on", "end")
    assert child.communicate(timeout=60)[1] == ""
    assert child.returncode == 0
    assert shm.take_all(REST) == [("late", "end")]


def test_no_worker_is_left_behind_by_a_program_that_is_killed(shm, shm_url, tmp_path, eventually):
    what = 'space.eval(ts.call(calls.wait_for, sys.argv[1], "killed")).result()'
    child = start(program(tmp_path, what), shm_url)
    _, _, worker = shm.take("began", "killed", int, timeout=60)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=60)

    def is_gone():
        alive = {process["pid"] for process in shm.stat()["processes"] if process["alive"]}
        return worker not in alive and alive == {os.getpid()}

    eventually(is_gone)
    # What it has left is removed by the next one that evaluates something here.
    shm.read("tupelo.task", REST, timeout=60)
    assert shm.eval(ts.call(calls.double, 1)).result(60) == (2,)
    shm.wait_none("tupelo.task", REST, timeout=0)


@pytest.mark.usefixtures("shm")
def test_a_script_without_its_main_guard_is_told_what_is_missing(shm_url, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import sys, math\nimport tupelo as ts\n"
        "print(ts.connect(sys.argv[1]).eval(ts.call(math.sqrt, 4.0)).result())\n",
        encoding="utf-8",
    )
    child = start(path, shm_url)
    error = child.communicate(timeout=60)[1]
    assert child.returncode == 1
    assert 'needs `if __name__ == "__main__":`' in error


def test_threads_may_evaluate_at_once(space):
    with ThreadPoolExecutor(8) as threads:
        done = threads.map(
            lambda n: space.eval("n", ts.call(calls.double, n)).result(60), range(64)
        )
        assert list(done) == [("n", 2 * n) for n in range(64)]


def test_asyncio_awaits_the_tuple_and_withdraws_what_is_cancelled(url):
    async def main():
        async with aio.connect(url) as space:
            assert await space.eval("d", ts.call(calls.double, 2)) == ("d", 4)
            assert await space.take("d", int) == ("d", 4)
            with pytest.raises(ts.RemoteError):
                await space.eval("d", ts.call(calls.fail))
            if url.startswith("mem"):
                return
            unserved = asyncio.create_task(space.eval(ts.call(calls.double, 1), on="workers"))
            await space.read("tupelo.task", "calls:double", REST)
            unserved.cancel()
            with pytest.raises(asyncio.CancelledError):
                await unserved
            assert await space.count("tupelo.task", REST) == 0

    asyncio.run(main())


def test_a_tuple_that_can_not_be_stored_is_told_and_disturbs_no_other(space):
    fine = space.eval("fine", ts.call(math.sqrt, 4.0))
    with pytest.raises(ts.RemoteError, match="64 fields"):
        space.eval(*range(64), ts.call(math.sqrt, 4.0)).result(60)
    assert fine.result(60) == ("fine", 2.0)
    # A tuple in a tuple by itself is as likely to be a tuple that was not unpacked.
    with pytest.raises(ts.RemoteError, match=r"put\(\*"):
        space.eval(ts.call(divmod, 7, 2)).result(60)
    assert space.count(tuple) == 0
    assert space.eval("again", ts.call(math.sqrt, 9.0)).result(60) == ("again", 3.0)


def test_who_waits_for_room_for_a_pool_holds_up_no_other_space(new_url):
    full = ts.connect(new_url("shm"), tuples_max=10, when_full="wait")
    full.put_all([("x",)] * 10)
    waiting = threading.Thread(target=lambda: full.eval("r", ts.call(math.sqrt, 4.0)))
    waiting.start()
    with ts.connect(new_url("mem")) as other:
        assert other.eval("r", ts.call(math.sqrt, 9.0)).result(60) == ("r", 3.0)
    assert waiting.is_alive()
    # Its pool has a mark, its task is a tuple, and so is what it computes.
    full.take_all("x")
    waiting.join(60)
    assert not waiting.is_alive()
    assert full.take("r", float, timeout=60) == ("r", 2.0)


def test_a_task_waits_for_the_thread_that_makes_the_pool(space, monkeypatch):
    """As that does not wait for room, it is ready in a moment."""
    is_making, go_on = threading.Event(), threading.Event()

    def make_slowly(*arguments, **options):
        is_making.set()
        go_on.wait(60)
        return LocalPool(*arguments, **options)

    async def main():
        async with aio.connect(space.url) as shared:
            return await shared.eval("b", ts.call(math.sqrt, 9.0))

    monkeypatch.setattr("tupelo.tasks.evaluation.LocalPool", make_slowly)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(space.eval, "a", ts.call(math.sqrt, 4.0))
        assert is_making.wait(60)
        timer = threading.Timer(0.05, go_on.set)
        timer.start()
        assert asyncio.run(main()) == ("b", 3.0)
        timer.join()
        assert first.result().result(60) == ("a", 2.0)


def test_threads_that_start_the_first_workers_at_once_start_one_watch_over_them(shm):
    before = set(threading.enumerate())
    together = threading.Barrier(3)
    pool = LocalPool(shm, threads=False)

    def add():
        together.wait()
        pool.crew.add(1)

    with ThreadPoolExecutor(3) as threads:
        for added in [threads.submit(add) for _ in range(3)]:
            added.result(60)
    begun = [one.name for one in threading.enumerate() if one not in before]
    pool.kill()
    assert begun.count("tupelo crew") == 1


def test_a_connection_that_has_asked_workers_is_let_go(shm_url):
    space = ts.connect(shm_url)
    space.eval("a", ts.call(math.sqrt, 4.0), on="workers").cancel()
    space.close()
    alive = weakref.ref(space)
    del space
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("scheme", ["mem", "shm"])
def test_a_space_that_is_begun_anew_has_workers_of_its_own(new_url, scheme):
    url = new_url(scheme)
    for _ in range(3):
        with ts.connect(url, fresh=True) as space:
            later = space.eval("root", ts.call(math.sqrt, 4.0))
            assert space.take("root", float, timeout=60) == ("root", 2.0)
            assert later.result(60) == ("root", 2.0)


def test_who_asked_in_a_space_that_another_took_the_place_of_is_told_c4(new_url):
    url = new_url("shm")
    with ts.connect(url) as old:
        before = old.eval("old", ts.call(calls.wait_for, url, "never"), on="threads")
        old.take("began", "never", int, timeout=60)
        with ts.connect(url, fresh=True) as new:
            assert new.eval("new", ts.call(calls.double, 5), on="threads").result(60) == ("new", 10)
            with pytest.raises(ts.SpaceRemoved):
                before.result(60)
            with pytest.raises(ts.SpaceRemoved):
                old.eval("never", ts.call(calls.double, 6), on="threads")
            assert new.take_all(REST) == [("new", 10)]


def refused(error):
    def add(*_ignored):
        raise error

    return add


@pytest.mark.skipif(processors() == 1, reason="there is one worker, and no more")
@pytest.mark.parametrize("error", [OSError("no more processes"), KeyboardInterrupt()], ids=repr)
def test_a_worker_more_that_can_not_be_started_ends_nothing(space, monkeypatch, error):
    slow = space.eval("slow", ts.call(calls.wait_for, space.url, "slow"))
    space.take("began", "slow", int, timeout=60)
    with monkeypatch.context() as patched:
        patched.setattr(Threads, "add", refused(error))
        patched.setattr(Processes, "add", refused(error))
        if isinstance(error, Exception):
            more = space.eval("more", ts.call(calls.double, 1))
        else:
            with pytest.raises(KeyboardInterrupt):
                space.eval("more", ts.call(calls.double, 1))
            assert space.count("tupelo.task", REST) == 0
            more = None
    space.put("go on", "slow")
    assert slow.result(60) == ("slow", "slow")
    assert more is None or more.result(60) == ("more", 2)


def workers():
    """Return the threads that are workers."""
    return [thread for thread in threading.enumerate() if "tupelo worker" in thread.name]


def test_workers_of_spaces_that_were_removed_end_when_others_are_started(new_url, monkeypatch):
    monkeypatch.setattr(evaluation, "NAMELESS_IDLE_S", 0)
    pids = []
    for _ in range(4):
        url = new_url("shm")
        with ts.connect(url) as space:
            pids.append(space.eval(ts.call(calls.pid)).result(60)[0])
        ts.remove(url)
    with ts.connect(new_url("shm")) as space:
        assert space.eval("last", ts.call(calls.double, 1)).result(60) == ("last", 2)
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_workers_that_can_not_be_ended_are_nobody_elses_news_and_end_later(new_url, monkeypatch):
    def refuse():
        raise ts.SpaceFull

    def evaluates():
        with ts.connect(new_url("mem")) as space:
            return space.eval(ts.call(calls.double, 2)).result(60) == (4,)

    monkeypatch.setattr(evaluation, "NAMELESS_IDLE_S", 0)
    url = new_url("mem")
    with ts.connect(url) as space:
        assert space.eval(ts.call(calls.double, 1)).result(60) == (2,)
    ts.remove(url)
    (pool,) = (pool for key, pool in evaluation._pools.items() if url in key)  # noqa: SLF001
    with monkeypatch.context() as full:
        full.setattr(pool, "kill", refuse)
        assert evaluates()
    assert evaluates()
    with pytest.raises(ts.SpaceClosed):
        pool.space.stat()


def test_workers_that_are_not_used_end_when_others_are_started(new_url, monkeypatch, eventually):
    with ts.connect(new_url("mem")) as first, ts.connect(new_url("mem")) as busy:
        assert first.eval("used", ts.call(calls.double, 1)).result(60) == ("used", 2)
        later = busy.eval("busy", ts.call(calls.wait_for, busy.url, "word"))
        busy.take("began", "word", int)
        monkeypatch.setattr(evaluation, "IDLE_S", 0)
        monkeypatch.setattr(evaluation, "NAMELESS_IDLE_S", 0)
        for _ in range(5):
            with ts.connect(new_url("mem")) as space:
                assert space.eval("x", ts.call(calls.double, 1)).result(60) == ("x", 2)
        eventually(lambda: len(workers()) == 2)  # the last one's, and that of who is busy
        busy.put("go on", "word")
        assert later.result(60) == ("busy", "word")
        assert first.eval("again", ts.call(calls.double, 2)).result(60) == ("again", 4)
        assert first.take_all(REST) == [("used", 2), ("again", 4)]
