"""Spaces that are kept in a file, as tests have them lose what is not in it."""

import subprocess
import sys
from pathlib import Path


def memories(url):
    """Return the files of the memory of a space.

    They have the file's number at the end of their names.
    """
    status = Path(url.removeprefix("file://")).stat()
    name = f"tupelo.*.file-*-{status.st_dev:x}-{status.st_ino:x}.v*"
    return list(Path("/dev", "shm").glob(name))


def forget_memory(url):
    """Remove the memory of a space as the end of the machine does."""
    for memory in memories(url):
        memory.unlink()


def change_build(url):
    """Turn the memory of a space into one of another version of Tupelo, or back."""
    [memory] = memories(url)
    with memory.open("r+b") as file:
        identity = bytearray(file.read(128))
        identity[16] ^= 1  # of the hash of the layout
        checksum = 0xCBF2_9CE4_8422_2325
        for byte in identity[:12] + identity[16:]:
            checksum = (checksum ^ byte) * 0x0000_0100_0000_01B3 % (1 << 64)
        file.seek(0)
        file.write(identity + checksum.to_bytes(8, sys.byteorder))


def program(text, *arguments):
    """Start another interpreter that runs a text."""
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


COUNT = """
import sqlite3, sys
file = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
print(file.execute("SELECT count(*) FROM tuple").fetchone()[0])
"""

LOCK = """
import sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
file.close()
"""


def in_file(url):
    """Return how many tuples are in the file.

    Another process looks: locks of a file do not keep two libraries of one process apart.
    """
    with program(COUNT, url.removeprefix("file://")) as counting:
        return int(counting.stdout.read())


class Locked:
    """Keeps everybody else from writing to the file of a space."""

    def __init__(self, url):
        self._path = url.removeprefix("file://")

    def __enter__(self):
        self._process = program(LOCK, self._path)
        assert self._process.stdout.readline() == "locked\n"
        return self

    def __exit__(self, *_):
        self.release()

    def release(self):
        """Let the others go on."""
        with self._process as process:
            process.stdin.close()
