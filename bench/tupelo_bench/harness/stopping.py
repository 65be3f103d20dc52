"""A run that is told to end: by Ctrl-C, a time limit, a closing terminal.

Such a signal often reaches the whole process group. So the processes of the suite do not hear it
(`deaf`); the first one ends them. There it is raised as `KeyboardInterrupt` once, and noted: what
goes wrong in cleaning up after it must not pass for a failure of what was measured.
"""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # by which a run is told to end
AGAIN_S = 10.0  # `timeout` sends its signal twice, people more often; later ones count again


class _Told:
    """Whether and when this process was told to end, and what that waits for."""

    at: float | None = None
    """On the clock of `time.monotonic`; None if it was not."""
    blocks: int = 0
    """Of `endings_wait`, one within the other."""
    is_due: bool = False
    """Whether it is still to be raised, after them."""


def listen() -> None:
    """From now on end by any of these signals as by Ctrl-C, but for those that are ignored."""
    for number in ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` has it, or a shell's `&`
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    del number, frame
    now = time.monotonic()
    if _Told.at is not None and now < _Told.at + AGAIN_S:
        return  # what cleans up is not disturbed
    _Told.at = now
    if _Told.blocks:
        _Told.is_due = True
        return
    raise KeyboardInterrupt


def told() -> bool:
    """Whether the run was told to end."""
    return _Told.at is not None


def go_on() -> None:
    """Go on, unless the run was told to end.

    Raises:
        KeyboardInterrupt: it was, and something hid that.
    """
    if told():
        raise KeyboardInterrupt


@contextmanager
def endings_wait() -> Iterator[None]:
    """Let a signal that ends the run come after the block; who is started within is deaf to it.

    Python calls functions of its own around a fork, and drops what is raised in them: a process
    that was told to end just then went on. The mask is of this thread alone, and of the processes
    that it starts. The signal goes to another thread then, as NumPy has one, and Python handles it
    here all the same. So it is noted, too.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    _Told.blocks += 1
    try:
        yield
    finally:
        # What waits behind the mask is handled in this call, still within the block.
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _Told.blocks -= 1
        if _Told.is_due and not _Told.blocks:
            _Told.is_due = False
            raise KeyboardInterrupt


def deaf() -> None:
    """Start what starts all processes of the suite, deaf to these signals, and they are, too."""
    from multiprocessing import forkserver, resource_tracker

    # One after the other: who starts the tracker hears the signals again.
    for start in (resource_tracker.ensure_running, forkserver.ensure_running):
        with endings_wait():
            start()
