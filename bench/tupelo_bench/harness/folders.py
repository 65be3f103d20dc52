"""Temporary folders of a run, and those that a run that was killed has left behind.

Each is locked by the process that made it for as long as it lives, so that a later run can tell a
folder that nobody uses. The lock is on the folder itself: what is in it is a peer's, which may
remove what it does not know. A number of a process in the name would not do, since two containers
with processes of the same numbers may share the place of all folders.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tupelo_bench.harness.stopping import endings_wait

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX, SUFFIX = "tupelo-bench-", ".run"  # which no folder of a user's results has by chance


@contextmanager
def temporary_folder(what: str) -> Iterator[Path]:
    """Make a folder that is removed after the block, also if the run is told to end meanwhile."""
    with ExitStack() as ending:
        with endings_wait():
            folder = _locked(what, ending)
        yield folder


def _locked(what: str, ending: ExitStack) -> Path:
    """Make a folder and lock it; one that another run removes in between is made again."""
    while True:
        made = tempfile.TemporaryDirectory(prefix=f"{PREFIX}{what}-", suffix=SUFFIX)
        with ExitStack() as unless_locked:
            unless_locked.enter_context(made)
            with suppress(FileNotFoundError):
                lock = os.open(made.name, os.O_RDONLY | os.O_DIRECTORY)
                unless_locked.callback(os.close, lock)
                with suppress(OSError):  # a file system without locks: then nobody removes it
                    fcntl.flock(lock, fcntl.LOCK_EX)
                if Path(made.name).exists():
                    ending.enter_context(unless_locked.pop_all())
                    return Path(made.name)


def remove_left_behind() -> None:
    """Remove the folders of runs that were killed: those that nobody has locked."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*{SUFFIX}"):
        with suppress(OSError), ExitStack() as ending:  # another's, or one that has just gone
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            ending.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)  # a server that is ending may still write


def file_system(folder: Path) -> str:
    """The kind of file system that a folder is on, as "ext4"; "" if the system does not say."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    kinds = {_without_escapes(point): kind for _, point, kind, *_ in map(str.split, mounts)}
    place = folder.resolve()
    return next((kinds[str(at)] for at in (place, *place.parents) if str(at) in kinds), "")


def _without_escapes(point: str) -> str:
    """A place as it is: in the list of them a blank is a backslash and 040."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point)
