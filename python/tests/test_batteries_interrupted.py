"""Ctrl-C at any place of a battery's call: nothing stays that nobody waits for (T5)."""

import itertools
from contextlib import suppress

import pytest
from interrupting import at_every_place

from tupelo import REST
from tupelo.batteries import Barrier, BrokenBarrier, call

# Of one that had not begun when Ctrl-C came.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_wait_at_a_barrier_that_ctrl_c_ends_anywhere_has_not_come_t5(space, is_first):
    names = (f"epoch {number}" for number in itertools.count())
    name = ""

    def prepare():
        nonlocal name
        name = next(names)
        if not is_first:  # another one has come, and left: there is a tuple already
            state = ("tupelo.barrier", name, 3, 0, 0, [], [])
            space.put(*state)

    def wait():
        with suppress(BrokenBarrier):
            Barrier(space, name, parties=3).wait(timeout=0)

    def check(where):
        found = space.try_take("tupelo.barrier", name, REST)
        came = 0 if found is None else found[4]
        assert came in {0, -1}, where
        prepare()

    prepare()
    assert at_every_place(wait, check) > 20


def test_a_call_that_ctrl_c_ends_anywhere_leaves_no_request_t5(space, monkeypatch):
    """Without a timeout the request has no lease: it would be there for ever, and be worked on."""
    monkeypatch.setattr("tupelo.batteries.core.service.unique", lambda: "box")

    def ask():
        space.put("tupelo.answer", "box", 0, "done", 4)
        assert call(space, "square", 2) == 4

    def check(where):
        requests = space.take_all("tupelo.request", REST)
        space.take_all(REST)
        assert len(requests) == (1 if where is None else 0), where  # nobody serves here

    assert at_every_place(ask, check) > 5
