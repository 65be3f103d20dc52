"""The cases of conformance/ hold in Python, for all kinds of space here and both APIs."""

import dataclasses
import json
from itertools import chain, repeat
from pathlib import Path

import pytest
from conformance import awaited, synchronous
from conformance.entries import Entries, forms_in
from conformance.run import Run, operation

import tupelo as ts

CASES = [
    case
    for path in sorted((Path(__file__).parents[2] / "conformance").glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
]

NOT_FOR_TASKS = {
    "a blocked call with a condition that gives up with a tuple in its hands puts it back to its "
    "place": "a task looks for a match when it goes on, and returns with it at once: there is no "
    "moment at which it has one in its hands and could be cancelled",
    "of several shapes the oldest comes first": "the runner holds all matches until the task is in "
    "the wait queue. They come back shape by shape, and the task has the first that does",
}
"""The cases that tell of something which a call of `tupelo.aio` never does, and why."""


def named(case):
    return case["name"]


def for_tasks(case):
    why = NOT_FOR_TASKS.get(case["name"])
    marks = [] if why is None else pytest.mark.xfail(reason=why, raises=AssertionError, strict=True)
    return pytest.param(case, marks=marks, id=case["name"])


def spaces(scheme, new_url):
    """Return what makes up the URLs of a case: no step is on disk in two files at one moment."""
    schemes = chain([scheme], repeat("shm" if scheme == "file" else scheme))
    return lambda: new_url(next(schemes))


@pytest.mark.parametrize("scheme", ["mem", "shm", "file"])
@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_case_holds(case, scheme, new_url):
    synchronous.hold(case, spaces(scheme, new_url))


@pytest.mark.parametrize("scheme", ["mem", "shm", "file"])
@pytest.mark.parametrize("case", [for_tasks(case) for case in CASES])
def test_a_case_holds_for_the_tasks_of_an_event_loop(case, scheme, new_url):
    awaited.hold(case, spaces(scheme, new_url))


def test_every_case_that_is_not_for_tasks_is_there():
    assert set(NOT_FOR_TASKS) <= set(map(named, CASES))


def test_every_operation_of_the_cases_is_known():
    assert CASES
    operations = {operation(step) for case in CASES for step in case["steps"]}
    assert operations <= set(vars(Run))


@pytest.mark.parametrize(
    "case", [case for case in CASES if Entries(case["steps"]).schema], ids=named
)
def test_a_case_of_entries_holds_whatever_classes_of_these_names_the_program_has(case, new_url):
    strangers = [
        dataclasses.make_dataclass(
            "Stranger", [("stranger", int)], namespace={"__tupelo_name__": cls.__tupelo_name__}
        )
        for cls in Entries(case["steps"]).schema
    ]
    with ts.connect(new_url("mem"), schema=strangers):
        synchronous.hold(case, lambda: new_url("mem"))


def test_the_forms_of_entries_are_found_in_a_text():
    assert forms_in("7, Job, list(1), 'Job{id: 7}'") == []
    assert forms_in("Job{}") == [("Job", (), ())]
    assert forms_in(
        "1, (Still(Render, 'a b'){id: map(x: 1, y: 2), 'c, d': Nested{e: 'f: {'}})"
    ) == [
        ("Still", ("Render", "a b"), ("id", "c, d")),
        ("Nested", (), ("e",)),
    ]
