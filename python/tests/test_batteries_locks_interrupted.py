"""Ctrl-C in a block of a lock leaves nothing held by who is in no block (T5)."""

import pytest
from interrupting import at_every_place

from tupelo.batteries import Lock, RWLock, Semaphore

MAKERS = {
    "lock": lambda space: Lock(space, "door"),
    "semaphore": lambda space: Semaphore(space, "door", n=2),
    "reader": lambda space: RWLock(space, "door", readers=2).reader,
    "writer": lambda space: RWLock(space, "door", readers=2).writer,
}


def held(space):
    return sum(len(shape["claims"]) for shape in space.stat()["shapes"])


# Of one that had not begun when Ctrl-C came, and one that had just been handed out.
@pytest.mark.filterwarnings("ignore:a claim on .* was forgotten:ResourceWarning")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("kind", MAKERS)
def test_who_handles_ctrl_c_of_an_acquire_can_hold_it_t5(space, kind):
    acquirable = MAKERS[kind](space)

    def acquire():
        acquirable.acquire(timeout=5)

    def check(where):
        if where is None:
            acquirable.release()
        # As long as the traceback lives, its frames know what there is of a permit.
        assert held(space) == 0, where

    assert at_every_place(acquire, check, while_handled=True) > 10


# Of one that had not begun when Ctrl-C came, and one that had just been handed out.
@pytest.mark.filterwarnings("ignore:a claim on .* was forgotten:ResourceWarning")
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
# Ctrl-C in a `__del__`.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", MAKERS)
def test_ctrl_c_at_any_place_of_a_block_leaves_nothing_held_t5(space, kind):
    acquirable = MAKERS[kind](space)

    def block():
        with acquirable:
            assert held(space) > 0

    def check(where):
        if where is not None and where.endswith(" call __exit__"):
            # The end of the block has not begun: there is nobody yet who could give it back.
            acquirable.__exit__(None, None, None)
        assert held(space) == 0, where

    assert at_every_place(block, check) > 20


@pytest.mark.parametrize("kind", MAKERS)
def test_who_handles_ctrl_c_before_a_block_can_hold_what_it_was_to_hold_t5(
    space, kind, monkeypatch
):
    acquirable = MAKERS[kind](space)
    holdings = acquirable._acquirable.holdings  # noqa: SLF001 - it comes behind what is noted there
    push = holdings.push

    def push_and_interrupt(permit, *, is_block):
        push(permit, is_block=is_block)
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(holdings, "push", push_and_interrupt)
        with pytest.raises(KeyboardInterrupt) as caught, acquirable:
            pytest.fail("it was interrupted")
    assert held(space) == 0
    assert caught.tb is not None  # its frames know the permit
