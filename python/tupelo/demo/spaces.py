"""The spaces of the demos: their names, where they are, and those left behind by a killed demo."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import tupelo as ts

if TYPE_CHECKING:
    from collections.abc import Iterator

OWNED = re.compile(r"tupelo-demo-[a-z]+-(\d+)(?:-\d+)?")
"""A name that no other space of a user has by chance, with the process that made it."""


def name_of(demo: str) -> str:
    """The name of the space of a demo that this process runs; behind it a number may follow."""
    return f"tupelo-demo-{demo}-{os.getpid()}"


def url_of(name: str, server: str | None) -> str:
    """The URL of a space: in shared memory, or of the server at this address."""
    if server is None:
        return f"shm://{name}"
    address, _, options = server.partition("?")
    if address.startswith("unix:"):
        return f"{address}?" + "&".join(filter(None, (f"space={name}", options)))
    return f"{address.rstrip('/')}/{name}" + (f"?{options}" if options else "")


COMMAND = "import sys; from tupelo.command_line import main; sys.exit(main())"
"""The command line `tupelo`, as a program of this interpreter."""


@contextmanager
def served() -> "Iterator[str]":
    """Run a server on a free port of this machine; give its address."""
    command = [sys.executable, "-c", COMMAND, "serve", "--listen", "tcp://127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - ours
        try:
            line = server.stdout.readline() if server.stdout else ""
            if not line.startswith("serving "):
                message = "the server did not start: what it has said is above"
                raise ts.ConnectionLost(message)
            yield line.split()[1].removesuffix("/NAME")
        finally:
            server.terminate()


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
