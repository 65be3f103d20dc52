"""The tree of exceptions."""

import pickle
from pathlib import Path

import pytest

import tupelo as ts
from tupelo import errors
from tupelo.batteries import BrokenBarrier

PAGES = Path(__file__).parents[2] / "crates" / "cli" / "errors"

CLASSES = [getattr(ts, name) for name in errors.__all__]


def test_every_exception_is_a_tupelo_error_and_says_where_it_is_caught():
    for one in CLASSES:
        assert issubclass(one, ts.TupeloError)
        assert one.__module__ == "tupelo"
        assert one.__doc__


def test_the_tree_drawn_in_the_module_is_the_tree():
    drawn = {
        line.strip(" *-").split()[0]: line.partition("(also a")[2]
        for line in errors.__doc__.splitlines()
        if line.strip().startswith(("*", "-"))
    }
    assert set(drawn) == set(errors.__all__)
    for name, also in drawn.items():
        bases = [base.__name__ for base in getattr(ts, name).__bases__]
        assert all(base in also for base in bases if base not in ("TupeloError", "Exception"))


def test_a_step_that_is_too_large_is_beyond_a_limit():
    assert issubclass(ts.TransactionTooBig, ts.LimitExceeded)  # B2


def test_codes_differ():
    codes = [one.code for one in CLASSES]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize(
    "one",
    # The page of the root is that of the system's refusals, which have no class of their own.
    [*(one for one in CLASSES if one is not ts.TupeloError), BrokenBarrier],
    ids=lambda one: one.__name__,
)
def test_every_code_has_a_page_that_begins_with_it_and_the_class(one):
    page = (PAGES / f"{one.code}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {one.code} {one.__name__}: ")


@pytest.mark.parametrize(
    ("code", "cases"),
    [
        ("TUP-001", ["`where=", "`order=F.max(", "Loops"]),
        ("TUP-005", ["claimed", "transaction", "`after=`", "`tupelo dead ", "`tupelo requeue "]),
        ("TUP-017", ["blocked callers", "`buffer=`", "larger than the whole buffer"]),
        ("TUP-019", ["`done`", "`commit`", "thread", "task", "`shm://` spaces", "`on=()`", "fork"]),
    ],
)
def test_the_page_of_a_code_with_several_causes_names_them(code, cases):
    page = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    assert [case for case in cases if case not in page] == []


@pytest.mark.parametrize("one", CLASSES, ids=lambda one: one.__name__)
def test_an_exception_has_code_hint_and_space_and_survives_pickling(one):
    error = errors.make(one.__name__, "it happened", "do this\nthen that", "mem://x")
    assert type(error) is one
    assert str(error) == f"{one.code}: it happened\n  do this\n  then that"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is one
    assert (str(again), again.hint, again.space) == (str(error), "do this\nthen that", "mem://x")


def test_programs_may_raise_them_too():
    assert str(ts.Timeout("too late")) == "TUP-003: too late"
    assert ts.Timeout("too late").space is None
    assert str(ts.SpaceFull()) == "TUP-005: SpaceFull"
