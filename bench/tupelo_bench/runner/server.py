"""A peer's server, for as long as its block runs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tupelo_bench.harness.folders import temporary_folder
from tupelo_bench.harness.placement import Placement, placement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tupelo_bench.backends.base import Peer


@contextmanager
def started(peer_class: type[Peer], where: Placement | None = None) -> Iterator[Peer]:
    """Start a peer's server for the length of a block, with a data folder of its own."""
    peer = peer_class()
    with temporary_folder(peer.name) as folder:
        try:
            peer.start(folder, (where or placement("free")).server)
            if peer.server is not None:
                peer.server_pid = peer.server.process.pid
            yield peer
        finally:
            peer.stop()
