"""Claims of processes that die, stop and fork: nothing is lost, nothing is done twice."""

import os
import random
import signal
import subprocess
import sys

import pytest
from attempts import in_one_attempt
from stopping import stop

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


CLAIMS_AGAIN = """
import sys
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
with space.claim("job", int, timeout=60) as (_, number):
    space.put("again", number)
"""


def test_what_a_program_had_claimed_is_back_when_its_process_is_another_one(shm, shm_url):
    shm.put("job", 1)
    becomes = "import os; os.execv(sys.executable, [sys.executable, '-c', *sys.argv[3:]])"
    child = start(HOLDS.format(work=becomes), shm_url, 3600, CLAIMS_AGAIN, shm_url)
    assert shm.take("again", int, timeout=60) == ("again", 1)  # L5
    _, errors = child.communicate()
    assert child.returncode == 0, errors
    assert shm.count("result", int) == 0  # K4


BECOMES_ITSELF = """
import ctypes, os, sys
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
if space.try_take("first"):
    # From the next program on all addresses are the same each time.
    assert ctypes.CDLL(None).personality(0x0040000) >= 0
    os.execv(sys.executable, sys.orig_argv)
if space.try_take("second"):
    claim = space.claim("job", int).__enter__()
    os.execv(sys.executable, sys.orig_argv)
with space.claim("job", int, timeout=60) as (_, number):
    space.put("again", number)
"""


def test_what_a_program_had_claimed_is_back_when_it_begins_anew_at_the_same_addresses(shm, shm_url):
    shm.put_all([("first",), ("second",), ("job", 1)])
    child = start(BECOMES_ITSELF, shm_url)
    assert child.communicate()[1] == ""
    assert shm.take_all(REST) == [("again", 1)]  # L5


def test_a_blocked_claim_gets_the_tuple_of_a_holder_that_is_killed(shm, shm_url, eventually):
    shm.put("job", 1)
    first = holder(shm, shm_url, 3600, "threading.Event().wait()")
    second = start(HOLDS.format(work="pass"), shm_url, 3600)
    eventually(lambda: shm.stat()["waiters"] == 1)
    first.kill()
    first.communicate()
    assert second.communicate(timeout=60)[1] == ""
    assert sorted(shm.take_all(REST)) == [("held", 1), ("result", 1)]


@in_one_attempt
def test_a_holder_keeps_its_claim_while_its_code_holds_the_interpreter(shm, shm_url):
    """A call of C for three times the ttl, which lets no other thread of Python run."""
    shm.put("job", 1)
    sleep = "import ctypes; ctypes.PyDLL(None).usleep(3_000_000)"
    child = holder(shm, shm_url, 1, sleep)
    assert shm.take("result", int, timeout=60) == ("result", 1)
    assert child.communicate(timeout=60)[1] == ""
    assert shm.count(REST) == 0


def test_a_stopped_holder_loses_its_claim_and_is_refused_later(shm, shm_url, eventually):
    shm.put("job", 1)
    child = holder(shm, shm_url, 0.3, "space.take('go on')")
    # In the wait queue, and so outside of every critical section, where it would stall all
    # (TUP-016).
    eventually(lambda: shm.stat()["waiters"] == 1)
    child.send_signal(signal.SIGSTOP)
    with shm.claim("job", int, timeout=60):  # K2: silence
        pass
    shm.put("go on")
    child.send_signal(signal.SIGCONT)
    error = child.communicate(timeout=60)[1]
    assert "tupelo.ClaimLost: TUP-007: your claim on ('job', 1) (ttl 0.3 s) is lost" in error
    assert child.returncode == 1
    assert shm.count(REST) == 0  # K3, K4: no result of the late one


WAITS = """
import asyncio, sys
import tupelo as ts
from tupelo import aio

space = ts.connect(sys.argv[1], create=False)

def claim():
    claim = space.claim("job", int, ttl=0.2)
    space.put("held", claim.tuple[1])
    claim.done()

def claim_where():
    claim = space.claim("job", int, ttl=0.2, where="f[1] > 0")
    space.put("held", claim.tuple[1])
    claim.done()

def claim_whatever():
    claim = space.claim("job", ..., ttl=0.2)
    space.put("held", claim.tuple[1])
    claim.done()

def claim_aio():
    async def main():
        async with aio.connect(sys.argv[1], create=False) as space:
            async with space.claim("job", int, ttl=0.2) as (_, number):
                await space.put("held", number)
    asyncio.run(main())

globals()[sys.argv[2]]()
"""


@pytest.mark.parametrize("how", ["claim", "claim_where", "claim_whatever", "claim_aio"])
def test_a_blocked_claim_of_a_stopped_process_loses_what_it_was_handed(
    shm, shm_url, how, eventually
):
    slow = start(WAITS, shm_url, how)
    eventually(lambda: shm.stat()["waiters"] == 1)
    stop(slow)
    shm.put("job", 1)
    claim = shm.claim("job", int, timeout=60)  # K2, T3
    assert (claim.tuple, claim.attempt) == (("job", 1), 1)
    claim.done()
    slow.send_signal(signal.SIGCONT)
    shm.put("job", 2)
    assert shm.take("held", int, timeout=60) == ("held", 2)
    assert slow.communicate()[1] == ""


def test_what_a_stopped_transaction_was_handed_is_back_when_its_time_is_over(
    shm, shm_url, eventually
):
    code = (
        "import sys, tupelo; space = tupelo.connect(sys.argv[1], create=False)\n"
        "try:\n with space.transaction(ttl=0.3) as inside: inside.take('job', int)\n"
        "except tupelo.Aborted: space.put('aborted')"
    )
    slow = start(code, shm_url)
    eventually(lambda: shm.stat()["waiters"] == 1)
    stop(slow)
    shm.put("job", 1)
    assert shm.take("job", int, timeout=60) == ("job", 1)  # X5
    slow.send_signal(signal.SIGCONT)
    assert shm.take("aborted", timeout=60) == ("aborted",)
    assert slow.communicate()[1] == ""


def test_ctrl_c_in_a_block_gives_the_tuple_back(shm, shm_url):
    shm.put("job", 1)
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + HOLDS
    child = start(code.format(work="space.take('never')"), shm_url, 3600)
    assert shm.take("held", int, timeout=60) == ("held", 1)
    child.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in child.communicate(timeout=60)[1]
    claim = shm.claim("job", int, timeout=60)
    assert claim.attempt == 2
    claim.done()


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


@in_one_attempt
def test_a_block_that_forks_is_ended_by_the_parent_alone(shm):
    shm.put("job", 1)
    with shm.claim("job", int, ttl=0.6) as (_, number):

        def child():
            assert number == 1

        assert in_a_forked_child(child)
        with pytest.raises(ts.Timeout):
            shm.take("job", int, timeout=1.5)
    shm.wait_none(REST, timeout=0)


@in_one_attempt
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


WORKER = """
import os, signal, sys
import tupelo as ts

space = ts.connect(sys.argv[1], create=False)
over, me = int(sys.argv[2]), os.getpid()
space.put("ready", me)
while True:
    claim = space.claim("task", int, ttl=0.5)
    try:
        with claim as (_, number):
            claim.put("result", number, me)
            if number == over:
                break
            if (hold := space.try_take("hold", str)):
                # In the middle of a task: to be killed or stopped here. It stops itself, outside of
                # every critical section, where it would stall all (TUP-016).
                space.put("holds", number, me)
                if hold[1] == "stop":
                    os.kill(me, signal.SIGSTOP)
                space.take("go on", me)
    except ts.ClaimLost:
        space.put("lost", number, me)
"""

WORKERS = 3

# Tasks, and how many of their workers are killed and stopped.
CHAOS = [(1_000, 4, 2), (10_000, 20, 5)]


@pytest.mark.parametrize(("tasks", "kills", "stops"), CHAOS)
def test_of_workers_that_are_killed_and_stopped_every_task_has_one_result(
    shm, shm_url, tasks, kills, stops
):
    """The chaos of K1 to K5: some die, some sleep until their claim is lost, some go on."""
    workers = {}

    def add_worker():
        child = start(WORKER, shm_url, tasks)
        workers[child.pid] = child
        shm.take("ready", child.pid, timeout=60)

    for _ in range(WORKERS):
        add_worker()
    blows = ["kill"] * kills + ["stop"] * stops
    seed = int(os.environ.get("TUPELO_SEED", random.randrange(1 << 32)))
    print(f"TUPELO_SEED={seed}")  # noqa: T201 - shown if it fails
    random.Random(seed).shuffle(blows)

    held, share = {}, tasks // len(blows)
    for turn, blow in enumerate(blows):
        shm.put("hold", blow)
        shm.put_all(("task", number) for number in range(turn * share, (turn + 1) * share))
        _, number, pid = shm.take("holds", int, int, timeout=60)
        held[number] = pid
        if blow == "kill":
            child = workers.pop(pid)
            child.kill()
            assert child.communicate(timeout=60)[1] == ""
            assert child.returncode == -9
            add_worker()
        else:
            shm.read("result", number, int, timeout=60)  # K2: it is somebody else's work now
            shm.put("go on", pid)
            workers[pid].send_signal(signal.SIGCONT)
            assert shm.take("lost", number, pid, timeout=60) == ("lost", number, pid)  # K3

    shm.put_all(("task", number) for number in range(len(blows) * share, tasks))
    results = shm.take_many("result", int, int, n=tasks, timeout=60)
    assert sorted(number for _, number, _ in results) == list(range(tasks))  # each exactly once
    authors = {number: author for _, number, author in results}
    assert all(authors[number] != pid for number, pid in held.items())  # K3, K4
    shm.wait_none("task", int, timeout=60)

    shm.put_all([("task", tasks)] * WORKERS)
    assert [child.communicate(timeout=60)[1] for child in workers.values()] == [""] * WORKERS
    assert {child.returncode for child in workers.values()} == {0}
    assert len(shm.take_all("result", tasks, int)) == WORKERS
    shm.take_all("lost", REST)  # of one that was kept waiting by a busy machine
    assert shm.count(REST) == 0
