"""worker and `tupelo worker`: functions that processes of their own compute for others."""

import asyncio
import functools
import math
import os
import signal
import subprocess
import sys
import zipapp
from contextlib import contextmanager, suppress

import pytest
from console import INSTALLED
from stopping import waiting

import tupelo as ts
from tupelo import REST
from tupelo._native import is_announced
from tupelo.aio.batteries import worker as aio_worker
from tupelo.batteries import RemoteFunction, worker
from tupelo.batteries.core.remote import Address
from tupelo.tasks.mailbox import Mailbox

FILM = """
import os
import tupelo as ts
from tupelo.batteries import worker

URL = {url!r}

@worker(URL, retries=2, ttl=30, concurrency=2)
def render(frame: int, scene: str = "sea") -> str:
    "Draw a picture."
    if frame < 0:
        raise ValueError(f"no frame {{frame}}")
    return f"{{scene}} {{frame}}"

@worker(URL)
def large():
    return "x" * 100_000

@worker(URL, ignore_result=True)
def tell(word):
    if word.startswith("bad"):
        raise ValueError(word)
    with ts.connect(URL, create=False) as space:
        space.put("told", word)
    return word

@worker(URL, timeout=2)
def idle():
    ts.connect(URL).take("never")

@worker(URL, ttl=1)
def slow(word):
    with ts.connect(URL, create=False) as space:
        space.put("began", word, os.getpid())
        space.take("go on", word)
    return word
"""


@pytest.fixture
def film(tmp_path, monkeypatch, shm):
    """The module film, with functions that are served in the space."""
    (tmp_path / "film.py").write_text(FILM.format(url=shm.url), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("film", None)
    import film  # noqa: PLC0415

    yield film
    del sys.modules["film"]


@contextmanager
def serving(*words):
    """Run `tupelo worker`, and end it as Ctrl-C does."""
    service = start(*words)
    try:
        assert service.stdout.readline().startswith("serving ")
        yield service
    finally:
        service.send_signal(signal.SIGINT)
        rest, error = service.communicate(timeout=60)
        assert "every process ends its task" in rest
        assert error == ""
        assert service.returncode == 0


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "tupelo.worker", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_function_can_be_called_here_or_there(film, shm):
    assert film.render(7) == "sea 7"
    assert film.render.__doc__ == "Draw a picture."
    assert isinstance(film.render, RemoteFunction)
    assert repr(film.render) == f"<worker film:render in {shm.url}>"
    with serving("film:render"):
        futures = [film.render.submit(n, scene="lake") for n in range(100)]
        assert [future.result(60) for future in futures] == [f"lake {n}" for n in range(100)]
    assert shm.count(REST) == 0


def test_a_task_waits_until_there_is_a_worker_and_can_be_withdrawn(film, shm):
    first, second = film.render.submit(1), film.render.submit(2)
    assert shm.count("tupelo.task", "film:render", REST) == 2
    assert second.cancel()
    with serving("film:render", "-n", 1):
        assert first.result(60) == "sea 1"
    assert second.cancelled()


def test_a_task_that_nobody_serves_says_so_and_waits_on(film, shm):
    later = film.render.submit(1)
    told = rf"render\(1\) has no result after 0.01 s: no worker serves film:render in {shm.url}"
    with pytest.raises(ts.Timeout, match=told) as caught:
        later.result(0.01)
    assert caught.value.hint == f"start one:  tupelo worker film:render -u {shm.url}"
    with pytest.raises(ts.Timeout, match="no worker serves"):
        later.exception(timeout=0.01)
    asked = shm.eval("root", ts.call(math.sqrt, 4.0), on="workers")
    with pytest.raises(ts.Timeout, match="no worker serves math:sqrt"):
        asked.result(0)
    assert asked.cancel()
    with serving("film:render"):
        assert later.result(60) == "sea 1"
        assert is_announced(shm, "film:render") is True
    assert is_announced(shm, "film:render") is False


@pytest.mark.usefixtures("film")
def test_a_worker_that_finds_no_room_for_its_answer_says_so_and_ends_when_it_is_told(new_url):
    """B1: and the task is another one's again."""
    with ts.connect(new_url("shm"), size="2M") as space:
        mailbox = Mailbox(space)
        later = mailbox.submit("film:large", "film:large", (), {}, attempts_max=1)
        with suppress(ts.SpaceFull):
            while True:
                space.put("fills", bytes(4_000))
        service = start("film:large", "-n", 1, "-u", space.url)
        assert service.stdout.readline().startswith("serving ")
        told = service.stderr.readline()
        assert "a worker of film:large can not put the answer of film:large, and waits" in told
        service.send_signal(signal.SIGTERM)
        service.communicate(timeout=60)
        assert service.returncode == 0
        assert space.count("tupelo.task", "film:large", REST) == 1
        space.discard("fills", bytes)
        with serving("film:large", "-u", space.url):
            assert later.result(60) == "x" * 100_000


def test_a_result_that_nobody_wants_is_not_put(film, shm):
    told = film.tell.submit("good news")
    assert told.done()
    assert told.result() is None
    assert not told.cancel()
    film.tell.submit("bad news")
    with serving("film:tell"):
        assert shm.take("told", "good news", timeout=60)
        shm.wait_none("tupelo.task", REST, timeout=60)
    ((letter),) = film.tell.dead()
    assert letter["arguments"] == ("bad news",)
    assert shm.count("tupelo.answer", REST) == 0
    with pytest.raises(TypeError, match="ignore_result is 1: give True or False"):
        worker(shm.url, ignore_result=1)


def test_who_works_on_a_task_need_not_have_announced_it(film, shm):
    later = film.render.submit(1)
    with shm.claim("tupelo.task", "film:render", REST):
        with pytest.raises(TimeoutError) as caught:
            later.result(0)
        assert not isinstance(caught.value, ts.TupeloError)
    later.cancel()


PACKAGE = """
import sys
from tupelo.batteries import Pool, worker

@worker({url!r})
def render(frame):
    return f"frame {{frame}}"

def double(x):
    return 2 * x

if __name__ == "__main__":
    import tupelo
    with Pool({url!r}, workers=1) as pool:
        print(list(pool.map(double, [4])), flush=True)
    print(render.address.queue, flush=True)
    print(render.submit(3).result(60), flush=True)
"""


PASSES_ON = """
def __getattr__(name):
    from importlib import import_module
    return getattr(import_module("reel.__main__"), name)
"""


def test_a_function_of_the_main_of_a_package_has_one_name(shm, tmp_path, monkeypatch):
    package = tmp_path / "reel"
    package.mkdir()
    (package / "__init__.py").write_text(PASSES_ON)
    (package / "__main__.py").write_text(PACKAGE.format(url=shm.url))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with serving("reel:render"):
        asked = subprocess.run(
            [sys.executable, "-m", "reel"], check=True, capture_output=True, text=True, timeout=120
        )
    assert asked.stdout.splitlines() == ["[8]", "reel.__main__:render", "frame 3"]


def test_the_main_of_an_archive_is_refused_when_it_is_decorated(shm, tmp_path):
    source = tmp_path / "reel"
    source.mkdir()
    (source / "__main__.py").write_text(PACKAGE.format(url=shm.url))
    zipapp.create_archive(source, tmp_path / "reel.pyz")
    for what in ("reel", "reel.pyz"):
        asked = subprocess.run(
            [sys.executable, str(tmp_path / what)],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert asked.returncode == 1
        assert "TypeError: function render is in " in asked.stderr
        assert "which runs as __main__ and which no worker can import" in asked.stderr
    assert shm.count(REST) == 0


def test_the_child_of_a_fork_waits_for_no_lock_of_a_function(film):
    with film.render.address._lock:  # noqa: SLF001 - as another thread may have it then
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            code = 1
            try:
                code = len(film.render.dead())
            finally:
                os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_failure_has_the_workers_traceback_and_is_a_dead_letter(film, shm):
    with serving("film:render"):
        with pytest.raises(ts.RemoteError, match=r"render\(-1\) failed on ") as caught:
            film.render.submit(-1).result(60)
    error = caught.value
    assert error.attempts == 3
    assert "attempt 3 of 3" in str(error)
    assert 'film.py", line ' in str(error)
    assert f"tupelo read {shm.url} tupelo.dead film:render ..." in error.hint
    assert "render.retry()" in error.hint
    ((letter),) = film.render.dead()
    assert letter["arguments"] == (-1,)
    assert letter["keywords"] == {}
    assert letter["attempts"] == 3
    assert letter["error"].endswith("ValueError: no frame -1")
    assert shm.count("tupelo.dead", "film:render", REST) == 1


def test_dead_letters_can_be_done_again(film, shm):
    with serving("film:render"):
        film.render.submit(-1).exception(60)
        film.render.submit(-2).exception(60)
        again = film.render.retry()
        assert len(again) == 2
        assert "no frame -1" in str(again[0].exception(60))
        assert "no frame -2" in str(again[1].exception(60))
        assert len(film.render.dead()) == 2
    assert shm.count("tupelo.task", REST) == 0


def test_a_killed_worker_is_replaced_and_its_task_done_again(film, shm):
    with serving("film:slow", "-n", 1) as service:
        later = film.slow.submit("again")
        _, _, pid = shm.take("began", "again", int, timeout=60)
        os.kill(pid, signal.SIGKILL)
        _, _, other = shm.take("began", "again", int, timeout=60)
        assert other != pid
        shm.put("go on", "again")
        assert later.result(60) == "again"
        assert f"process {pid} was ended by signal 9" in service.stdout.readline()


def test_a_service_whose_output_nobody_reads_replaces_the_dead_and_ends_after_its_tasks(film, shm):
    service = start("film:slow", "-n", 1)
    assert service.stdout.readline().startswith("serving ")
    service.stdout.close()
    later = film.slow.submit("unheard")
    # The second death comes after one that nobody could be told of.
    for _ in range(2):
        _, _, pid = shm.take("began", "unheard", int, timeout=60)
        os.kill(pid, signal.SIGKILL)
    shm.take("began", "unheard", int, timeout=60)
    service.send_signal(signal.SIGTERM)
    shm.put("go on", "unheard")
    assert later.result(60) == "unheard"
    assert service.wait(60) == 0
    with service.stderr as error:
        assert error.read() == ""


def test_a_stopped_worker_that_goes_on_answers_nothing(film, shm, eventually):
    """K3, K4: its task has been done by another, and the one answer is that one's."""
    with serving("film:slow", "-n", 2):
        later = film.slow.submit("late")
        _, _, pid = shm.take("began", "late", int, timeout=60)
        # Before, it may be inside of a lock of the space, which grows for its first who waits.
        eventually(lambda: waiting(shm, "str", "str") == 1)
        os.kill(pid, signal.SIGSTOP)
        _, _, other = shm.take("began", "late", int, timeout=60)
        assert other != pid
        # One for each: the stopped one has waited longer, and is served first.
        shm.put_all([("go on", "late")] * 2)
        assert later.result(60) == "late"
        os.kill(pid, signal.SIGCONT)
    assert shm.count(REST) == 0


def test_sigterm_lets_every_process_end_its_task(film, shm):
    service = start("film:slow", "-n", 2)
    first, second, third = (film.slow.submit(word) for word in ("first", "second", "third"))
    for word in ("first", "second"):
        shm.take("began", word, int, timeout=60)
    service.send_signal(signal.SIGTERM)
    assert service.stdout.readline().startswith("serving ")
    assert "every process ends its task" in service.stdout.readline()
    shm.put_all([("go on", "first"), ("go on", "second")])
    assert (first.result(60), second.result(60)) == ("first", "second")
    assert service.wait(60) == 0
    assert service.communicate()[1] == ""
    assert third.cancel()


def test_a_second_ctrl_c_ends_them_at_once(film, shm):
    service = start("film:slow")
    later = film.slow.submit("never")
    shm.take("began", "never", int, timeout=60)
    for _ in range(2):
        service.stdout.readline()
        service.send_signal(signal.SIGINT)
    assert service.wait(60) == 0
    service.communicate()
    shm.read("tupelo.task", REST, timeout=60)
    assert later.cancel()


def test_no_process_is_left_behind_by_a_service_that_is_killed(film, shm, eventually):
    service = start("film:slow")
    film.slow.submit("never")
    shm.take("began", "never", int, timeout=60)
    service.kill()
    service.communicate()
    eventually(lambda: {p["pid"] for p in shm.stat()["processes"] if p["alive"]} == {os.getpid()})


def test_a_task_that_takes_too_long_is_ended(film):
    with serving("film:idle"):
        error = film.idle.submit().exception(60)
    assert error.kind == "builtins.TimeoutError"
    assert "longer than 2 s" in str(error)


def test_a_signal_that_another_thread_gets_ends_a_service_as_well(film, shm):
    hit = """
import signal, sys, threading
import tupelo as ts
from tupelo import worker

def hit():
    ts.connect(sys.argv[1], create=False).take("hit")
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

threading.Thread(target=hit, daemon=True).start()
sys.exit(worker.main(["film:render", "-n", "1"]))
"""
    words = [sys.executable, "-c", hit, shm.url]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout.readline().startswith("serving ")
            # The one process is there: nobody starts another one and wakes the main thread by that.
            assert film.render.submit(1).result(60)
            shm.put("hit")
            rest, _ = service.communicate(timeout=60)
        finally:
            service.kill()
    assert "every process ends its task" in rest
    assert service.returncode == 0


def test_any_function_can_be_served_for_eval(shm, shm_url):
    later = shm.eval("root", ts.call(__import__("math").sqrt, 16.0), on="workers")
    with serving("math:sqrt", "--url", shm_url, "--timeout", "2min"):
        assert shm.take("root", float, timeout=60) == ("root", 4.0)
        assert later.result(60) == ("root", 4.0)


def test_a_quiet_service_prints_nothing(shm, shm_url):
    service = start("math:sqrt", "--url", shm_url, "--quiet")
    shm.eval("root", ts.call(__import__("math").sqrt, 16.0), on="workers")
    assert shm.take("root", float, timeout=60) == ("root", 4.0)
    service.send_signal(signal.SIGTERM)
    assert service.communicate(timeout=60) == ("", "")
    assert service.returncode == 0


def test_a_function_that_a_package_passes_on_is_served_under_its_own_name(
    shm, shm_url, tmp_path, monkeypatch
):
    package = tmp_path / "passing_on"
    package.mkdir()
    (package / "__init__.py").write_text("from passing_on.inner import twice\n", encoding="utf-8")
    (package / "inner.py").write_text("def twice(n):\n    return 2 * n\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    import passing_on  # noqa: PLC0415

    service = start("passing_on:twice", "--url", shm_url)
    assert service.stdout.readline().startswith("serving passing_on.inner:twice in ")
    shm.eval("twice", ts.call(passing_on.twice, 4), on="workers")
    assert shm.take("twice", int, timeout=60) == ("twice", 8)
    service.send_signal(signal.SIGTERM)
    assert service.communicate(timeout=60)[1] == ""
    del sys.modules["passing_on"], sys.modules["passing_on.inner"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["nowhere:f"], 2, "tupelo worker: there is no module nowhere for nowhere:f; it was"),
        (["math:nothing"], 2, "tupelo worker: math:nothing is not there"),
        (["math"], 2, "'math' is no path of a function: write module:function"),
        (["math:sqrt", "-n", "0"], 2, "must be 1 to 4096, not 0"),
        (["math:sqrt", "--timeout", "0s"], 2, "must be more than 0"),
        (["math:sqrt", "--timeout", "soon"], 2, "is no unit of time: us, ms, s, min or h"),
        (["math:sqrt", "-u", "nothing"], 2, 'tupelo worker: TUP-019: "nothing" is no URL'),
        (["math:sqrt", "-u", "mem://x"], 2, "no other program sees mem://x: use shm://x"),
        ([], 2, "MODULE:FUNCTION"),
    ],
)
def test_what_makes_no_sense_is_refused(words, code, message):
    service = start(*words)
    error = service.communicate(timeout=60)[1]
    assert message in error
    assert "Traceback" not in error
    assert service.returncode == code


def test_what_has_no_name_in_a_module_is_no_worker(shm_url):
    with pytest.raises(TypeError, match="function is a partial: workers find a function by its"):
        worker(shm_url)(functools.partial(math.pow, 2))


def test_help_shows_examples():
    service = start("--help")
    assert "tupelo worker film:render -n 4" in service.communicate(timeout=60)[0]


def test_the_command_line_hands_over_to_it(film, shm):
    service = subprocess.Popen(
        [INSTALLED, "worker", "film:render"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert service.stdout.readline().startswith("serving film:render in shm://")
    assert film.render.submit(1).result(60) == "sea 1"
    service.send_signal(signal.SIGTERM)
    service.communicate(timeout=60)
    assert service.returncode == 0
    assert shm.count(REST) == 0


@pytest.mark.parametrize("face", [worker, aio_worker])
def test_arguments_that_make_no_sense_are_refused(face):
    with pytest.raises(ValueError, match="retries is -1"):
        face("shm://x", retries=-1)
    with pytest.raises(ValueError, match="concurrency is 0"):
        face("shm://x", concurrency=0)
    with pytest.raises(ValueError, match="ttl is 0"):
        face("shm://x", ttl=0)
    with pytest.raises(ValueError, match="objects is 'typo': give 'strict' or 'pickle'"):
        face("shm://x", objects="typo")
    with pytest.raises(TypeError, match="function is a lambda"):
        face("shm://x")(lambda: 1)


def test_a_space_that_no_worker_sees_is_refused_by_submit():
    message = "no other program sees mem://alone: use shm://alone"
    sqrt = worker("mem://alone")(math.sqrt)
    for use in (lambda: sqrt.submit(2.0), sqrt.dead, sqrt.retry):
        with pytest.raises(ValueError, match=message):
            use()
    assert sqrt(4.0) == 2.0
    aio_sqrt = aio_worker("mem://alone")(math.sqrt)
    with pytest.raises(ValueError, match=message):
        asyncio.run(aio_sqrt.submit(2.0))
    with ts.connect("mem://alone") as space:
        assert space.count(REST) == 0


AIO_FILM = FILM.replace("tupelo.batteries", "tupelo.aio.batteries")


@pytest.mark.usefixtures("film")
def test_asyncio_has_the_same(shm_url, tmp_path):
    (tmp_path / "aio_film.py").write_text(AIO_FILM.format(url=shm_url), encoding="utf-8")
    import aio_film  # noqa: PLC0415

    async def main():
        assert aio_film.render(1) == "sea 1"
        assert await aio_film.render.submit(2) == "sea 2"
        with pytest.raises(ts.RemoteError, match="no frame -1"):
            await aio_film.render.submit(-1)
        (letter,) = await aio_film.render.dead()
        assert letter["arguments"] == (-1,)
        (again,) = await aio_film.render.retry()
        with pytest.raises(ts.RemoteError, match="no frame -1"):
            await again

    with serving("aio_film:render"):
        asyncio.run(main())
    del sys.modules["aio_film"]


def test_other_tasks_run_while_a_retry_waits_for_room(shm_url):
    """B1: the task is to be put in the place of its dead letter, and there is no memory for it."""
    root = aio_worker(shm_url)(math.sqrt)

    async def main(space):
        retrying = asyncio.create_task(root.retry())
        async with asyncio.timeout(60):
            while space.stat()["waiting_for_room"] == 0:  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0)
        assert space.count("tupelo.task", REST) == 0
        space.take_all("fills", bytes)
        (again,) = await retrying
        assert space.count("tupelo.task", "math:sqrt", REST) == 1
        again.cancel()
        await asyncio.wait([again])

    with ts.connect(shm_url, size="2M", when_full="wait") as space:
        # Its argument is too large for what is left over of the memory of small tuples.
        space.put("tupelo.dead", "math:sqrt", "math:sqrt", (bytes(6_000),), {}, 0, {})
        with suppress(ts.SpaceFull):
            while True:
                space.put("fills", bytes(4_000), timeout=0)
        asyncio.run(main(space))
        assert space.count(REST) == 0


def test_a_retry_for_which_room_runs_out_returns_those_that_it_has_put(shm, shm_url, monkeypatch):
    root = worker(shm_url)(math.sqrt)
    for number in range(3):
        shm.put("tupelo.dead", "math:sqrt", "math:sqrt", (float(number),), {}, number, {})
    put_again = Address._put_again  # noqa: SLF001 - room that ends at an exact moment
    room = [1]

    async def put_again_if_there_is_room(address, mailbox, held):
        if not room:
            raise ts.SpaceFull
        room.pop()
        return await put_again(address, mailbox, held)

    monkeypatch.setattr(Address, "_put_again", put_again_if_there_is_room)
    (future,) = root.retry()
    assert [letter["arguments"] for letter in root.dead()] == [(1.0,), (2.0,)]
    with pytest.raises(ts.SpaceFull):
        root.retry()
    assert len(root.dead()) == 2
    assert future.cancel()
