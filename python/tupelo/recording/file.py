"""The files of this process: lines go into memory that is mapped from them.

A store into a mapped file reaches the kernel at once. So a killed process loses no line, and no
line costs a system call. A file has all its blocks from the beginning, since a store that finds
none would end the program. When a file is full the next one is made, larger up to a limit. A forked
child makes one, too. The unused rest of each file is zeros.

No line takes a lock, since a signal handler would wait for the lock in vain. A write to a map, and
its next position, are one step for Python. A new file gets a name that did not exist, so threads
that make one at the same time make one each.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from contextlib import suppress
from itertools import count

__all__ = ["VARIABLE", "append", "warn"]

VARIABLE = "TUPELO_RECORD"
FIRST_BYTES = 1 << 16  # most processes do little, and there may be thousands
LAST_BYTES = 1 << 22
GROWTH_BITS = 2
MAP_FIXED = 0x10  # <linux/mman.h>, which `mmap` does not have
MAP_FAILED = ctypes.c_void_p(-1).value

_MAP = ctypes.CDLL(None, use_errno=True).mmap
_MAP.restype = ctypes.c_void_p
_MAP.argtypes = (
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
)  # fmt: skip


class _Files:
    """The files of this process; a forked child makes its own, and warns for itself."""

    pid = 0
    room = mmap.mmap(-1, mmap.PAGESIZE)
    """The map of the last file; process 0 has none."""
    number = -1
    """Of the last."""
    stopped_pid = 0
    """The process that has given up to write."""
    warned_pid = 0


_files = _Files()
"""An object, since Python remembers what it has found in a class without keeping it: while the map
before is given back, another thread would write to it."""


def append(line: str, pid: int) -> None:
    """Append a line of this process; where it has no room, write nothing more from here.

    The folder is gone if this process outlives the command that was recorded.
    """
    if _files.stopped_pid == pid:
        return
    data = line.encode()
    try:
        if _files.pid == pid:
            _files.room.write(data)
            return
    except ValueError:  # it is full
        pass
    try:
        _begin_another(pid, data)
    except (OSError, KeyError) as error:
        _files.stopped_pid = pid
        warn(f"process {pid} is no longer recorded: {error}")


def _begin_another(pid: int, data: bytes) -> None:
    """Make and map another file that begins with this line, which all further lines go to."""
    for number in count(_files.number + 1 if _files.pid == pid else 0):
        path = os.path.join(os.environ[VARIABLE], f"{pid}-{number}.jsonl")  # noqa: PTH118 - light
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:  # of another thread, or of a process of this number before
            continue
        break
    try:
        size_bytes = max(min(FIRST_BYTES << GROWTH_BITS * number, LAST_BYTES), len(data))
        os.posix_fallocate(descriptor, 0, size_bytes)
        room = _mapped(descriptor, size_bytes)
    finally:
        os.close(descriptor)
    room.write(data)  # before other threads know of it, which may fill it at once
    _files.room, _files.number = room, number
    _files.pid = pid  # last: now other threads write there, too


def _mapped(descriptor: int, size_bytes: int) -> mmap.mmap:
    """A file as memory, without a descriptor.

    Python's map would keep a descriptor, and close it at its end. If a program has closed that
    descriptor, a file of the program may have the number by then. So the file is mapped over a map
    without a descriptor.
    """
    room = mmap.mmap(-1, size_bytes)
    place = ctypes.addressof(ctypes.c_char.from_buffer(room))
    protection, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | MAP_FIXED
    if _MAP(place, size_bytes, protection, flags, descriptor, 0) == MAP_FAILED:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return room


def warn(message: str) -> None:
    """Say it on standard error, if this process has said nothing yet."""
    if _files.warned_pid != os.getpid():
        _files.warned_pid = os.getpid()
        with suppress(Exception):  # it may be closed, or None
            sys.stderr.write(f"tupelo record: {message}\n")
