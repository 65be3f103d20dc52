"""The tuples of tasks, as a program without our code uses them (docs/tasks.md)."""

import sys
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from interrupting import at_every_place

import tupelo as ts
from tupelo import REST
from tupelo.tasks.crew import Terms
from tupelo.tasks.mailbox import Mailbox

sys.path.insert(0, str(Path(__file__).parent))

QUEUE = "calls:double"


def task(function="calls:double", arguments=(3,), number=0, failures=0, attempts_max=1):
    return ("tupelo.task", QUEUE, function, arguments, {}, "mine", number, failures, attempts_max)


@pytest.fixture
def served(space):
    """A space in which a thread serves the queue, until it is told to end."""

    def serve(**terms):
        worker = Thread(target=Terms(QUEUE, **terms).server(space).serve)
        worker.start()
        workers.append(worker)
        return space

    workers = []
    yield serve
    space.put_all([("tupelo.end", QUEUE)] * len(workers))
    for worker in workers:
        worker.join()


def answer(space, number=0):
    return space.take("tupelo.answer", "mine", number, str, ..., timeout=60)[3:]


def test_a_task_put_by_hand_is_answered(served):
    space = served()
    space.put(*task())
    assert answer(space) == ("done", 6)
    space.put(*task("math:sqrt", (4.0,), number=1))
    assert answer(space, 1) == ("done", 2.0)
    space.wait_none("tupelo.task", REST, timeout=0)


def test_a_tuple_that_computes_itself_is_put_by_hand(served):
    space = served()
    space.put(*task("tupelo.eval", ("x", ("tupelo.call", "calls:double", (2,), {}))))
    assert answer(space) == ("done", ("x", 4))
    assert space.take("x", int) == ("x", 4)


def test_a_task_served_by_hand_fulfils_a_future(space):
    future = Mailbox(space).submit(QUEUE, "any words", (1,), {"k": 2}, attempts_max=1)
    claim = space.claim("tupelo.task", QUEUE, REST, timeout=60)
    _, _, function, arguments, keywords, mailbox, number, failures, attempts_max = claim.tuple
    assert (function, arguments, keywords) == ("any words", (1,), {"k": 2})
    assert (failures, attempts_max) == (0, 1)
    claim.put("tupelo.answer", mailbox, number, "done", [1, 2])
    claim.done()
    assert future.result(60) == [1, 2]


def test_a_failure_in_another_language_is_told_with_what_there_is(space):
    future = Mailbox(space).submit(QUEUE, "any words", (1,), {}, attempts_max=1)
    _, _, _, _, _, mailbox, number, _, _ = space.take("tupelo.task", QUEUE, REST)
    space.put("tupelo.answer", mailbox, number, "failed", {"traceback": "panicked at 'x'"})
    error = future.exception(60)
    assert str(error).startswith("TUP-011: any words(1) failed on an unknown host (pid unknown)")
    assert "panicked at 'x'" in str(error)
    assert error.attempts is None


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("out of memory", "out of memory"),
        (None, "None"),
        ({7: "seven"}, "the worker told no reason"),
        ({"type": "builtins.ExceptionGroup", "arguments": ("a", "b"), "traceback": "x"}, "x"),
        ({"type": 7, "arguments": 7, "attempts": "many", "traceback": 7}, "7"),
    ],
    ids=str,
)
def test_a_failure_that_does_not_keep_to_the_protocol_ends_its_future_only(space, error, told):
    mailbox = Mailbox(space)
    bad = mailbox.submit(QUEUE, "f", (), {}, attempts_max=1)
    good = mailbox.submit(QUEUE, "f", (), {}, attempts_max=1)
    space.put("tupelo.answer", mailbox.name, 0, "failed", error)
    with pytest.raises(ts.RemoteError, match=rf"attempt .* of None\n  {told}"):
        bad.result(10)
    space.put("tupelo.answer", mailbox.name, 1, "done", "fine")
    assert good.result(60) == "fine"


def test_a_task_that_raised_is_tried_again_behind_the_others(served, space):
    space.put(*task("calls:fail", number=0, attempts_max=3))
    space.put(*task(number=1))
    served()
    assert answer(space, 1) == ("done", 6)
    outcome, error = answer(space, 0)
    assert outcome == "failed"
    assert (error["attempts"], error["attempts_max"]) == (3, 3)
    assert error["traceback"].endswith("ZeroDivisionError: 3")
    assert space.count("tupelo.dead", REST) == 0


def test_a_public_queue_keeps_its_dead_letters(served):
    space = served(keeps_dead=True)
    space.put(*task("calls:fail", ("why",), attempts_max=2))
    assert answer(space)[0] == "failed"
    ((*letter, error),) = space.take_all("tupelo.dead", REST)
    assert letter == ["tupelo.dead", QUEUE, "calls:fail", ("why",), {}, 0]
    assert error["attempts"] == 2


def test_a_worker_of_one_function_calls_no_other(served):
    space = served(only="calls:double")
    space.put(*task("os:getpid", ()))
    assert answer(space)[1]["traceback"].endswith("this worker serves calls:double, not os:getpid")
    space.put(*task(number=1))
    assert answer(space, 1) == ("done", 6)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nowhere:f", "there is no module nowhere for nowhere:f; it was looked for in "),
        ("calls:nothing", "calls:nothing is not there: module 'calls' has no attribute 'nothing'"),
        ("calls:os", "calls:os has the type module, which can not be called"),
        ("double", "'double' is no path of a function: write module:function"),
    ],
)
def test_a_function_that_is_not_there_is_named(served, path, problem):
    space = served()
    space.put(*task(path))
    assert f"LookupError: {problem}" in answer(space)[1]["traceback"]


def test_a_full_space_has_room_for_the_answer_in_the_end(new_url):
    """B1: the answer is larger than the task, and appears when something else is taken."""
    with ts.connect(new_url("mem"), tuples_max=2) as space:
        worker = Thread(target=Terms(QUEUE, keeps_dead=True).server(space).serve)
        space.put("something", "else")
        space.put(*task("calls:fail"))
        worker.start()
        # The letter and the answer are two tuples: no room beside something else.
        with pytest.raises(ts.Timeout):
            space.read("tupelo.answer", REST, timeout=0.3)
        space.take("something", str)
        assert answer(space)[0] == "failed"
        space.take("tupelo.dead", REST)
        space.put("tupelo.end", QUEUE)
        worker.join()


class Unwelcome:
    """Can be stored, and not be made again."""

    def __reduce__(self):
        return (int, ("no number",))


def test_an_answer_that_can_not_be_read_ends_its_future_only(space):
    mailbox = Mailbox(space)
    bad = mailbox.submit(QUEUE, "f", (), {}, attempts_max=1)
    good = mailbox.submit(QUEUE, "f", (), {}, attempts_max=1)
    worse = mailbox.submit(QUEUE, "f", (), {}, attempts_max=1)
    space.put("tupelo.answer", mailbox.name, 0, "done", Unwelcome())
    space.put("tupelo.answer", mailbox.name, 1, "done", "fine")
    with pytest.raises(ts.NotEncodable, match="can not be loaded here"):
        bad.result(60)
    assert good.result(60) == "fine"
    space.put("tupelo.answer", mailbox.name, 2, "done", "fine too")
    assert worse.result(60) == "fine too"


def test_a_task_that_is_gone_ends_its_future_and_one_in_somebodys_hands_does_not(space):
    mailbox = Mailbox(space)
    futures = [mailbox.submit(QUEUE, "any words", (n,), {}, attempts_max=1) for n in range(3)]
    held, gone, waiting = futures
    claim = space.claim("tupelo.task", QUEUE, REST, timeout=60)
    space.take("tupelo.task", QUEUE, REST)
    error = gone.exception(60)
    assert isinstance(error, ts.RemoteError)
    assert error.args[0].startswith("any words(1) and its answer are not in the space any more")
    assert error.space == space.url
    assert not held.done()
    assert not waiting.done()
    claim.put("tupelo.answer", mailbox.name, 0, "done", 7)
    claim.done()
    assert held.result(60) == 7
    assert waiting.cancel()


def test_ctrl_c_while_a_task_is_put_leaves_no_answer_due_that_never_comes(space):
    mailbox = Mailbox(space)

    def check(where):
        due = mailbox.due()
        assert len(due) == space.count("tupelo.task", REST), where
        assert all(future.cancel() for future in due)
        assert space.count(REST) == 0

    submit = partial(mailbox.submit, QUEUE, "calls:double", (3,), {}, attempts_max=1)
    assert at_every_place(submit, check) > 5


def test_a_task_that_can_not_be_read_is_answered_and_its_worker_goes_on(url):
    """V3: it is no dead letter, since nobody could put it again as it was."""
    with ts.connect(url, objects="pickle") as generous, ts.connect(url, objects="strict") as strict:
        worker = Thread(target=Terms(QUEUE, keeps_dead=True).server(strict).serve)
        worker.start()
        generous.put(*task(arguments=(1j,), attempts_max=3))
        generous.put(*task(number=1))
        assert answer(generous, 1) == ("done", 6)
        outcome, error = answer(generous)
        assert outcome == "failed"
        assert "is a pickled builtins.complex, which this" in error["traceback"]
        assert (error["attempts"], error["is_kept"]) == (1, False)
        generous.put("tupelo.end", QUEUE)
        worker.join()
        assert generous.count(REST) == 0
