"""All peers, in the order in which they are shown. A new adapter is added here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tupelo_bench.backends.grpc_calls import GRPC
from tupelo_bench.backends.javaspaces import JavaSpaces
from tupelo_bench.backends.manager import Manager
from tupelo_bench.backends.omniorb import OmniORB
from tupelo_bench.backends.plain import PlainDict, PlainList
from tupelo_bench.backends.postgres import Postgres
from tupelo_bench.backends.queue import Queue
from tupelo_bench.backends.redis import Redis
from tupelo_bench.backends.rinda import InsideRinda, Rinda
from tupelo_bench.backends.served import FileSpace, ServedSpace, TcpSpace
from tupelo_bench.backends.space import PrivateSpace, SharedSpace
from tupelo_bench.backends.sqlite import DurableSQLite, SQLite
from tupelo_bench.backends.udp import UDP
from tupelo_bench.backends.waiting import SleepingSpace, SpinningUDP
from tupelo_bench.backends.xml_rpc import XmlRpc

if TYPE_CHECKING:
    from tupelo_bench.backends.base import Peer

PEERS: tuple[type[Peer], ...] = (
    SharedSpace,
    PrivateSpace,
    Queue,
    Manager,
    SQLite,
    DurableSQLite,
    Redis,
    Postgres,
    JavaSpaces,
    Rinda,
    InsideRinda,
    UDP,
    GRPC,
    OmniORB,
    PlainDict,
    PlainList,
    XmlRpc,
    SpinningUDP,
    SleepingSpace,
    ServedSpace,
    TcpSpace,
    FileSpace,
)

OURS = ("tupelo-shm", "tupelo-mem")


class UnknownPeerError(ValueError):
    """A name that no peer has, and that none begins with."""


def named(words: str) -> tuple[type[Peer], ...]:
    """The peers of these names, and nobody else.

    Raises:
        UnknownPeerError: there is no peer of that name.
    """
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    for word in wanted or [words]:
        if word not in [peer.name for peer in PEERS]:
            names = ", ".join(peer.name for peer in PEERS)
            message = f"there is no peer {word!r}: there are {names}"
            raise UnknownPeerError(message)
    return tuple(peer for peer in PEERS if peer.name in wanted)


def chosen(words: str | None) -> tuple[type[Peer], ...]:
    """The peers whose names begin with one of these, and Tupelo; all of them if None."""
    if words is None:
        return PEERS
    wanted = tuple(word.strip() for word in words.split(",") if word.strip())
    for word in wanted:
        if not any(peer.name.startswith(word) for peer in PEERS):
            names = ", ".join(peer.name for peer in PEERS)
            message = f"there is no peer {word!r}: there are {names}"
            raise UnknownPeerError(message)
    return tuple(
        peer for peer in PEERS if peer.name in OURS or (wanted and peer.name.startswith(wanted))
    )
