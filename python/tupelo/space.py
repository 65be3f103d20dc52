"""Opening a space: `connect`, and how a connection reaches another process."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from time import monotonic, sleep

from tupelo._native import (
    Space,
    after_fork,
    flush_files,
    register,
    stays_behind,
)
from tupelo._native import (
    adopt as take_over,
)
from tupelo.errors import ConnectionLost, SpaceNotFound
from tupelo.suggesting import suggests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal, TypeVar

    SpaceT = TypeVar("SpaceT", bound=Space)

__all__ = ["connect"]

os.register_at_fork(after_in_child=after_fork)
atexit.register(flush_files)

NUMBER_MAX = (1 << 63) - 1
"""The largest that the native module can be given."""

SIZE_MAX = "256 GiB"
"""The largest size of a space; the native module names it for any larger number."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


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
    """Open a space, by default creating it if there is none.

    Args:
        url: the space, by default `$TUPELO_URL`, or else `shm://default`. `?size=1G` behind the
            name is the same as `size`, and goes first. The forms of a URL:

            - `shm://name`: for all processes of this machine and user.
            - `mem://name`: for the threads of this process.
            - `file:///path/jobs.tupelo`: as `shm://`, and kept in a file. Acknowledged changes
              are there after a restart of the machine. `?space=name` behind it is one of several
              spaces in the file.
            - `unix:///path/of/the/socket?space=name`, `tcp://host:7667/name`, or
              `tls://host:7668/name?ca=/path/ca.pem`: a space of a server (`tupelo serve`).
        create: whether to create the space if there is none.
        fresh: begin with an empty space, even if one exists. Programs that use the old one get
            `SpaceRemoved`. `fresh=True` empties the space that the URL names. The other spaces of
            the file stay.
        adopt: take over a `shm://` space of another PID namespace with its tuples: of a container
            that was started again. By that you say that all processes of that namespace have ended;
            what they had claimed comes back. One that lives after all may damage the space.
        size: the most memory that the space may use, in bytes or as "512K", "256M", "4G". Memory is
            used only as tuples come. None, the default: the size that the space has, and 256M for a
            new one.
        tuples_max: the most tuples that the space may hold. None, the default: the limit that the
            space has, and for a new one as many as fit.
        when_full: the policy for a put without room. "error" refuses the put, "wait" lets it wait
            for room, "drop-oldest" drops the oldest tuples of its shape for it (rule B1). None, the
            default: the policy that the space has, and "error" for a new one. A space keeps all
            three as long as it exists.
        schema: classes of entries to know from the start. Others are known once they are used.
        objects: what becomes of objects that other languages have no like of: "pickle" stores
            them as pickles, which may run code of their writer when they are read; "strict"
            refuses them, both ways. None, the default: "strict" for `tcp://` and `tls://`, where
            the writer may be on another machine, and "pickle" for all others.
        sync: when a call returns that changes a `file://` space. With "group" it returns when the
            change is on disk; one sync is for all calls that wait at that moment. With "none" it
            returns at once, and the change is on disk soon after, as a rule within 50 ms. None, the
            default: as `?sync=` in the URL says, or else "group". A change that is in memory alone
            survives the end of all programs, but not of the machine (rule C4).
        reconnect_s: how long a connection to a server that was lost is made again, in seconds; 0
            ends calls at once. `?reconnect_s=5` in the URL is the same, and goes first. None, the
            default: 60. A `mem://` or `shm://` space has no connection that could be lost.
        on_removed: what a call does when the space was removed, or a fresh one took its name.
            "error" raises `SpaceRemoved`. "reconnect" opens the space that has the name now, or
            makes one with the same options, and the call begins anew in it. The tuples of the old
            space are gone. Its claims, leases, transactions, subscriptions and futures raise
            `SpaceRemoved` all the same. A pickle keeps "reconnect", but makes no space: its
            connection is as with `create=False`.

    Returns:
        The space; a context manager that closes the connection.

    Raises:
        SpaceNotFound: there is none, and `create` is false.
        AccessDenied: it belongs to another user.
        StorageError: its file can not be read or written.
        SpaceCorrupted: its file is no space, or is damaged.
        ConnectionLost: there is no server at that address, or it is not trusted.
        ValueError: the URL or another argument makes no sense; or the space exists, and has another
            `size`, `tuples_max` or `when_full` than the call asks for.
        SchemaMismatch: a class of `schema` has other fields here than in the space.

    >>> import tupelo as ts
    >>> with ts.connect("mem://example", size="16M") as space:
    ...     space.put("job", 1)
    ...     space.take("job", int)
    ('job', 1)
    """
    return open_as(
        Space,
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


def open_as(
    space_class: type[SpaceT],
    url: str | None,
    *,
    create: bool,
    fresh: bool,
    size: int | str | None,
    tuples_max: int | None,
    objects: str | None,
    adopt: bool = False,
    when_full: str | None = None,
    reconnect_s: float | None = None,
    schema: Iterable[type] = (),
    sync: str | None = None,
    on_removed: str = "error",
) -> SpaceT:
    """Open a space as an instance of `space_class`. The other arguments are as in `connect`."""
    if url is None:
        url = os.environ.get("TUPELO_URL") or "shm://default"
    _require("url", url, str, "a str such as 'shm://jobs'")
    _require("create", create, bool, "True or False")
    _require("fresh", fresh, bool, "True or False")
    _require("adopt", adopt, bool, "True or False")
    require_objects(objects)
    _require_on_removed(on_removed)
    if sync is not None:
        _require_sync(url, sync)
    if when_full is not None:
        _require("when_full", when_full, str, "a str such as 'wait'")
    if not hasattr(schema, "__iter__"):
        message = f"schema has the type {type(schema).__name__}: give a list of classes"
        raise TypeError(message)
    if reconnect_s is not None:
        url = _with_reconnect_s(url, reconnect_s)
    if tuples_max is not None:
        tuples_max = _at_least_one("tuples_max", tuples_max)
    if adopt and not fresh:
        _adopt(url)
    space = space_class(
        url,
        create=create,
        fresh=fresh,
        size_bytes=None if size is None else _size_bytes(size),
        tuples_max=tuples_max,
        when_full=when_full,
        pickle=(objects or _objects_by_default(url)) == "pickle",
        sync=sync,
        on_removed=on_removed,
    )
    if url.startswith("mem://"):
        stays_behind(space)
    if classes := tuple(schema):
        register(space, classes)
    return space


def _adopt(url: str) -> None:
    """Take a space over from another PID namespace, if there is one."""
    with suppress(SpaceNotFound):  # then it is made
        take_over(url.partition("?")[0])


RECONNECT_S_MAX = 86_400
"""Longest time for which a connection is made again: a day."""


def _with_reconnect_s(url: str, reconnect_s: float) -> str:
    """Return the URL with the time in it, if it is one of a server and has none."""
    if not isinstance(reconnect_s, int | float) or isinstance(reconnect_s, bool):
        message = f"reconnect_s has the type {type(reconnect_s).__name__}: give seconds, or None"
        raise TypeError(message)
    if not 0 <= reconnect_s <= RECONNECT_S_MAX:
        message = f"reconnect_s is {reconnect_s}: give 0 to {RECONNECT_S_MAX} seconds"
        raise ValueError(message)
    place, _, options = url.partition("?")
    of_server = place.startswith(("unix://", "tcp://", "tls://"))
    if not of_server or any(option.startswith("reconnect_s=") for option in options.split("&")):
        return url
    # Digits and a point: no exponent.
    option = f"reconnect_s={reconnect_s:.9f}".rstrip("0").rstrip(".")
    return f"{place}?{options}&{option}" if options else f"{place}?{option}"


def _objects_by_default(url: str) -> str:
    # To read a pickle is to run its writer's code: this needs a caller's consent where the writer
    # may be anyone on the network.
    return "strict" if url.startswith(("tcp://", "tls://")) else "pickle"


def _require_sync(url: str, sync: object) -> None:
    _require("sync", sync, str, "'group' or 'none'")
    if not url.startswith("file://"):
        message = (
            f"sync is {sync!r}, and {url} is kept in no file: leave it out, or open a space "
            "such as file:///path/jobs.tupelo"
        )
        raise ValueError(message)


def _require_on_removed(on_removed: object) -> None:
    if on_removed not in ("error", "reconnect"):
        message = f"on_removed is {on_removed!r}: give 'error' or 'reconnect'"
        raise ValueError(message)


def require_objects(objects: object) -> None:
    """Refuse a wrong value of the argument `objects`.

    Raises:
        ValueError: it is that.
    """
    if objects not in (None, "strict", "pickle"):
        message = f"objects is {objects!r}: give 'strict' or 'pickle'"
        raise ValueError(message)


def reconnect(
    space_class: type[SpaceT],
    url: str,
    pickle: bool,  # noqa: FBT001
    on_removed: str = "error",
) -> SpaceT:
    """Open the space that a pickled connection was to; it must still be there.

    With "reconnect" the connection goes on in a next space that others have made: it makes none,
    since the pickle has not the options of one.

    A server that is about to be started again is waited for, as by the connection that was pickled.
    """
    end = monotonic() + _reconnect_s(url)
    while True:
        try:
            return open_as(
                space_class,
                url,
                create=False,
                fresh=False,
                size=None,
                tuples_max=None,
                objects="pickle" if pickle else "strict",
                on_removed=on_removed,
            )
        except ConnectionLost:
            if monotonic() >= end:
                raise
        sleep(PAUSE_S)


RECONNECT_S = 60.0
"""How long a connection that was lost is made again, unless the URL says otherwise."""

PAUSE_S = 0.1
"""Pause between two attempts to connect."""


def _reconnect_s(url: str) -> float:
    """Return how long a connection by this URL is made again."""
    for option in url.partition("?")[2].split("&"):
        name, _, value = option.partition("=")
        if name == "reconnect_s":
            return float(value)
    return RECONNECT_S


def _require(name: str, value: object, expected: type, what: str) -> None:
    if not isinstance(value, expected):
        message = f"{name} has the type {type(value).__name__}: give {what}"
        raise TypeError(message)


def _size_bytes(size: int | str) -> int:
    at_most = f"bytes up to {SIZE_MAX}"
    if not isinstance(size, str):
        what = "bytes as an int, or a text such as '256M'"
        return _at_least_one("size", size, what, at_most=at_most)
    number = size.rstrip("KMGT")
    unit = size[len(number) :]
    if not (number.isascii() and number.isdigit() and unit in _UNITS):
        message = f"size is {size!r}: give bytes, or a number with K, M, G or T such as '256M'"
        raise ValueError(message)
    return _at_least_one("size", int(number) * _UNITS[unit], at_most=at_most)


def _at_least_one(
    name: str,
    value: int,
    what: str = "an int",
    *,
    at_most: str = f"a number up to {NUMBER_MAX}, or None",
) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"{name} has the type {type(value).__name__}: give {what}"
        raise TypeError(message)
    if value < 1:
        message = f"{name} is {value}: give a number from 1 on"
        raise ValueError(message)
    if value > NUMBER_MAX:
        message = f"{name} is {value}: give {at_most}"
        raise ValueError(message)
    return value


if os.environ.get("TUPELO_RECORD"):
    from tupelo.recording.tracing import trace

    trace()
