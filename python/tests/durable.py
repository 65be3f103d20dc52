"""Spaces that are kept in a file, as tests have them lose what is not in it."""

import subprocess
import sys
from pathlib import Path


def forget_memory(url):
    """Remove the memory of a space as the end of the machine does.

    It is that of the file's number, which stands at the end of its name.
    """
    status = Path(url.removeprefix("file://")).stat()
    name = f"tupelo.*.file-*-{status.st_dev:x}-{status.st_ino:x}.v*"
    for memory in Path("/dev", "shm").glob(name):
        memory.unlink()


def program(text, *arguments):
    """Start another interpreter that runs a text."""
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
