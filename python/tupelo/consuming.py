"""`consume` and `finish`, composed of other verbs.

`finish` puts a mark, the tuple `(("tupelo.finish",), text)` with the text of the template. Its
first field is a tuple, so that templates which ask for kinds seldom meet it. The mark stays: it
ends every `consume` of an equal template, whenever that begins.

A consumer that finds nothing gets in line for a match and watches for the mark; whichever comes
first ends its sleep. It ends when the mark is there and nothing matches, not even a tuple that
somebody holds and may give back (rule O9).
"""

from __future__ import annotations

from time import monotonic

from tupelo._native import waiter
from tupelo.errors import Timeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tupelo._native import Space, Template

__all__ = ["consume", "finish"]

SIGN = ("tupelo.finish",)

HELD_S = 0.05
"""How long to wait for a tuple that somebody holds before looking whether it came back to us."""


def finish(space: Space, template: Template[Any]) -> None:
    """End every `consume` of `template` once nothing matches."""
    space.put_if_absent(SIGN, str(template))


def consume(
    space: Space, template: Template[Any], idle_s: float | None
) -> Iterator[tuple[Any, ...]]:
    """Take matches until the mark is there and nothing matches, or none came for `idle_s`."""
    mark = (SIGN, str(template))
    while True:
        taken = space.try_take(template)
        if taken is None:
            taken = _wait(space, template, mark, idle_s)
            if taken is None:
                return
        yield taken


def _wait(
    space: Space, template: Template[Any], mark: tuple[Any, ...], idle_s: float | None
) -> tuple[Any, ...] | None:
    """Wait for a match and return it, or None at the end."""
    give_up_at = None if idle_s is None else monotonic() + idle_s
    match = waiter(space, "take", template)
    # Watching begins before the first look at the mark, so that it can not slip through in between.
    over = waiter(space, "put", *mark)
    try:
        match.wakes(over)
        while True:
            # Not `finish`, which would wait, and let no other thread run, if the put that handed
            # something over has died and was undone.
            if match.wait(0) and (taken := match.finish_now()) is not None:
                return taken
            left_s = None if give_up_at is None else max(0.0, give_up_at - monotonic())
            is_marked = left_s != 0 and space.try_read(*mark) is not None
            if left_s == 0 or (is_marked and _none_left(space, template)):
                # What comes between the two looks has come in time, too.
                return match.finish_now() if match.end_wait() else None
            if not is_marked:
                over.wait(left_s)
    finally:
        # What was handed over in the meantime goes back to its place.
        match.cancel()
        over.cancel()


def _none_left(space: Space, template: Template[Any]) -> bool:
    try:
        space.wait_none(template, timeout=HELD_S)
    except Timeout:
        return False
    return True
