"""The asyncio twin of `tupelo`: the same names, types and semantics, to be awaited.

Ten thousand tasks may wait for tuples at once. An event loop has one place in the space, through
which it hears of all of them. Cancelling a wait at any point loses nothing: a tuple that was handed
over already goes back with its identity, age and place (rule T5). A cancelled block on a claim
aborts the claim.

Every name of `tupelo` is here, so one import will do. A verb that waits has a twin that is awaited.
Everything else (`F`, `like`, `REST`, `call`, the exceptions, ...) is the very same object. `spawn`
is
the same, too: the end of its block waits for the processes, and the event loop with it, so it
stands around `asyncio.run`. Instead of `take_future` there is `asyncio.create_task(space.take(…))`.

>>> import asyncio
>>> import tupelo.aio as ts
>>> async def main():
...     async with ts.connect("mem://example-aio") as space:
...         later = asyncio.create_task(space.take("answer", int, timeout=5))
...         await space.put("answer", 42)
...         return await later
>>> asyncio.run(main())
('answer', 42)

>>> async def work():
...     async with ts.connect("mem://example-aio") as space:
...         await space.put("job", 7, lease=60)
...         async with space.claim("job", int, ttl=30) as (_, number):
...             await space.put("result", number * number)
...         return await space.take("result", int)
>>> asyncio.run(work())
('result', 49)
"""

from __future__ import annotations

import os

import tupelo.space
from tupelo import (
    REST,
    Aborted,
    AccessDenied,
    Call,
    ClaimLost,
    ConnectionLost,
    DeadLetter,
    DurabilityUnknown,
    Event,
    Explanation,
    F,
    FieldOrder,
    FieldProxy,
    Formal,
    LeaseExpired,
    LimitExceeded,
    NotEncodable,
    ProtocolError,
    RemoteError,
    Rest,
    SchemaMismatch,
    SpaceClosed,
    SpaceCorrupted,
    SpaceFull,
    SpaceNotFound,
    SpaceRemoved,
    Stalled,
    StorageError,
    Template,
    TemplateError,
    Timeout,
    TransactionTooBig,
    TupeloError,
    UnknownField,
    Unsupported,
    VersionMismatch,
    call,
    like,
    parse,
    remove,
    replace,
    spaces,
    spawn,
)
from tupelo._native import Found
from tupelo.aio.claim import Claim
from tupelo.aio.lease import Lease
from tupelo.aio.searching import Search, search
from tupelo.aio.space import Space, wrapped
from tupelo.aio.subscription import Subscription
from tupelo.aio.transaction import Transaction, TransactionSpace
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

__all__ = [
    "REST",
    "Aborted",
    "AccessDenied",
    "Call",
    "Claim",
    "ClaimLost",
    "ConnectionLost",
    "DeadLetter",
    "DurabilityUnknown",
    "Event",
    "Explanation",
    "F",
    "FieldOrder",
    "FieldProxy",
    "Formal",
    "Found",
    "Lease",
    "LeaseExpired",
    "LimitExceeded",
    "NotEncodable",
    "ProtocolError",
    "RemoteError",
    "Rest",
    "SchemaMismatch",
    "Search",
    "Space",
    "SpaceClosed",
    "SpaceCorrupted",
    "SpaceFull",
    "SpaceNotFound",
    "SpaceRemoved",
    "Stalled",
    "StorageError",
    "Subscription",
    "Template",
    "TemplateError",
    "Timeout",
    "Transaction",
    "TransactionSpace",
    "TransactionTooBig",
    "TupeloError",
    "UnknownField",
    "Unsupported",
    "VersionMismatch",
    "call",
    "connect",
    "like",
    "parse",
    "remove",
    "replace",
    "search",
    "spaces",
    "spawn",
]


@suggests
def connect(
    url: str | None = None,
    *,
    create: bool = True,
    fresh: bool = False,
    adopt: bool = False,
    size: int | str | None = None,
    tuples_max: int | None = None,
    when_full: Literal["error", "wait", "drop-oldest"] | None = None,
    objects: Literal["strict", "pickle"] | None = None,
    reconnect_s: float | None = None,
    schema: Iterable[type] = (),
    sync: Literal["group", "none"] | None = None,
    on_removed: Literal["error", "reconnect"] = "error",
) -> Space:
    """Open a space as `tupelo.connect` does, for the tasks of an event loop.

    Opening does not wait, so this is no coroutine: `async with connect(…) as space`.
    """
    connection = tupelo.space.connect(
        url,
        create=create,
        fresh=fresh,
        adopt=adopt,
        size=size,
        tuples_max=tuples_max,
        when_full=when_full,
        objects=objects,
        reconnect_s=reconnect_s,
        schema=schema,
        sync=sync,
        on_removed=on_removed,
    )
    return wrapped(connection)


if os.environ.get("TUPELO_RECORD"):
    from tupelo.recording.tracing import trace_tasks

    trace_tasks()
