"""How much more a space can hold: by its own limit, and by the memory of the system."""

from __future__ import annotations

import os

from tupelo.tasks.local import is_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tupelo._native import Space

__all__ = ["free_bytes"]

SEGMENTS = "/dev/shm"  # noqa: S108 - where those of shm:// are: a container often has 64 MiB


def free_bytes(space: Space) -> int:
    """Return for how many bytes there is room, about: memory is given out in extents."""
    stat = space.stat()
    used_bytes = int(stat["bytes_used"])
    free = int(stat["bytes_max"]) - used_bytes
    if is_private(space):
        return free
    system = os.statvfs(SEGMENTS)
    unused_bytes = int(stat["bytes_committed"]) - used_bytes
    return min(free, unused_bytes + system.f_bavail * system.f_frsize)
