"""Linda's own names for the verbs, for programs and readers that know them.

| Linda | here |
|---|---|
| `out`, `rd`, `in_` | `put`, `read`, `take` |
| `rdp`, `inp` | `try_read`, `try_take` |
| `rdg`, `ing` | `read_all`, `take_all` |
| `collect`, `copy_collect` | `move_to`, `copy_to` |

Bonita's names for asking now and collecting later: `dispatch` is `take_future`; the future's `done`
and `result` are its `arrived` and `obtain`.

>>> from tupelo import linda
>>> with linda.connect("mem://linda") as space:
...     space.out("job", 7)
...     space.in_("job", int)
('job', 7)
"""

from __future__ import annotations

import tupelo.space
from tupelo._native import Space as _Space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future
    from typing import Any, Literal

__all__ = ["Space", "arrived", "connect", "obtain"]


class Space(_Space):
    """A space with Linda's names beside ours."""

    __slots__ = ()

    out = _Space.put
    rd = _Space.read
    in_ = _Space.take
    rdp = _Space.try_read
    inp = _Space.try_take
    rdg = _Space.read_all
    ing = _Space.take_all
    collect = _Space.move_to
    copy_collect = _Space.copy_to
    dispatch = _Space.take_future


def arrived(future: Future[tuple[Any, ...]]) -> bool:
    """Return whether the tuple of a `dispatch` has come."""
    return future.done()


def obtain(future: Future[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the tuple that was asked for with `dispatch`, waiting for it."""
    return future.result()


def connect(
    url: str | None = None,
    *,
    create: bool = True,
    fresh: bool = False,
    size: int | str | None = None,
    tuples_max: int | None = None,
    when_full: Literal["error", "wait", "drop-oldest"] | None = None,
    objects: Literal["strict", "pickle"] | None = None,
    reconnect_s: float | None = None,
    schema: Iterable[type] = (),
    on_removed: Literal["error", "reconnect"] = "error",
) -> Space:
    """Open a space as `tupelo.connect` does, with Linda's names for its verbs."""
    return tupelo.space.open_as(
        Space,
        url,
        create=create,
        fresh=fresh,
        size=size,
        tuples_max=tuples_max,
        when_full=when_full,
        objects=objects,
        reconnect_s=reconnect_s,
        schema=schema,
        on_removed=on_removed,
    )
