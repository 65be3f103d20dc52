"""`Space.eval`: a tuple that appears when others have computed its active fields.

It is one task, whose function is `"tupelo.eval"`: the worker computes the fields that are calls,
and puts the tuple under its claim.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from time import monotonic

from tupelo._native import Space, is_same, plain, present
from tupelo.call import Call
from tupelo.errors import SpaceFull, SpaceNotFound, SpaceRemoved
from tupelo.tasks import functions, protocol
from tupelo.tasks.crew import FINISHED_AT, at_end_of_process
from tupelo.tasks.local import LocalPool, connection_like, is_private
from tupelo.tasks.mailbox import Mailbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any

    from tupelo._native import Sync

__all__ = ["evaluate"]

ATTEMPTS_MAX = 1
"""A call that raised is not tried again; one whose worker died is."""

IDLE_S = 60.0
"""How long workers without work are kept, if others are started: they cost memory, not time."""

NAMELESS_IDLE_S = 1.0
"""How long a pool is kept that other code cannot reach, since its space has lost its name."""

WAYS = ("processes", "threads", "workers")

MAKER_LOOK_S = 0.001
"""How often to look whether the thread that makes a pool has to wait for room."""


def evaluate(
    space: Space,
    fields: tuple[Any, ...],
    on: str | None,
    *,
    timeout_s: float | None = None,
    sync: Sync | None = None,
) -> Future[Any]:
    """Put the task for a tuple; return its future.

    The arguments are as in `Space.eval`. The longest wait for room and the wait for the disk are as
    for `Space.put`.
    """
    calls = [field for field in fields if type(field) is Call]
    if not calls:
        message = (
            "eval needs a field that is a tupelo.call(function, …): a tuple without one is put"
        )
        raise TypeError(message)
    way = _way(space, on)
    if way == "workers":
        queue = functions.public_path_of(calls[0].function)
        asked = tuple(_asked(field, functions.public_path_of) for field in fields)
        mailbox = _mailbox(space)
        return mailbox.submit(
            queue,
            protocol.EVAL,
            asked,
            {},
            attempts_max=ATTEMPTS_MAX,
            timeout_s=timeout_s,
            sync=sync,
        )
    asked = tuple(_asked(field, functions.sendable) for field in fields)
    # A look, for `SpaceClosed`: the pool has a connection of its own, which would not say so.
    present(space, (protocol.EVAL,), {})
    pool = _pool(space, timeout_s, threads=way == "threads")
    future = pool.submit(
        protocol.EVAL, asked, {}, attempts_max=ATTEMPTS_MAX, timeout_s=timeout_s, sync=sync
    )
    try:
        pool.grow(len(pool.mailbox.due()))
    except BaseException as error:
        if pool.crew.count() == 0:
            # There are no workers, and nothing is to wait for them at the end of the program.
            with _lock:
                _pools.pop(_key(space, threads=way == "threads"), None)
            _end(pool)
        elif isinstance(error, Exception):
            return future  # the existing ones do it as well
        else:
            future.cancel()  # unless a worker has begun
        raise
    return future


def _way(space: Space, on: str | None) -> str:
    private = is_private(space)
    if on is None:
        return "threads" if private else "processes"
    if on not in WAYS:
        given = repr(on) if isinstance(on, str) else f"of the type {type(on).__name__}"
        message = f"on is {given}: give 'processes', 'threads' or 'workers'"
        raise ValueError(message) if isinstance(on, str) else TypeError(message)
    if private and on != "threads":
        message = (
            f"on is {on!r}, but no other process sees {space.url}:"
            f" use shm://{space.name}, or on='threads'"
        )
        raise ValueError(message)
    return on


def _asked(field: Any, name: Callable[[Callable[..., Any]], Any]) -> Any:
    """Return what stands for a field in the task."""
    if type(field) is not Call:
        return field
    return (protocol.CALL, name(field.function), field.arguments, field.keywords)


# What this process has begun, by the space and by how. A connection of its own each: the program's
# may be closed before the tuple has appeared.

_lock = threading.RLock()
_making: dict[tuple[int, str, str, bool], threading.RLock] = {}
"""Had while a pool is made, which may wait for room in its space."""
_in_line: set[tuple[int, str, str, bool]] = set()
"""The keys of pools whose maker waits for room."""
_pools: dict[tuple[int, str, str, bool], LocalPool] = {}
_retired: list[LocalPool] = []
"""Pools that were replaced, since their space has lost its name, or since they cannot go on. They
may have something to do."""
_mailboxes: weakref.WeakKeyDictionary[Space, tuple[int, Mailbox]] = weakref.WeakKeyDictionary()


def _pool(space: Space, timeout_s: float | None, *, threads: bool) -> LocalPool:
    key = _key(space, threads=threads)
    making = _begin_making(key, timeout_s)
    is_new = False
    try:
        with _lock:
            pool = _pools.get(key)
            if pool is not None:
                pool.used_at = monotonic()
        if pool is None or pool.broken is not None or not is_same(pool.space, space):
            pool = _made(space, timeout_s, threads=threads)
            is_new = True
            with _lock:
                # Perhaps a pool that a signal handler has made meanwhile, in this thread.
                if (before := _pools.get(key)) is not None:
                    _retired.append(before)
                _pools[key] = pool
    finally:
        making.release()
    if is_new:
        _end_unused(but=pool)
    return pool


def _end_unused(*, but: LocalPool) -> None:
    """End the pools that have nothing to do, and whose space is gone, or that are not used.

    A program that makes a space per request would have a worker more for each of them.
    """
    with _lock:
        others = [
            (key, pool) for key, pool in _pools.items() if pool is not but and key[0] == os.getpid()
        ]
    for key, pool in others:
        used_at = pool.used_at
        idle_s = monotonic() - used_at
        # A thread that has noted its use puts its task in a moment.
        if pool.mailbox.due() or idle_s < NAMELESS_IDLE_S:
            continue
        if idle_s < IDLE_S and not _is_nameless(pool):
            continue
        with _lock:
            if pool.used_at == used_at and not pool.mailbox.due() and _pools.get(key) is pool:
                _retired.append(_pools.pop(key))
    for pool in _retired.copy():
        if not pool.mailbox.due():
            _end_retired(pool)


def _is_nameless(pool: LocalPool) -> bool:
    """Whether the space of a pool was removed, or has lost its name to another one."""
    try:
        connection_like(pool.space).close()
    except (SpaceNotFound, SpaceRemoved):
        return True
    except Exception:  # noqa: BLE001 - nobody can tell now, as without descriptors: so it stays
        return False
    return False


def _end_retired(pool: LocalPool) -> None:
    """End a pool. After a failure the next caller that makes one, or the program's end, retries.

    The error is not raised here: the caller is to get its new pool, whatever becomes of another
    space.
    """
    with _lock:
        if pool not in _retired:
            return  # another thread ends it
        _retired.remove(pool)
    try:
        pool.kill()
    except BaseException as error:
        with _lock:
            _retired.append(pool)
        if not isinstance(error, Exception):
            raise
    else:
        pool.space.close()


def _end(pool: LocalPool) -> None:
    """End a pool and its connection, with which threads end that report to no caller."""
    try:
        pool.kill()
    finally:
        pool.space.close()


def _begin_making(key: tuple[int, str, str, bool], timeout_s: float | None) -> threading.RLock:
    """Wait while another thread makes the pool, and have the lock.

    Raises:
        SpaceFull: the other thread waits for room, and the time is up. Else it is ready in a
            moment.
    """
    with _lock:
        making = _making.setdefault(key, threading.RLock())
    give_up_at = None if timeout_s is None else monotonic() + timeout_s
    while not making.acquire(timeout=-1 if give_up_at is None else MAKER_LOOK_S):
        if give_up_at is not None and key in _in_line and monotonic() >= give_up_at:
            message = "another thread waits for room for the workers' mark"
            raise SpaceFull(message)
    return making


def _made(space: Space, timeout_s: float | None, *, threads: bool) -> LocalPool:
    """Make the pool; with the lock for that.

    Raises:
        SpaceNotFound: the name is that of another space by now, or of none.
    """
    own = connection_like(space)
    at_end_of_process(_finish, FINISHED_AT)
    try:
        return LocalPool(own, threads=threads, keeps_dead=True, room_timeout_s=0)
    except SpaceFull:
        if timeout_s == 0:
            raise
    key = _key(space, threads=threads)
    _in_line.add(key)
    try:
        return LocalPool(own, threads=threads, keeps_dead=True, room_timeout_s=timeout_s)
    finally:
        _in_line.discard(key)


def _key(space: Space, *, threads: bool) -> tuple[int, str, str, bool]:
    return (os.getpid(), space.url, space.objects, threads)


def _mailbox(space: Space) -> Mailbox:
    with _lock:
        pid, mailbox = _mailboxes.get(space, (0, None))
        if mailbox is None or pid != os.getpid():
            # Of the connection, and not of this object: the mailbox is to end with this object.
            mailbox = Mailbox(plain(space), is_public=True)
            _mailboxes[space] = (os.getpid(), mailbox)
    return mailbox


def _begin_anew() -> None:
    """In the child of a fork: another thread of the parent may have had the locks."""
    global _in_line, _lock, _making  # noqa: PLW0603 - nobody else runs yet
    _lock = threading.RLock()
    _making = {}
    _in_line = set()
    _retired.clear()


os.register_at_fork(after_in_child=_begin_anew)


@atexit.register  # registered behind the crew's, so that it runs before it
def _finish() -> None:
    """At the end of the program: wait for the tasks that were begun."""
    # One after the other, and each once: `atexit` calls this, and `multiprocessing`.
    while (pool := _taken_off()) is not None:  # pools of a parent are left to it
        try:
            pool.finish()
        except SpaceRemoved:  # its tasks are gone with it, and whoever asked for them was told
            pool.kill()
        except BaseException:
            pool.kill()
            raise


def _taken_off() -> LocalPool | None:
    with _lock:
        if _pools:
            return _pools.popitem()[1]
        return _retired.pop() if _retired else None
