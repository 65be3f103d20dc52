"""Functions that workers call in tests: they find them by module and name."""

import asyncio
import enum
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from datetime import datetime

import tupelo as ts


class OwnError(Exception):
    """What only the worker can make: it takes two arguments."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def double(x):
    return x + x


def double_slowly(x):
    time.sleep(0.05)
    return 2 * x


def pid(*_ignored):
    return os.getpid()


def a_set():
    return {1}


def fail(message="no"):
    raise ZeroDivisionError(message)


def fail_in_own_way():
    raise OwnError(1, 2)


def leave(code):
    sys.exit(code)


def unstorable():
    return bytearray(b"x")


def unsendable():
    return (word for word in "x")


def unsendable_within():
    return (1, {"a": unsendable()})


def same(*values, **by_name):
    """Return what came, with its types: those tell a member of an enum from its value."""
    return values, by_name, [type(value).__name__ for value in [*values, *by_name.values()]]


def first(value):
    return value


def type_name(value, name):
    return f"{type(value).__name__} {type(name).__name__}"


def fail_first(url, value):
    """Raise at the first attempt; then return the type of the argument."""
    with ts.connect(url, create=False) as space:
        if space.put_if_absent("tried"):
            raise ZeroDivisionError
    return type(value).__name__


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


class Metres(float):
    """A number that is more than its value."""


@dataclass
class Painted:
    """An entry with fields that are none of a tuple."""

    colour: Colour
    at: datetime


def unstorable_within():
    return (1, {"a": bytearray(b"x")})


def kill_first(url, *names):
    """Kill the process of each attempt that finds a tuple ("kill", …)."""
    with ts.connect(url, create=False) as space:
        space.put("began", os.getpid(), *names)
        if space.try_take("kill", *names):
            os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def wait_for(url, word):
    """Say that the task has begun, and return when it may end."""
    with ts.connect(url, create=False) as space:
        space.put("began", word, os.getpid())
        space.take("go on", word)
    return word


def sleep_for_ever():
    threading.Event().wait()


def wait_if(url, word):
    return wait_for(url, word) if isinstance(word, str) else word


def half_of_even(n):
    if n % 2:
        message = f"{n} is odd"
        raise ValueError(message)
    return n // 2


def kill_or_wait(url):
    """Say that the task has begun, and by whom; return when it may end."""
    with ts.connect(url, create=False) as space:
        space.put("began", os.getpid())
        space.take("go on")
    return os.getpid()


def hold_the_interpreter():
    import ctypes  # noqa: PLC0415

    ctypes.PyDLL(None).usleep(600_000_000)


def give_up():
    """Raise what ends a task of an event loop, and is no `Exception`."""
    raise asyncio.CancelledError


def interrupt():
    """Raise what ends a program."""
    raise KeyboardInterrupt


def interrupt_if(is_to):
    if is_to:
        raise KeyboardInterrupt


@dataclass
class Unreadable:
    """What can be made, and whose field can not be read."""

    value: int

    def __getattribute__(self, name):
        if name == "value":
            message = "not now"
            raise RuntimeError(message)
        return super().__getattribute__(name)


def unreadable():
    return Unreadable(1)
