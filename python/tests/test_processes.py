"""Spaces between processes: fork, spawn, and processes that are killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import tupelo as ts
from tupelo import REST


def in_a_forked_child(work):
    """Run `work` in the child of a fork; return whether it succeeded."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001
            import traceback  # noqa: PLC0415

            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_the_child_of_a_fork_uses_the_same_space(shm):
    shm.put("job", 1)

    def child():
        assert shm.take("job", int) == ("job", 1)
        shm.put("from", os.getpid())
        assert {"pid": os.getpid(), "alive": True} in shm.stat()["processes"]

    assert in_a_forked_child(child)
    assert shm.take("from", int)[1] != os.getpid()
    shm.put("job", 2)
    assert shm.take("job", int) == ("job", 2)


def test_parent_and_child_of_a_fork_take_turns(shm):
    def child():
        for number in range(200):
            _, n = shm.take("ping", int, timeout=60)
            assert n == number
            shm.put("pong", n)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(in_a_forked_child, child)
        for number in range(200):
            shm.put("ping", number)
            assert shm.take("pong", int, timeout=60) == ("pong", number)
        assert done.result()


def test_a_space_in_private_memory_says_so_in_the_child_of_a_fork(new_url):
    url = new_url("mem")
    with ts.connect(url) as space:
        space.put("job", 1)

        def child():
            with pytest.raises(ts.SpaceClosed, match="stayed in the process that this one was"):
                space.take("job", int)
            with pytest.raises(ts.SpaceNotFound):
                ts.connect(url, create=False)
            with ts.connect(url) as own:
                assert own.count(REST) == 0

        assert in_a_forked_child(child)
        assert space.take("job", int) == ("job", 1)


def test_a_name_in_private_memory_is_free_in_the_child_of_a_fork(new_url):
    """Also that of a space that is there still, and that nobody is connected to."""
    url = new_url("mem")
    ts.connect(url).put("parents", 1)

    def child():
        with pytest.raises(ts.SpaceNotFound):
            ts.connect(url, create=False)
        with ts.connect(url) as own:
            own.put("childs", 2)
            assert own.take_all(REST) == [("childs", 2)]

    assert in_a_forked_child(child)
    with ts.connect(url) as space:
        assert space.take_all(REST) == [("parents", 1)]


def square(space):
    for _, n in space.consume("square", int):
        space.put("squared", n, n * n)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_can_pass_a_space_to_its_processes(shm, method):
    context = multiprocessing.get_context(method)
    process = context.Process(target=square, args=(shm,))
    process.start()
    shm.put_all(("square", n) for n in range(100))
    shm.finish("square", int)
    assert len(shm.take_many("squared", int, int, n=100, timeout=60)) == 100
    process.join()
    assert process.exitcode == 0


WAITS = """
import sys
import tupelo as ts

ts.connect(sys.argv[1], create=False).take("job", int)
"""


def test_a_killed_waiter_takes_no_tuple_along(shm, shm_url, eventually):
    waiting = [subprocess.Popen([sys.executable, "-c", WAITS, shm_url]) for _ in range(3)]
    eventually(lambda: shm.stat()["waiters"] == 3)
    for process in waiting:
        process.send_signal(signal.SIGKILL)
    assert [process.wait(60) for process in waiting] == [-9, -9, -9]
    shm.put("job", 1)
    assert shm.take("job", int, timeout=60) == ("job", 1)  # L5, C3
    eventually(lambda: shm.stat()["waiters"] == 0)


WORKS = """
import sys
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
while True:
    _, n = space.take("job", int)
    space.put("job", n)
"""


def test_a_killed_worker_leaves_the_space_whole(shm, shm_url, eventually):
    """Each kill costs at most the tuple in the hands of the killed; the others go on."""
    kills = 10
    shm.put_all(("job", n) for n in range(100))
    for _ in range(kills):
        worker = subprocess.Popen([sys.executable, "-c", WORKS, shm_url])
        takes = shm.stat()["shapes"][0]["takes"]
        eventually(lambda: shm.stat()["shapes"][0]["takes"] > takes + 100)  # noqa: B023
        worker.kill()
        worker.wait(60)
    left = shm.take_all("job", int)
    assert len(set(left)) == len(left) >= 100 - kills  # C1, C3
    shm.put("job", -1)
    assert shm.take("job", int, timeout=60) == ("job", -1)


def test_threads_share_a_space(space):
    def work(number):
        for n in range(300):
            space.put("ping", number, n)
            assert space.take("ping", number, int) == ("ping", number, n)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert space.count(REST) == 0


def test_other_threads_run_while_one_waits(space, eventually):
    with ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(space.take, "never", timeout=1000)
        eventually(lambda: space.stat()["waiters"] == 1)
        assert sum(range(100_000)) == 4_999_950_000
        space.put("never")
        blocked.result()


PUTS_AND_IS_KILLED = """
import os
import signal
import sys
import tupelo as ts

space = ts.connect(sys.argv[1])
space.put("left", 1)
space.put_all([("left", 2), ("left", 3)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_put_that_returned_is_stored_though_its_process_is_killed_at_once_c2(shm, shm_url):
    killed = subprocess.run([sys.executable, "-c", PUTS_AND_IS_KILLED, shm_url], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert shm.take_all("left", int) == [("left", 1), ("left", 2), ("left", 3)]


PUTS_AND_ENDS = """
import sys
import tupelo as ts

ts.connect(sys.argv[1]).put("left", 1)
"""


@pytest.mark.parametrize("scheme", ["shm", "mem"])
def test_a_shm_space_outlives_the_processes_that_use_it_and_a_mem_space_is_its_process_s_own_c4(
    scheme, shm_url
):
    url = f"{scheme}{shm_url.removeprefix('shm')}"
    subprocess.run([sys.executable, "-c", PUTS_AND_ENDS, url], check=True)
    with ts.connect(url) as space:
        assert space.take_all(REST) == ([("left", 1)] if scheme == "shm" else [])
