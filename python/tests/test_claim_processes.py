"""Claims of processes that die, stop and fork: nothing is lost, nothing is done twice."""

import os
import signal
import subprocess
import sys

import pytest

import tupelo as ts
from tupelo import REST

HOLDS = """
import sys, threading
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
ttl = float(sys.argv[2])
claim = space.claim("job", int, ttl=ttl)
with claim as (_, number):
    claim.put("result", number)
    space.put("held", number)
    {work}
"""


def start(code, *words):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stderr=subprocess.PIPE, text=True
    )


def holder(shm, shm_url, ttl, work):
    """Start a process; return it when it holds the one tuple there is."""
    child = start(HOLDS.format(work=work), shm_url, ttl)
    assert shm.take("held", int, timeout=60) == ("held", 1)
    return child


def test_a_killed_holder_gives_its_tuple_back_at_once(shm, shm_url):
    shm.put("job", 1)
    child = holder(shm, shm_url, 3600, "threading.Event().wait()")
    assert shm.try_take("job", int) is None
    child.kill()
    child.communicate()
    claim = shm.claim("job", int, max_attempts=2, timeout=60)  # K2, L5
    assert claim.attempt == 2
    claim.abort("ours")
    (letter,) = shm.dead("job", int)
    assert letter.reasons == [f"process {child.pid} died", "ours"]
    assert shm.count("result", int) == 0  # K4


def test_a_blocked_claim_gets_the_tuple_of_a_holder_that_is_killed(shm, shm_url, eventually):
    shm.put("job", 1)
    first = holder(shm, shm_url, 3600, "threading.Event().wait()")
    second = start(HOLDS.format(work="pass"), shm_url, 3600)
    eventually(lambda: shm.stat()["waiters"] == 1)
    first.kill()
    first.communicate()
    assert second.communicate(timeout=60)[1] == ""
    assert sorted(shm.take_all(REST)) == [("held", 1), ("result", 1)]


def test_a_holder_keeps_its_claim_while_its_code_holds_the_interpreter(shm, shm_url):
    """A call of C for three times the ttl, which lets no other thread of Python run."""
    shm.put("job", 1)
    sleep = "import ctypes; ctypes.PyDLL(None).usleep(3_000_000)"
    child = holder(shm, shm_url, 1, sleep)
    assert shm.take("result", int, timeout=60) == ("result", 1)
    assert child.communicate(timeout=60)[1] == ""
    assert shm.count(REST) == 0


def test_a_stopped_holder_loses_its_claim_and_is_refused_later(shm, shm_url):
    shm.put("job", 1)
    child = holder(shm, shm_url, 0.3, "space.take('go on')")
    child.send_signal(signal.SIGSTOP)
    with shm.claim("job", int, timeout=60):  # K2: silence
        pass
    shm.put("go on")
    child.send_signal(signal.SIGCONT)
    error = child.communicate(timeout=60)[1]
    assert "tupelo.ClaimLost: TUP-007: your claim on ('job', 1) (ttl 0.3 s) is lost" in error
    assert child.returncode == 1
    assert shm.count(REST) == 0  # K3, K4: no result of the late one


def test_ctrl_c_in_a_block_gives_the_tuple_back(shm, shm_url):
    shm.put("job", 1)
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + HOLDS
    child = start(code.format(work="space.take('never')"), shm_url, 3600)
    assert shm.take("held", int, timeout=60) == ("held", 1)
    child.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in child.communicate(timeout=60)[1]
    assert shm.claim("job", int, timeout=60).attempt == 2


def in_a_forked_child(work):
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


@pytest.mark.parametrize("verb", ["done", "abort", "extend", "put", "__enter__"])
def test_the_child_of_a_fork_has_no_say_in_its_parents_claim(shm, verb):
    shm.put("job", 1)
    claims = [shm.claim("job", int)]

    def child():
        with pytest.raises(ValueError, match="the claim belongs to the process that this one was"):
            getattr(claims[0], verb)()
        claims.clear()  # forgotten here, which is nothing to the parent

    assert in_a_forked_child(child)
    assert shm.try_take("job", int) is None
    claims[0].done()
    shm.wait_none(REST, timeout=0)


def test_a_block_that_forks_is_ended_by_the_parent_alone(shm):
    shm.put("job", 1)
    with shm.claim("job", int, ttl=0.6) as (_, number):

        def child():
            assert number == 1

        assert in_a_forked_child(child)
        with pytest.raises(ts.Timeout):
            shm.take("job", int, timeout=1.5)
    shm.wait_none(REST, timeout=0)


def test_the_child_of_a_fork_keeps_claims_of_its_own_alive(shm):
    """The thread that renews them is not copied by a fork."""
    shm.put_all([("parents", 1), ("childs", 2)])
    with shm.claim("parents", int, ttl=0.6):

        def child():
            with shm.claim("childs", int, ttl=0.6), pytest.raises(ts.Timeout):
                shm.take("childs", int, timeout=1.5)

        assert in_a_forked_child(child)
    shm.wait_none(REST, timeout=0)


def test_a_claim_of_private_memory_stays_with_the_parent(new_url):
    with ts.connect(new_url("mem")) as space:
        space.put("job", 1)
        claim = space.claim("job", int)
        with claim:

            def child():
                with pytest.raises(ts.SpaceClosed, match="stayed in the process"):
                    claim.done()

            assert in_a_forked_child(child)
        assert space.count(REST) == 0


TASKS = 300

WORKER = """
import os, sys
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
wanted = sys.argv[2]
lost = 0
space.put("ready", wanted, os.getpid())
while True:
    claim = space.claim("task", int, ttl=0.5)
    try:
        with claim as (_, number):
            claim.put("result", number, os.getpid())
            if number == TASKS:  # the last one says: it is over
                break
            if space.try_take("hold", wanted):
                # In the middle of a task: to be killed or stopped here.
                space.put("holds", wanted, number)
                space.take("go on", wanted)
    except ts.ClaimLost:
        space.put("lost", wanted, number)
"""


def test_of_workers_that_are_killed_and_stopped_every_task_has_one_result(shm, shm_url, eventually):
    """The chaos of K1 to K5: one dies, one sleeps until its claim is lost, one goes on."""
    code = WORKER.replace("TASKS", str(TASKS))
    names = ["killed", "stopped", "lucky"]
    shm.put("hold", "killed")
    shm.put("hold", "stopped")
    workers = {name: start(code, shm_url, name) for name in names}
    for name in names:
        shm.take("ready", name, int, timeout=60)
    eventually(lambda: shm.stat()["waiters"] == len(names))
    shm.put_all(("task", number) for number in range(TASKS))

    _, _, of_killed = shm.take("holds", "killed", int, timeout=60)
    workers["killed"].kill()
    _, _, of_stopped = shm.take("holds", "stopped", int, timeout=60)
    workers["stopped"].send_signal(signal.SIGSTOP)
    shm.take("result", of_killed, int, timeout=60)
    _, _, author = shm.take("result", of_stopped, int, timeout=60)
    assert author == workers["lucky"].pid
    shm.put("go on", "stopped")
    workers["stopped"].send_signal(signal.SIGCONT)
    assert shm.take("lost", "stopped", int, timeout=60) == ("lost", "stopped", of_stopped)  # K3

    results = shm.take_many("result", int, int, n=TASKS - 2, timeout=60)
    numbers = sorted([number for _, number, _ in results] + [of_killed, of_stopped])
    assert numbers == list(range(TASKS))  # each exactly once
    shm.wait_none("task", int, timeout=60)

    shm.put_all([("task", TASKS), ("task", TASKS)])
    errors = {name: worker.communicate(timeout=60)[1] for name, worker in workers.items()}
    assert errors == dict.fromkeys(names, "")
    assert workers["killed"].returncode == -9
    assert workers["stopped"].returncode == workers["lucky"].returncode == 0
    assert len(shm.take_all("result", TASKS, int)) == 2
    shm.take_all("lost", REST)  # of one that was kept waiting by a busy machine
    assert shm.count(REST) == 0
