"""Every exception the package raises, in one tree.

* TupeloError
    - ConnectionLost (also a built-in ConnectionError)
    - Timeout (also a built-in TimeoutError)
    - SpaceFull
    - ClaimLost
    - LeaseExpired
    - Aborted
    - SpaceNotFound (also a LookupError)
    - SpaceClosed
    - SpaceRemoved (also a SpaceClosed)
    - SpaceCorrupted
    - AccessDenied (also a PermissionError)
    - VersionMismatch
    - Stalled
    - Unsupported (also a NotImplementedError)
    - ProtocolError
    - StorageError
    - DurabilityUnknown
    - LimitExceeded
    - TransactionTooBig (also a LimitExceeded)
    - TemplateError (also a TypeError)
    - UnknownField (also a TemplateError)
    - NotEncodable (also a TypeError)
    - SchemaMismatch (also a TypeError)
    - RemoteError

`tupelo.batteries` adds `BrokenBarrier`, a TupeloError too.

A program that only wants "did the space refuse me?" catches `TupeloError`. A wrong argument is not
the space's refusal: it raises the built-in `TypeError` or `ValueError`. A class above that is also
a `TypeError` or `ValueError` can be caught as either.

Each exception has `code`, `hint` and `space`. The code, as in "TUP-003", is the same in every
language, and `tupelo explain` takes it. The hint says what to type next, or is None. The space is a
URL, or None.
"""

__all__ = [
    "Aborted",
    "AccessDenied",
    "ClaimLost",
    "ConnectionLost",
    "DurabilityUnknown",
    "LeaseExpired",
    "LimitExceeded",
    "NotEncodable",
    "ProtocolError",
    "RemoteError",
    "SchemaMismatch",
    "SpaceClosed",
    "SpaceCorrupted",
    "SpaceFull",
    "SpaceNotFound",
    "SpaceRemoved",
    "Stalled",
    "StorageError",
    "TemplateError",
    "Timeout",
    "TransactionTooBig",
    "TupeloError",
    "UnknownField",
    "Unsupported",
    "VersionMismatch",
]


class TupeloError(Exception):
    """The root of the exceptions of this package.

    Attributes:
        code: as in "TUP-003"; the same in every language, and what `tupelo explain` takes.
        hint: what to type next, or None.
        space: the URL of the space, or None.
    """

    code: str = "TUP-020"
    hint: str | None = None
    space: str | None = None

    def __str__(self) -> str:
        """Code, message and hint, as the command line prints them."""
        message = f"{self.code}: {self.args[0] if self.args else type(self).__name__}"
        if self.hint is None:
            return message
        return message + "".join(f"\n  {line}" for line in self.hint.splitlines())


class ConnectionLost(TupeloError, ConnectionError):
    """The connection to a server was lost, or there is none; the message says what was tried.

    Attributes:
        may_have_happened: whether the call may have had its effect: nobody knows whether it has. If
            False, it has had none.
    """

    code = "TUP-002"
    may_have_happened = False


class Timeout(TupeloError, TimeoutError):
    """Nothing matched in time. The call had no effect."""

    code = "TUP-003"


class SpaceFull(TupeloError):
    """The space holds as much as it may. Nothing was stored.

    Attributes:
        may_pass: whether there may be room later: False for a tuple larger than the whole space.
    """

    code = "TUP-005"
    may_pass = True


class ClaimLost(TupeloError):
    """The claim ran out: the tuple is another's work now, or will be. Nothing was confirmed."""

    code = "TUP-007"


class LeaseExpired(TupeloError):
    """The lease has ended, or its tuple was taken, or another process holds the tuple."""

    code = "TUP-021"


class Aborted(TupeloError):
    """The transaction's time ran out, and everything is as it was before it."""

    code = "TUP-008"


class SpaceNotFound(TupeloError, LookupError):
    """There is no such space, and it was not to be created."""

    code = "TUP-013"


class SpaceClosed(TupeloError):
    """This connection was closed."""

    code = "TUP-014"


class SpaceCorrupted(TupeloError):
    """The memory of the space, or the file that it is kept in, is damaged."""

    code = "TUP-015"


class SpaceRemoved(SpaceClosed):
    """The space was removed, or a fresh one took its name; the message says how, and when.

    Nothing of it can be had any more, as of a connection that was closed. `connect` finds the one
    that has the name now, or makes one.
    """

    code = "TUP-026"


class AccessDenied(TupeloError, PermissionError):
    """The file of the space is not this user's to use, or the server does not allow it."""

    code = "TUP-006"


class VersionMismatch(TupeloError):
    """The space has another memory layout than this build, or the server another protocol."""

    code = "TUP-012"


class Stalled(TupeloError):
    """A process that does not run holds a lock of the space; the message names it."""

    code = "TUP-016"


class Unsupported(TupeloError, NotImplementedError):
    """The engine of the space cannot do this; the hint says what it can, and which engine can."""

    code = "TUP-022"


class ProtocolError(TupeloError):
    """What came over the connection to a server makes no sense: is the other side a server?"""

    code = "TUP-023"


class StorageError(TupeloError):
    """The file of a space can not be read or written; the message says what the system said."""

    code = "TUP-024"


class DurabilityUnknown(TupeloError):
    """The call is in effect in memory, and not known to be on disk. Do not repeat it."""

    code = "TUP-025"


class LimitExceeded(TupeloError):
    """A stated maximum was reached."""

    code = "TUP-017"


class TransactionTooBig(LimitExceeded):
    """More than one atomic step can change: a limit with a code of its own (rule B2)."""

    code = "TUP-018"


class TemplateError(TupeloError, TypeError):
    """A template, or a part of one, that makes no sense."""

    code = "TUP-001"


class UnknownField(TemplateError):
    """A template of entries names a field that their class has not."""

    code = "TUP-009"


class SchemaMismatch(TupeloError, TypeError):
    """A class of entries has other fields here than in the space. Nothing was removed."""

    code = "TUP-010"


class NotEncodable(TupeloError, TypeError):
    """A value that no field can hold, or a field that Python cannot represent."""

    code = "TUP-004"


class RemoteError(TupeloError):
    """A worker failed; the message has its traceback.

    Where the failure was an exception of Python's own, it is the `__cause__`.

    Attributes:
        kind: the class of the worker's exception, as in "builtins.ZeroDivisionError", or None.
        traceback: the worker's traceback, as a text, or None.
        attempts: the number of workers that have tried the task, and failed or died. None where it
            was no task.
    """

    code = "TUP-011"
    kind: str | None = None
    traceback: str | None = None
    attempts: int | None = None


def make(name: str, message: str, hint: str | None = None, space: str | None = None) -> TupeloError:
    """Make an exception of the class called `name`. For the native module.

    Args:
        name: the name of a class in this module.
        message: what happened, with the values.
        hint: what to type next.
        space: the URL of the space.
    """
    error: TupeloError = globals()[name](message)
    error.hint = hint
    error.space = space
    return error


for _name in __all__:
    # A traceback then says `tupelo.Timeout`, the name that a program catches.
    globals()[_name].__module__ = "tupelo"
del _name
