"""The files of spaces in shared memory, as tests damage them or keep them from their user."""

import os
from pathlib import Path

SOMEBODY = 12_345
"""A user who is not the one that runs the tests."""


def file_of(url, user=None):
    """Return the file of a `shm://` space of a user, by default of this one."""
    name = url.removeprefix("shm://")
    return Path("/dev", "shm", f"tupelo.{os.geteuid() if user is None else user}.{name}.v1")


def flip(path, offset):
    """Change one bit."""
    with path.open("r+b") as segment:
        segment.seek(offset)
        (byte,) = segment.read(1)
        segment.seek(offset)
        segment.write(bytes([byte ^ 1]))


def withhold(path):
    """Make a file one that this user may not use.

    The superuser may use any; but a space has to be the user's own as well.
    """
    if os.geteuid() == 0:
        os.chown(path, SOMEBODY, SOMEBODY)
    else:
        path.chmod(0)


def refusal(path, user=None):
    """Return what a user, by default this one, is told of a file that is not theirs to use."""
    status = path.stat()
    user = os.geteuid() if user is None else user
    if user == status.st_uid:
        return (
            f"{path} is yours, and its mode {status.st_mode & 0o7777:04o} does not let you use it:"
            f" `chmod u+rw {path}`, or use another name"
        )
    return (
        f"{path} belongs to user {status.st_uid} with mode {status.st_mode & 0o7777:04o} and can"
        f" not be used by user {user}: run as user {status.st_uid}, or use another name"
    )
