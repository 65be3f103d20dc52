"""`consume` and `finish`, composed of other verbs.

`finish` puts a mark, the tuple `("tupelo.finish", is_over, text, number)` with the text of the
template. Templates which ask for kinds seldom meet a mark, as few tuples have a bool in that field.
A look for the mark precedes each take and costs little. The mark stays: it ends every `consume` of
an equal template, whenever that begins.

A mark belongs to one batch. The first consumer that finds nothing left makes `is_over` of it True.
A later match belongs to the next batch, and its consumer removes the mark. Each mark has a number
of its own, so that a consumer only changes or removes a mark that it has seen.

A consumer that finds nothing joins the wait queue for a match and watches for the mark; whichever
comes first ends its sleep. It ends when the mark is in the space and nothing matches. A tuple that
is held and may come back counts as a match (rule O9).
"""

from __future__ import annotations

import os
from time import monotonic

from tupelo._native import pinned, renewed, waiter
from tupelo.errors import SpaceFull, SpaceRemoved, Timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from tupelo._native import Space, Template

__all__ = ["SIGN", "Mark", "consume", "finish", "new_mark", "those_of"]

SIGN = "tupelo.finish"

HELD_S = 0.05
"""How long to wait for a held tuple before looking whether it came back to us."""


class Mark:
    """The marks of one template, for its consumers; for both faces, as nothing waits."""

    def __init__(self, space: Space, template: Template[Any]) -> None:
        """Note which."""
        self._space = space
        self._text = str(template)
        self.any = (SIGN, bool, self._text, int)
        """The template that finds a mark, for its waiters."""

    def over(self) -> tuple[Any, ...] | None:
        """Return the mark of a finished batch with nothing left; call it before the next take."""
        return self._space.try_read(SIGN, True, self._text, int)  # noqa: FBT003 - a field

    def begin_anew(self, over: tuple[Any, ...] | None) -> None:
        """Remove the mark of the batch before: something that came after it was taken."""
        if over is not None:
            self._space.try_take(*over)

    def ends(self, is_none_left: Callable[[], bool]) -> bool:
        """Whether the batch was finished and nothing is left of it, which the mark says then."""
        mark = self._space.try_read(*self.any)
        if mark is None or not is_none_left():
            return False
        _, is_over, text, number = mark
        if is_over:
            return True
        try:
            # Exactly the mark that was there before the look: not that of the next batch.
            return self._space.try_swap(*mark, to=(SIGN, True, text, number)) is not None
        except SpaceFull:
            return True  # as well, but that the next batch finds it as if it were its own


def finish(space: Space, template: Template[Any]) -> None:
    """End every `consume` of `template` once nothing matches."""
    mark = new_mark(template)
    over, said = those_of(template)
    if space.try_swap(*over, to=mark) is None:
        space.put_if_absent(*mark, unless=said)


def new_mark(template: Template[Any]) -> tuple[Any, ...]:
    """Return what `finish` puts."""
    return (SIGN, False, str(template), int.from_bytes(os.urandom(7)))


def those_of(template: Template[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the templates of a mark whose batch is over, and of a mark whose batch is not."""
    text = str(template)
    return (SIGN, True, text, int), (SIGN, False, text, int)


def consume(
    space: Space, template: Template[Any], idle_s: float | None
) -> Iterator[tuple[Any, ...]]:
    """Take matches until the mark is there and nothing matches, or none came for `idle_s`."""
    while True:
        connection = pinned(space)
        try:
            yield from _consume(connection, template, idle_s)
        except SpaceRemoved:
            if not renewed(space, connection):
                raise
        else:
            return


def _consume(
    space: Space, template: Template[Any], idle_s: float | None
) -> Iterator[tuple[Any, ...]]:
    """Do so in one space."""
    mark = Mark(space, template)
    while True:
        over = mark.over()
        taken = space.try_take(template)
        if taken is None:
            taken = _wait(space, template, mark, idle_s)
            if taken is None:
                return
        else:
            mark.begin_anew(over)
        yield taken


def _wait(
    space: Space, template: Template[Any], mark: Mark, idle_s: float | None
) -> tuple[Any, ...] | None:
    """Wait for a match and return it, or None at the end."""
    give_up_at = None if idle_s is None else monotonic() + idle_s
    match = waiter(space, "take", template)
    # Watching begins before the first look at the mark, so that the mark cannot slip through in
    # between.
    finished = waiter(space, "put", *mark.any)
    try:
        match.wakes(finished)
        while True:
            over = mark.over()
            # Not `finish`, which would wait, and let no other thread run, if the put that handed
            # something over has died and was undone.
            if match.wait(0) and (taken := match.finish_now()) is not None:
                mark.begin_anew(over)
                return taken
            left_s = None if give_up_at is None else max(0.0, give_up_at - monotonic())
            if left_s == 0 or mark.ends(lambda: _none_left(space, template)):
                # What comes between the two looks has come in time, too.
                taken = match.finish_now() if match.end_wait() else None
                mark.begin_anew(over if taken is not None else None)
                return taken
            if space.try_read(*mark.any) is None:
                finished.wait(left_s)
    finally:
        # A tuple that was handed over in the meantime goes back to its place.
        match.cancel()
        finished.cancel()


def _none_left(space: Space, template: Template[Any]) -> bool:
    try:
        space.wait_none(template, timeout=HELD_S)
    except Timeout:
        return False
    return True
