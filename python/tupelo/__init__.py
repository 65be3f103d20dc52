"""Tupelo: a shared bag of tuples for programs that work together.

Put a tuple into a space, and any process of this machine can read or take it. A template describes
the tuple.

>>> import tupelo as ts
>>> with ts.connect("mem://readme") as space:
...     space.put("job", 7, "cat.png")
...     space.take("job", int, ...)
('job', 7, 'cat.png')
"""

from tupelo._native import (
    Claim,
    Explanation,
    FieldOrder,
    FieldProxy,
    Formal,
    Lease,
    Rest,
    Space,
    Subscription,
    Template,
    Transaction,
    TransactionSpace,
    like,
    parse,
    remove,
    spaces,
)
from tupelo.call import Call, call
from tupelo.errors import (
    Aborted,
    AccessDenied,
    ClaimLost,
    ConnectionLost,
    DurabilityUnknown,
    LeaseExpired,
    LimitExceeded,
    NotEncodable,
    ProtocolError,
    RemoteError,
    SchemaMismatch,
    SpaceClosed,
    SpaceCorrupted,
    SpaceFull,
    SpaceNotFound,
    SpaceRemoved,
    Stalled,
    StorageError,
    TemplateError,
    Timeout,
    TransactionTooBig,
    TupeloError,
    UnknownField,
    Unsupported,
    VersionMismatch,
)
from tupelo.replacing import replace
from tupelo.searching import Found, Search, search
from tupelo.space import connect
from tupelo.spawn import spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tupelo.dead_letters import DeadLetter
    from tupelo.events import Event
else:

    def __getattr__(name: str) -> object:
        """Import what needs `typing`, which is not as light as the rest, where it is used."""
        if name == "DeadLetter":
            from tupelo.dead_letters import DeadLetter  # noqa: PLC0415

            return DeadLetter
        if name == "Event":
            from tupelo.events import Event  # noqa: PLC0415

            return Event
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)

    def __dir__() -> list[str]:
        """List also the names that are imported on first use."""
        return sorted({*globals(), *__all__})


__version__ = "0.1.0"

for _function in (like, parse, remove, spaces):
    # Here is where programs find them, and the examples in their help.
    _function.__module__ = __name__
del _function

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

F = FieldProxy()
"""The field here: `F > 3`, `F.between(0, 63)`, `F.in_({2, 3})`, `F.glob("img/*")`, `F != "x"`."""

REST = Rest()
"""As the last of a template: any number of further fields."""
