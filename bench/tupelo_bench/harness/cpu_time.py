"""The processor time of a process and of those that it started, in nanoseconds.

What `time.process_time` says of the own process, the kernel says of another one: of each thread, in
`/proc`. Time of threads that have ended is not in it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def cpu_time_ns(process: int) -> int:
    """What all threads of a process have run, and those of its children; 0 if it is gone."""
    found = 0
    for thread in _threads(process):
        with suppress(OSError):  # it has just ended
            found += int((thread / "schedstat").read_text(encoding="ascii").split()[0])
            for child in (thread / "children").read_text(encoding="ascii").split():
                found += cpu_time_ns(int(child))
    return found


def _threads(process: int) -> list[Path]:
    try:
        return list(Path("/proc", str(process), "task").iterdir())
    except OSError:
        return []
