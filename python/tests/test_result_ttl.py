"""Results that nobody collects disappear (`result_ttl`)."""

import subprocess
import sys

import pytest

import tupelo as ts
from tupelo.batteries import worker
from tupelo.tasks import protocol
from tupelo.tasks.serving import Server

HOUR_S = 3600


def lease_of_answers(space):
    """Return for how long the only answer in the space stays, rounded to minutes."""
    (shape,) = [shape for shape in space.stat()["shapes"] if shape["count"] and shape["leased"]]
    return shape["leased"]


def put_task(space, *, function="math:sqrt", arguments=(4.0,), attempts_max=1):
    task = protocol.Task("ttl", function, arguments, {}, "mine", 1, 0, attempts_max)
    space.put(*task.to_tuple())
    space.put(protocol.END, "ttl")


def serve(space, **terms):
    Server(space, "ttl", **terms).serve()


@pytest.mark.parametrize("arguments", [(4.0,), ("no number",)], ids=["done", "failed"])
def test_an_answer_that_nobody_takes_disappears(space, eventually, arguments):
    put_task(space, arguments=arguments)
    serve(space, result_ttl_s=0.2)
    eventually(lambda: space.count(protocol.answer_to("mine")) == 0)


def test_by_default_it_stays_for_an_hour_and_for_ever_with_none(space):
    assert protocol.RESULT_TTL_S == HOUR_S
    put_task(space)
    serve(space)
    assert lease_of_answers(space) == 1
    assert space.take(protocol.answer_to("mine"))[3:] == ("done", 2.0)
    put_task(space)
    serve(space, result_ttl_s=None)
    assert [shape["leased"] for shape in space.stat()["shapes"] if shape["count"]] == [0]


def test_a_task_that_is_tried_again_and_a_dead_letter_have_no_lease(space, eventually):
    put_task(space, arguments=("no number",), attempts_max=2)
    serve(space, result_ttl_s=0.05, keeps_dead=True)
    space.put(protocol.END, "ttl")
    serve(space, result_ttl_s=0.05, keeps_dead=True)
    eventually(lambda: space.count(protocol.answer_to("mine")) == 0)
    assert space.count(protocol.dead_of("ttl")) == 1


def test_the_time_is_that_of_the_worker_and_is_checked():
    def render():
        pass

    render.__module__, render.__qualname__ = "film", "render"
    for value, problem in ((0, "result_ttl is 0"), (-1, "result_ttl"), ("x", "result_ttl")):
        with pytest.raises((ValueError, TypeError), match=problem):
            worker("shm://film", result_ttl=value)
    address = worker("shm://film", result_ttl=60)(ts.connect).address
    assert address.crew_terms().result_ttl_s == 60
    assert worker("shm://film")(ts.connect).address.crew_terms().result_ttl_s == HOUR_S


SUBMITTER = """
import sys, tupelo as ts
from tupelo.batteries import worker

space = ts.connect(sys.argv[1])
worker(sys.argv[1])(ts.connect).submit("mem://never")
print("submitted", flush=True)
import os; os._exit(0)
"""


def test_the_answer_to_a_program_that_has_ended_disappears(shm, eventually):
    done = subprocess.run(
        [sys.executable, "-c", SUBMITTER, shm.url], capture_output=True, text=True, check=True
    )
    assert done.stdout == "submitted\n"
    (task,) = shm.read_all(protocol.like(protocol.TASK, ts.REST))
    shm.put(protocol.END, task[1])
    Server(shm, task[1], result_ttl_s=0.2).serve()
    eventually(lambda: shm.count(protocol.ANSWER, ts.REST) == 0)
