"""spawn: worker processes for the length of a block."""

import os
import re
import signal
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import tupelo as ts


def square(url):
    with ts.connect(url, create=False) as space:
        for _, n in space.consume("square", int):
            space.put("squared", n, os.getpid())


def fail_on(url, number):
    with ts.connect(url) as space:
        for _, n in space.consume("job", int):
            if n == number:
                message = f"not {n}!"
                raise ZeroDivisionError(message)


def take_one(space):
    space.take("job", int)


def put_one(space, *fields):
    space.put(*fields)


def exit_with(code):
    sys.exit(code)


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def cut_its_report_off():
    report = sys._getframe(1).f_locals["report"]  # noqa: SLF001
    os.write(report.fileno(), struct.pack("!i", 100) + b"the beginning")
    os.kill(os.getpid(), signal.SIGKILL)


INTERRUPTED = """
import multiprocessing, signal, sys
import tupelo as ts

def interrupt(frame, event, argument):
    # As if it came when a process has started, and nothing else has happened.
    code = frame.f_code
    if event == "return" and code.co_name == "start" and "multiprocessing" in code.co_filename:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)

def work(url):
    with ts.connect(url) as space:
        space.take("never")

if __name__ == "__main__":
    try:
        sys.setprofile(interrupt)
        with {block}:
            pass
    except KeyboardInterrupt:
        print(multiprocessing.active_children())
"""


@pytest.mark.parametrize(
    "block", ["ts.spawn(work, sys.argv[1], n=2)", "Pool(sys.argv[1], workers=2)"]
)
def test_ctrl_c_when_a_process_has_just_started_leaves_none(shm_url, tmp_path, block):
    program = tmp_path / "interrupted.py"
    begin = "from tupelo.batteries import Pool\n"
    program.write_text(begin + INTERRUPTED.replace("{block}", block))
    done = subprocess.run(
        [sys.executable, program, shm_url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_leaving_the_block_waits_for_the_workers(shm, shm_url):
    with ts.spawn(square, shm_url, n=2) as workers:
        assert len(workers.pids) == 2
        shm.put_all(("square", n) for n in range(200))
        shm.finish("square", int)
    results = shm.take_all("squared", int, int)
    assert sorted(n for _, n, _ in results) == list(range(200))
    assert {pid for *_, pid in results} <= set(workers.pids)


def test_a_space_can_be_an_argument(shm):
    with ts.spawn(put_one, shm, "job", 1):
        assert shm.take("job", int, timeout=60) == ("job", 1)


def test_a_failing_worker_is_reported_with_its_traceback(shm, shm_url):
    shm.put("job", 3)
    shm.finish("job", int)
    with pytest.raises(ts.RemoteError) as caught, ts.spawn(fail_on, shm_url, 3, n=2):
        pass
    message = str(caught.value)
    assert message.startswith("TUP-011: fail_on failed in process ")
    assert "ZeroDivisionError: not 3!" in message
    assert "test_spawn.py" in message
    assert caught.value.code == "TUP-011"


class Elsewhere:
    """What is an argument of an exception, and can not be sent."""

    def __reduce__(self):
        raise TypeError


def raise_key_error(argument):
    raise KeyError(argument() if callable(argument) else argument)


def test_what_a_worker_has_raised_is_the_cause_if_it_is_one_of_pythons_own():
    with pytest.raises(ts.RemoteError) as caught, ts.spawn(raise_key_error, "frame"):
        pass
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__cause__.args == ("frame",)
    with pytest.raises(ts.RemoteError, match="KeyError") as caught:
        with ts.spawn(raise_key_error, Elsewhere):
            pass
    assert caught.value.__cause__ is None


def test_the_other_failures_are_told_too():
    with pytest.raises(ts.RemoteError, match="other workers failed too"), ts.spawn(int, "x", n=2):
        pass


def test_a_worker_that_was_killed_is_reported():
    with pytest.raises(ts.RemoteError, match=r"worker process \d+ was ended by signal 9"):
        with ts.spawn(kill_itself):
            pass


def test_a_worker_that_was_killed_while_it_reported_is_reported():
    with pytest.raises(ts.RemoteError, match=r"worker process \d+ was ended by signal 9"):
        with ts.spawn(cut_its_report_off):
            pass


def test_an_exit_code_counts_as_failure_unless_it_is_zero():
    with ts.spawn(exit_with, 0):
        pass
    with pytest.raises(ts.RemoteError, match=r"worker process \d+ exited with 3"):
        with ts.spawn(exit_with, 3):
            pass


def test_a_worker_that_could_not_begin_says_where_its_function_has_to_be(tmp_path):
    program = "import tupelo as ts\ndef work(): pass\nwith ts.spawn(work): pass\n"
    run = {"capture_output": True, "text": True, "timeout": 60, "cwd": tmp_path}
    typed = subprocess.run([sys.executable, "-"], input=program, **run, check=False)
    assert typed.returncode == 1
    said = r"worker process \d+ exited with 1; .* a file that can be imported, .*__main__"
    assert re.search(said, typed.stderr), typed.stderr


def test_an_exception_in_the_block_ends_the_workers(shm, eventually):
    with pytest.raises(KeyError), ts.spawn(take_one, shm, n=2) as workers:
        eventually(lambda: shm.stat()["waiters"] == 2)
        raise KeyError(3)
    for pid in workers.pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    shm.put("job", 1)
    assert shm.take("job", int) == ("job", 1)  # L5: it went to none of the dead


def test_failed_workers_are_noted_on_the_exception_of_the_block(shm, shm_url, eventually):
    shm.put("job", 3)
    with pytest.raises(ts.Timeout) as caught, ts.spawn(fail_on, shm_url, 3) as failing:
        eventually(lambda: not is_alive(failing.pids[0]))
        with ts.spawn(take_one, shm, n=2) as killed:
            eventually(lambda: shm.stat()["waiters"] == 2)
            os.kill(killed.pids[1], signal.SIGKILL)
            eventually(lambda: not is_alive(killed.pids[1]))
            shm.take("result", timeout=0)
    of_killed, of_failing = (note for note in caught.value.__notes__ if "process" in note)
    assert of_killed == f"worker process {killed.pids[1]} was ended by signal 9"
    assert "ZeroDivisionError: not 3!" in of_failing


def test_a_worker_that_fails_while_others_wait_is_told_of(shm, shm_url, caplog, eventually):
    shm.put("job", 3)

    def go_on():
        eventually(lambda: caplog.records)
        shm.finish("job", int)

    with pytest.raises(ts.RemoteError, match="not 3!"), ts.spawn(fail_on, shm_url, 3, n=2):
        other = threading.Thread(target=go_on)
        other.start()
    other.join()
    (record,) = caplog.records
    assert record.name == "tupelo"
    assert "ZeroDivisionError: not 3!\nthe block waits for its other" in record.getMessage()


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        ((3,), {}, TypeError, "function has the type int: give a function, then its arguments"),
        ((square,), {"n": 0}, ValueError, "n is 0: give a number of processes from 1 to 4096"),
        ((square,), {"n": -2}, ValueError, "n is -2: give a number of processes from 1 to"),
        ((square,), {"n": 4097}, ValueError, "n is 4097: give a number of processes from 1 to"),
        ((square,), {"n": "2"}, TypeError, "n has the type str: give the number of processes"),
        ((square,), {"n": True}, TypeError, "n has the type bool"),
    ],
)
def test_a_wrong_argument_is_named(arguments, keywords, error, message):
    with pytest.raises(error, match=message):
        ts.spawn(*arguments, **keywords)


def test_what_can_not_be_sent_is_refused_before_anything_runs(new_url):
    with pytest.raises(TypeError, match="a worker needs a function and arguments that can be"):
        with ts.spawn(lambda: None):
            pass
    with ts.connect(new_url("mem")) as space:
        with pytest.raises(TypeError, match="use shm://"), ts.spawn(put_one, space, "job"):
            pass


def test_a_block_can_be_entered_once():
    workers = ts.spawn(exit_with, 0)
    with workers:
        pass
    with pytest.raises(RuntimeError, match="started already"), workers:
        pass


SCRIPT = """
import sys
import tupelo as ts

def work(url):
    with ts.connect(url) as space:
        if space.try_take("one fails at once") is not None:
            raise ZeroDivisionError("at once")
        space.take("never")

if __name__ == "__main__":
    with ts.spawn(work, sys.argv[1], n=2):
        pass
"""


def test_ctrl_c_ends_program_and_workers(shm, shm_url, tmp_path, eventually):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    shm.put("one fails at once")
    program = subprocess.Popen(
        [sys.executable, script, shm_url],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    eventually(lambda: shm.stat()["waiters"] == 1)
    eventually(lambda: any(not is_alive(pid) for pid in children(program.pid)))
    os.killpg(program.pid, signal.SIGINT)  # as a terminal does
    _, error = program.communicate(timeout=60)
    # The program's own and, once or twice, that of the worker which failed; not the other's.
    assert error.count("KeyboardInterrupt") == 1
    _, notes = error.split("\nKeyboardInterrupt\nthe block was over and waited for its workers; ")
    assert notes.count("ZeroDivisionError: at once") == 1
    shm.put("never")
    assert shm.take("never", timeout=60) == ("never",)  # L5: it went to none of the dead


def test_workers_do_not_outlive_a_program_that_is_killed(shm, shm_url, tmp_path, eventually):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    program = subprocess.Popen([sys.executable, script, shm_url])
    eventually(lambda: shm.stat()["waiters"] == 2)
    workers = {one["pid"] for one in shm.stat()["processes"]} - {os.getpid()}
    assert len(workers) == 2
    program.kill()
    program.wait()
    eventually(lambda: not any(is_alive(pid) for pid in workers))
    shm.put("never")
    assert shm.take("never", timeout=60) == ("never",)  # L5: it went to none of the dead


def children(parent):
    """The processes that a process has started, and not waited for."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            *_, fields = path.read_text(encoding="utf-8").rpartition(")")
            if int(fields.split()[1]) == parent:
                yield int(path.parent.name)


def fail_and_go_on():
    threading.Thread(target=threading.Event().wait).start()
    raise ZeroDivisionError


def test_a_worker_that_has_failed_and_does_not_end_is_ended_with_the_block(eventually):
    with pytest.raises(KeyError) as caught, ts.spawn(fail_and_go_on) as workers:
        (report,) = workers._reports  # noqa: SLF001
        eventually(report.poll)
        raise KeyError(3)
    (note,) = caught.value.__notes__
    assert "ZeroDivisionError" in note
    assert not is_alive(workers.pids[0])


def is_alive(pid):
    """Whether a process runs: not one that has ended, and that nobody has waited for.

    Its first thread may have ended before the others: they keep its files open.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "\nState:\tZ" not in status or "\nThreads:\t1\n" not in status
