"""Imported first by the process that forks all others: that one ends with the first process.

Else it would go on for as long as any of its children does, and each of these until it does.
"""

from __future__ import annotations

import os
from multiprocessing import parent_process

from tupelo_bench.harness.lifetime import ORPHANED, die_with_parent

PID = os.getpid()
"""Of the process that forks, also in those that it has forked."""

# Nobody has told it who started it: if that one is gone already, those that are forked see it.
die_with_parent(os.getppid())


def die_with_the_first() -> None:
    """See that this process, which was forked here, ends with the first one; now, if that has.

    What the first has sent before it was killed is still done: so this may be forked after that.
    """
    die_with_parent(PID)
    first = parent_process()
    if first is None or not first.is_alive():
        os._exit(ORPHANED)
