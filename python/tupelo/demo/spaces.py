"""The spaces of the demos: their names, and the spaces left behind by a killed demo."""

import os
import re
from contextlib import suppress
from pathlib import Path

import tupelo as ts

OWNED = re.compile(r"tupelo-demo-[a-z]+-(\d+)(?:-\d+)?")
"""A name that no other space of a user has by chance, with the process that made it."""


def name_of(demo: str) -> str:
    """The name of the space of a demo that this process runs; behind it a number may follow."""
    return f"tupelo-demo-{demo}-{os.getpid()}"


def remove_left_behind() -> None:
    """Remove the spaces of demos that were killed.

    A space that cannot be opened stays: it may be that of another container, whose processes have
    other numbers here, and may be alive.
    """
    for space in ts.spaces():
        owner = OWNED.fullmatch(space["name"])
        if owner and not Path("/proc", owner[1]).exists():
            url = f"shm://{space['name']}"
            with suppress(ts.TupeloError):  # or another demo was faster
                ts.connect(url, create=False).close()
                ts.remove(url)
