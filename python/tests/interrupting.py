"""Ctrl-C at the places of a blocking call where the interpreter looks for it, one after another."""

import gc
import itertools
import sys
from pathlib import Path

import tupelo

PACKAGE = str(Path(tupelo.__file__).parent)


class Interruption:
    """Raises KeyboardInterrupt at the n-th place of this package at which Ctrl-C may be seen.

    CPython looks for signals where a function begins and behind calls of C. It does so at
    jumps back in a loop as well, which are not among them: a loop is seen by what it calls.
    """

    def __init__(self, at):
        self.at = at
        self.where = None
        """The place: file, line, and what the interpreter did there."""

    def __enter__(self):
        sys.setprofile(self._look)
        return self

    def __exit__(self, *exception):
        sys.setprofile(None)

    def _look(self, frame, event, called):
        path = frame.f_code.co_filename
        if event not in {"call", "c_return"} or not path.startswith(PACKAGE):
            return
        if self.at == 0:
            sys.setprofile(None)
            what = frame.f_code.co_name if event == "call" else getattr(called, "__name__", "")
            self.where = f"{path.removeprefix(PACKAGE)}:{frame.f_lineno} {event} {what}"
            raise KeyboardInterrupt
        self.at -= 1


def at_every_place(call, check, *, while_handled=False):
    """Interrupt `call` at its first place, then at its second, until it ends without.

    After each, `check(where)`; at the end once with None. What is in the hands of frames that are
    gone is collected before. With `while_handled` those of the call are not gone: its traceback
    has them, as in an `except` clause.

    Returns:
        How many places there were.
    """
    for at in itertools.count():
        interruption = Interruption(at)
        try:
            with interruption:
                call()
        except KeyboardInterrupt:
            if while_handled:
                check(interruption.where)
                continue
        gc.collect()
        check(interruption.where)
        if interruption.where is None:
            return at
    return None
