"""Service and call: each call gets its own answer, whoever is killed on the way."""

import asyncio
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import calls
import pytest

import tupelo as ts
from tupelo import REST, aio
from tupelo.aio import batteries as awaited
from tupelo.batteries import Service, call


def start(code, *words):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def serving(space):
    """Return a function that serves in a thread, and stops that at the end."""
    running = []

    def serve(name, handler, **options):
        service = Service(space, name, handler, **options)
        thread = threading.Thread(target=service.run)
        thread.start()
        running.append((service, thread))
        return service

    yield serve
    for service, _ in running:
        service.stop()
    for _, thread in running:
        thread.join()
    assert space.count(REST) == 0


@pytest.fixture
def begin(space):  # noqa: ARG001 - which is to be closed later
    """Return a function that runs a service in a thread, and returns that one."""
    threads = []

    def begin(service):
        thread = threading.Thread(target=service.run)
        thread.start()
        threads.append(thread)
        return thread

    yield begin
    for thread in threads:
        thread.join()


def test_every_call_gets_its_own_answer(space, serving):
    serving("square", lambda number: number * number, concurrency=3)
    answers = {}

    def ask(begin):
        for number in range(begin, begin + 25):
            answers[number] = call(space, "square", number, timeout=60)

    threads = [threading.Thread(target=ask, args=(begin,)) for begin in range(0, 100, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: number * number for number in range(100)}


@pytest.mark.parametrize("argument", [None, 1, "text", [1, [2]], {"a": 1}, (1,), b"x", {1, 2}])
def test_an_argument_and_an_answer_may_be_of_any_kind(space, serving, argument):
    serving("echo", lambda argument: argument)
    assert call(space, "echo", argument, timeout=60) == argument


def test_requests_are_worked_on_at_the_same_time(space, serving):
    barrier = threading.Barrier(3)
    serving("meet", lambda _: barrier.wait(timeout=60), concurrency=3)
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(call(space, "meet", timeout=60)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [0, 1, 2]


def test_what_the_handler_raises_its_caller_gets_and_the_service_goes_on(space, serving):
    serving("divide", lambda number: 1 // number)
    with pytest.raises(ts.RemoteError, match=r"divide\(0\) failed on .*") as caught:
        call(space, "divide", 0, timeout=60)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "in <lambda>" in str(caught.value)
    assert "core/service.py" not in str(caught.value)
    assert caught.value.space == space.url
    assert call(space, "divide", 1, timeout=60) == 1


def test_an_answer_that_can_not_be_stored_is_an_error_of_the_call(space, serving):
    serving("bad", lambda _: (word for word in "no"))
    with pytest.raises(ts.RemoteError, match="a generator, which can not be pickled"):
        call(space, "bad", timeout=60)


def test_an_answer_whose_own_code_fails_while_it_is_stored_is_an_error_of_the_call(space, serving):
    serving("bad", lambda argument: calls.unreadable() if argument is None else argument)
    with pytest.raises(ts.RemoteError, match="not now"):
        call(space, "bad", timeout=60)
    assert call(space, "bad", 7, timeout=60) == 7


def test_an_answer_that_is_larger_than_the_space_is_an_error_of_the_call(new_url):
    with ts.connect(new_url("mem"), size="2M") as space:
        service = Service(space, "zeros", bytes)
        thread = threading.Thread(target=service.run)
        thread.start()
        with pytest.raises(ts.RemoteError, match="over the 2097152 that the space may hold"):
            call(space, "zeros", 4 << 20, timeout=60)
        assert call(space, "zeros", 2, timeout=60) == bytes(2)
        service.stop()
        thread.join()


def test_an_answer_waits_for_room_and_the_service_goes_on(new_url, eventually):
    """B1: also in a space that refuses a put without room."""
    with ts.connect(new_url("mem"), tuples_max=3) as space, ThreadPoolExecutor() as pool:

        def fill(number):
            with pytest.raises(ts.SpaceFull):
                while True:
                    space.put("in the way", timeout=0)
            return number

        service = Service(space, "fill", fill)
        running = pool.submit(service.run)
        for number in range(3):
            answer = pool.submit(call, space, "fill", number, timeout=60)
            eventually(lambda: space.stat()["waiting_for_room"] == 1)
            assert not answer.done()
            space.take_all("in the way")
            assert answer.result() == number
        service.stop()
        running.result()


def test_a_call_that_times_out_leaves_nothing_behind(space, serving, eventually):
    with pytest.raises(ts.Timeout, match=r"service 'nobody' did not answer within 0\.01 s: nobody"):
        call(space, "nobody", timeout=0.01)
    assert space.count(REST) == 0
    begun, go_on = threading.Event(), threading.Event()

    def slow(_):
        begun.set()
        go_on.wait()

    serving("slow", slow)
    eventually(lambda: space.stat()["waiters"] > 0)  # so it is handed the request at once
    failures = []

    def ask():
        try:
            call(space, "slow", timeout=0.2)
        except ts.Timeout as error:
            failures.append(error.args[0])

    thread = threading.Thread(target=ask)
    thread.start()
    assert begun.wait(60)
    thread.join()
    go_on.set()
    assert failures == ["service 'slow' did not answer within 0.2 s: somebody works on it"]
    # The answer comes, for nobody: it has a lease. It is taken away here, so as not to wait.
    space.take("tupelo.answer", REST, timeout=60)


def test_stop_ends_this_service_alone_when_it_is_done_with_what_it_does(space):
    first = Service(space, "echo", lambda argument: ("first", argument), concurrency=2)
    second = Service(space, "echo", lambda argument: ("second", argument))
    threads = [threading.Thread(target=one.run) for one in (first, second)]
    for thread in threads:
        thread.start()
    first.stop()
    threads[0].join()
    assert call(space, "echo", 1, timeout=60) == ("second", 1)
    second.stop()
    threads[1].join()
    assert space.count(REST) == 0


def test_a_stop_ends_a_handler_that_outlives_what_wakes_the_others(
    space, begin, eventually, monkeypatch
):
    monkeypatch.setattr("tupelo.batteries.core.runs.LEASE_S", 0.01)
    go_on = threading.Event()
    service = Service(space, "slow", lambda _: go_on.wait(60))
    thread = begin(service)
    space.put("tupelo.request", "slow", "a mailbox", 0, [None])
    eventually(lambda: space.count("tupelo.request", REST) == 0)  # it is being answered
    service.stop()
    eventually(lambda: space.count(REST) == 0)
    go_on.set()
    thread.join()
    assert space.take("tupelo.answer", "a mailbox", REST)[3:] == ("done", True)


def test_more_stops_than_runs_leave_nothing_and_the_next_run_answers(space, begin):
    service = Service(space, "echo", lambda argument: argument, concurrency=3)
    for number in range(3):
        thread = begin(service)
        assert call(space, "echo", number, timeout=60) == number
        for _ in range(3):
            service.stop()
        thread.join()
        service.stop()
        assert space.count(REST) == 0


def test_a_stop_before_the_first_run_ends_that_one_alone(space, begin):
    """Who starts a thread and stops it does not know whether it has got there."""
    service = Service(space, "echo", lambda argument: argument)
    service.stop()
    service.stop()
    service.run()
    thread = begin(service)
    assert call(space, "echo", 7, timeout=60) == 7
    service.stop()
    thread.join()
    assert space.count(REST) == 0


@pytest.mark.parametrize("when_full", ["error", "wait"])
def test_a_stop_ends_a_service_also_where_there_is_no_room_to_wake_it(
    new_url, eventually, monkeypatch, when_full
):
    monkeypatch.setattr("tupelo.batteries.core.service.LOOK_S", 0.01)
    url = new_url("mem")
    with (
        ts.connect(url, tuples_max=1, when_full=when_full) as space,
        ThreadPoolExecutor() as pool,
    ):
        service = Service(space, "echo", lambda argument: argument, concurrency=2)
        running = pool.submit(service.run)
        eventually(lambda: space.stat()["waiters"] > 0)
        space.put("in the way")
        service.stop()
        running.result()
        assert space.read_all(REST) == [("in the way",)]


FORKS = """
import os, sys, threading
import tupelo as ts
from tupelo.batteries import Service

space = ts.connect(sys.argv[1], create=False)
service = Service(space, "pid", lambda _: os.getpid())

def stop_when_told(number):
    space.take("stop", number)
    service.stop()

children = []
for number in range(2):
    child = os.fork()
    if child == 0:
        threading.Thread(target=stop_when_told, args=(number,)).start()
        service.run()
        os._exit(0)
    children.append(child)
    space.take("go on")
for _ in children:
    child, _ = os.wait()
    space.put("ended", children.index(child))
"""


def test_a_stop_in_a_forked_process_ends_the_run_of_that_one(shm, shm_url, eventually):
    parent = start(FORKS, shm_url)
    for number in range(2):
        # Two of each child, and the parent's: the first child is the first in the wait queue for
        # requests.
        in_line = 2 * (number + 1) + 1
        eventually(lambda in_line=in_line: shm.stat()["waiters"] == in_line)
        shm.put("go on")
    for number in (1, 0):
        shm.put("stop", number)
        assert shm.take("ended", int, timeout=60) == ("ended", number)
    parent.communicate()
    assert parent.returncode == 0
    assert shm.count(REST) == 0


def test_a_service_whose_space_is_closed_says_so(url):
    space = ts.connect(url)
    service = Service(space, "echo", lambda argument: argument, concurrency=3)
    timer = threading.Timer(0.1, space.close)
    timer.start()
    with pytest.raises(ts.SpaceClosed):
        service.run()
    timer.join()


SERVER = """
import os, sys, threading
import tupelo as ts
from tupelo.batteries import Service

space = ts.connect(sys.argv[1], create=False)

def handler(argument):
    unlucky = argument == "wait" and space.try_take("unlucky")
    space.put("begun", os.getpid())
    if unlucky:
        threading.Event().wait()
    return os.getpid()

Service(space, "pid", handler, concurrency=2, ttl=float(sys.argv[2])).run()
"""


def ask_in_a_thread(shm, argument):
    answers = []

    def ask():
        try:
            answers.append(call(shm, "pid", argument, timeout=60))
        except ts.RemoteError as error:
            answers.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread, answers


def test_a_request_whose_server_is_killed_is_answered_by_another(shm, shm_url):
    """K2, L5."""
    shm.put("unlucky")
    first = start(SERVER, shm_url, 3600)
    thread, answers = ask_in_a_thread(shm, "wait")
    assert shm.take("begun", int, timeout=60) == ("begun", first.pid)
    first.kill()
    first.communicate()
    second = start(SERVER, shm_url, 3600)
    thread.join()
    assert answers == [second.pid]
    second.kill()
    second.communicate()


def test_a_request_whose_server_is_stopped_is_answered_once_for_its_caller(
    shm, shm_url, eventually
):
    shm.put("unlucky")
    first = start(SERVER.replace("threading.Event().wait()", "space.take('go on')"), shm_url, 0.3)
    thread, answers = ask_in_a_thread(shm, "wait")
    shm.take("begun", first.pid, timeout=60)
    # The caller, the handler, and the other thread, which is handed what the first one loses.
    eventually(lambda: shm.stat()["waiters"] == 3)
    first.send_signal(signal.SIGSTOP)
    second = start(SERVER, shm_url, 3600)
    thread.join()
    assert answers == [second.pid]
    shm.put("go on")
    first.send_signal(signal.SIGCONT)
    # Its late answer is for nobody, and it goes on to serve.
    shm.take("tupelo.answer", ..., 0, "done", first.pid, timeout=60)
    second.kill()
    second.communicate()
    assert call(shm, "pid", timeout=60) == first.pid
    first.kill()
    first.communicate()


def test_a_request_that_kills_its_servers_is_given_up(shm, shm_url):
    deadly = SERVER.replace("threading.Event().wait()", "os.kill(os.getpid(), 9)")
    shm.put_all([("unlucky",)] * 3)
    thread, answers = ask_in_a_thread(shm, "wait")
    for _ in range(3):
        child = start(deadly, shm_url, 3600)
        child.communicate(timeout=60)
        assert child.returncode == -signal.SIGKILL
    last = start(deadly, shm_url, 3600)
    thread.join()
    last.kill()
    last.communicate()
    (error,) = answers
    assert isinstance(error, ts.RemoteError)
    assert "3 workers were killed" in str(error)


def test_ctrl_c_ends_a_server(shm, shm_url):
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + SERVER
    child = start(code, shm_url, 3600)
    assert call(shm, "pid", timeout=60) == child.pid
    shm.wait_none(
        "tupelo.request", REST, timeout=60
    )  # the answer comes before the end of its claim
    child.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in child.communicate(timeout=60)[1]
    shm.take_all("begun", int)
    assert shm.count(REST) == 0


def test_the_request_of_a_killed_caller_goes_when_it_would_have_given_up(shm, shm_url, eventually):
    code = (
        "import sys, tupelo; from tupelo.batteries import call;"
        "call(tupelo.connect(sys.argv[1], create=False), 'nobody', 7, timeout=1)"
    )
    child = start(code, shm_url)
    request = shm.read("tupelo.request", "nobody", str, 0, [7], timeout=60)
    assert len(request[2]) == 24
    child.kill()
    child.communicate()
    eventually(lambda: shm.count(REST) == 0)


def test_another_language_can_ask_and_answer(space, serving):
    serving("double", lambda number: 2 * number)
    space.put("tupelo.request", "double", "my mailbox", 3, [21])
    assert space.take("tupelo.answer", "my mailbox", 3, str, ..., timeout=60)[3:] == ("done", 42)
    thread = threading.Thread(
        target=lambda: space.put("result", call(space, "triple", 2, timeout=60))
    )
    thread.start()
    with space.claim("tupelo.request", "triple", REST, timeout=60) as (_, _, box, number, (asked,)):
        space.put("tupelo.answer", box, number, "done", 3 * asked)
    thread.join()
    assert space.take("result", int) == ("result", 6)


def test_tasks_ask_and_answer(space):
    async def main():
        async with aio.connect(space.url) as shared:

            async def handler(argument):
                await asyncio.sleep(0)
                return -argument

            service = awaited.Service(shared, "negate", handler, concurrency=4)
            running = asyncio.create_task(service.run())
            calls = (awaited.call(shared, "negate", n, timeout=60) for n in range(50))
            assert await asyncio.gather(*calls) == [-n for n in range(50)]
            with pytest.raises(ts.RemoteError, match="TypeError: bad operand type"):
                await awaited.call(shared, "negate", "x", timeout=60)
            with pytest.raises(ts.Timeout, match="service 'nobody' did not answer"):
                await awaited.call(shared, "nobody", timeout=0.01)
            asking = asyncio.create_task(awaited.call(shared, "nobody"))
            await shared.read("tupelo.request", "nobody", REST)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await service.stop()
            await running
            running = asyncio.create_task(service.run())
            await asyncio.sleep(0)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert await shared.count(REST) == 0
            assert (await shared.stat())["waiters"] == 0

    asyncio.run(main())


def test_stops_end_the_runs_of_tasks_as_those_of_threads(space):
    async def main():
        async with aio.connect(space.url) as shared:
            service = awaited.Service(shared, "echo", lambda argument: argument, concurrency=3)
            await service.stop()
            await service.run()
            for number in range(3):
                running = asyncio.create_task(service.run())
                assert await awaited.call(shared, "echo", number, timeout=60) == number
                for _ in range(3):
                    await service.stop()
                await running
                await service.stop()
                assert await shared.count(REST) == 0

    asyncio.run(main())


def test_a_blocking_service_refuses_a_coroutine_function(space):
    async def handler(_):
        await asyncio.sleep(0)

    space.put("tupelo.request", "a", "box", 0, [1])
    with pytest.raises(RuntimeError, match="waits for an event loop"):
        Service(space, "a", handler).run()
    assert space.count("tupelo.request", "a", REST) == 1


@pytest.mark.parametrize(
    ("make", "error", "problem"),
    [
        (lambda s: Service(s, "a", None), TypeError, "handler has the type NoneType: give a func"),
        (lambda s: Service(s, 1, print), TypeError, "name has the type int: give a str"),
        (lambda s: Service(s, "a", print, concurrency=0), ValueError, "concurrency is 0: give a"),
        (lambda s: Service(s, "a", print, ttl=-1), ValueError, "ttl"),
        (lambda s: call(s, 7), TypeError, "service has the type int: give a str"),
        (lambda s: call(s, "a", timeout=-1), ValueError, "timeout"),
        (lambda s: call(s, "a", (n for n in "x")), ts.NotEncodable, "a generator"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_happens(space, make, error, problem):
    with pytest.raises(error, match=problem):
        make(space)
    assert space.count(REST) == 0


def test_what_is_shown_says_where_it_is(space):
    service = Service(space, "a", print)
    assert repr(service) == f"<Service 'a' in {space.url}>"
    assert service.name == "a"


@pytest.mark.parametrize("error", [SystemExit("bad"), asyncio.CancelledError()], ids=type)
def test_whatever_a_handler_raises_its_caller_is_told_and_the_service_goes_on(
    space, serving, error
):
    def handler(argument):
        if argument is None:
            raise error
        return argument

    serving("whatever", handler)
    with pytest.raises(ts.RemoteError):
        call(space, "whatever", timeout=60)
    assert call(space, "whatever", 7, timeout=60) == 7


def test_a_handler_that_awaits_a_cancelled_task_does_not_end_its_service(space):
    async def handler(argument):
        if argument is None:
            task = asyncio.ensure_future(asyncio.sleep(60))
            task.cancel()
            await task
        return argument

    async def ask():
        connection = aio.connect(space.url)
        service = awaited.Service(connection, "whatever", handler)
        running = asyncio.ensure_future(service.run())
        with pytest.raises(ts.RemoteError):
            await awaited.call(connection, "whatever", timeout=60)
        assert await awaited.call(connection, "whatever", 7, timeout=60) == 7
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(ask())


def test_ctrl_c_is_raised_also_where_a_thread_has_failed_before(space, monkeypatch):
    service = Service(space, "echo", lambda argument: argument, concurrency=2)
    has_failed, end = threading.Event(), service._end  # noqa: SLF001 - when that is noted

    async def serve(_run):
        if threading.current_thread() is not threading.main_thread():
            raise ZeroDivisionError
        has_failed.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(service._core, "serve", serve)  # noqa: SLF001 - it is the point
    monkeypatch.setattr(service, "_end", lambda begun: (end(begun), has_failed.set()))
    with pytest.raises(KeyboardInterrupt):
        service.run()
