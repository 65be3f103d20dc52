"""`tupelo bench peers`: who is here, and how to install the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.backends.registry import PEERS

if TYPE_CHECKING:
    from tupelo.terminal import Terminal
    from tupelo_bench.backends.base import Peer


def show_peers(terminal: Terminal) -> None:
    """Tell which peers are here, and how to install the others."""
    rows = []
    for peer in PEERS:
        lacking = peer.missing()
        state = f"{lacking}: {peer.how_to_install}" if lacking else _version_of(peer)
        rows.append((peer.name, "yes" if lacking is None else "no", peer.title, state))
    name_width = max(len(name) for name, *_ in rows)
    title_width = max(len(title) for *_, title, _ in rows)
    for name, here, title, state in rows:
        words = (name.ljust(name_width), here.ljust(3), title.ljust(title_width), state)
        terminal.line(f"  {'  '.join(words)}".rstrip())


def _version_of(peer: type[Peer]) -> str:
    """The version of a peer that is here; one that does not tell must not hide the others."""
    try:
        return peer.version()
    except Exception as error:  # noqa: BLE001 - of any program or package
        return f"does not tell its version: {error}"
