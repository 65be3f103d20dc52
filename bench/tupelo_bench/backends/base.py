"""What the suite asks of a tuple space, and of whatever people use instead of one.

A `Backend` is a system: it is started, makes empty spaces, and is stopped. A `Handle` is one space
of it, held by one process. The experiments declare the `Shape` of the tuples that they use, as one
would design tables or keys before writing a program. A template names the tag of a shape and either
all of its keys or none of them. So an adapter needs no general matching. It can use the means that
an expert of the system would use: an index, a list per key, a class per shape.

docs/how-to/add-a-backend.md shows how an adapter is written.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import numpy as np

    from tupelo_bench.harness.lifetime import Server

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
Fields = tuple[Any, ...]
VisitOrder = Literal["round robin", "success factor"]


@dataclass(frozen=True)
class Shape:
    """The tuples of one tag: what a template of theirs may name."""

    tag: str
    arity: int
    keys: tuple[int, ...] = ()
    """The fields that templates name beside the tag; all of them, or none."""
    tag_at: int = 0
    awaited: bool = True
    """Whether anybody ever waits for such a tuple; if not, a put need not wake anyone."""


@dataclass(frozen=True)
class Schema:
    """The shapes that an experiment uses, found by their tags."""

    shapes: tuple[Shape, ...]
    outlive: bool = False
    """Whether tuples have to stay when the process that put them ends."""
    by_tag: dict[str, Shape] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_tag", {shape.tag: shape for shape in self.shapes})

    def route(self, fields: Fields) -> tuple[Shape, str | None]:
        """The shape of a tuple or template, and its keys as one text.

        The text is empty for a shape without keys; None for a template that names none of them.
        """
        first = fields[0]
        shape = self.by_tag.get(first) if type(first) is str else None
        if shape is None:
            shape = self.by_tag.get(fields[1]) if len(fields) > 1 else None
        if shape is None:
            message = (
                f"no tag of a shape in {fields!r:.100}: there are {', '.join(self.by_tag)};"
                " a backend's own `create` calls that of `Backend` first"
            )
            raise ValueError(message)
        keys = shape.keys
        if not keys:
            return shape, ""
        named = [fields[index] for index in keys]
        formal = [value is ... or isinstance(value, type) for value in named]
        if not any(formal):
            return shape, "\x1f".join(map(str, named))
        if all(formal):
            return shape, None
        message = f"a template of {shape.tag!r} names some of its keys {keys} only: {fields!r}"
        raise ValueError(message)


@dataclass(frozen=True)
class Found:
    """What a search in several spaces found."""

    tuple: Fields
    space: Any
    visited: int
    """How many looks into a space it took."""
    waited_s: float
    """What of its time was no look."""
    trips: int
    """Operations that it took: who asks all spaces at once needs one for as many looks."""


class Handle(ABC):
    """One space, held by one process."""

    @abstractmethod
    def put(self, *fields: Any) -> None:
        """Add a tuple; when this returns, every process can find it."""

    def put_all(self, tuples: Iterable[Fields]) -> None:
        """Add many tuples, the fastest way there is; not necessarily in one step."""
        for fields in tuples:
            self.put(*fields)

    @abstractmethod
    def take(self, *template: Any) -> Fields:
        """Remove and return a match, waiting for one."""

    @abstractmethod
    def read(self, *template: Any) -> Fields:
        """Return a match, waiting for one."""

    @abstractmethod
    def try_take(self, *template: Any) -> Fields | None:
        """Remove and return a match, or None if there is none now."""

    @abstractmethod
    def try_read(self, *template: Any) -> Fields | None:
        """Return a match, or None if there is none now."""

    @abstractmethod
    def count(self, *template: Any) -> int:
        """How many tuples match now."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the space."""

    def abandon(self) -> None:
        """Let go of the space; nobody wants what was put into it."""
        self.close()


def resident_bytes(process: int | str) -> int:
    """What a process has in memory, as the operating system sees it."""
    with open(f"/proc/{process}/statm", encoding="ascii") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * PAGE_BYTES


class Peer(ABC):
    """A system that is measured, as the process that runs the experiment sees it.

    It is sent to the worker processes by pickling; what only the first process may hold (its
    server) stays behind.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """What it is, where `tupelo bench peers` lists all."""
    how: ClassVar[str] = ""
    """How the adapter drives it, and why figures of it need care."""
    how_to_install: ClassVar[str] = ""
    warm_up: ClassVar[int] = 100
    """How many operations come before those that count: a virtual machine compiles as it runs."""
    compiles: ClassVar[bool] = False
    """Whether it compiles as it runs: then it is warm when its times differ no more."""
    has_server: ClassVar[bool] = False
    """Whether a process of its own holds the tuples: then it matters where that runs."""
    no_memory: ClassVar[str | None] = None
    """Why nobody can tell how much memory its tuples take; None if one can."""
    one_process: ClassVar[bool] = False
    """Whether only the process that opens a space can reach it: then `mem` alone has it."""
    share: ClassVar[float] = 1.0
    """Its part of the time of an experiment, beside the other peers."""
    only_in: ClassVar[frozenset[str]] = frozenset()
    """The experiments that it is made for; empty for all."""
    server: Server | None = None
    server_pid: int | None = None
    """The process of the server, also as the workers see the peer; None if there is none."""

    @classmethod
    def missing(cls) -> str | None:
        """What has to be installed first; None if nothing."""
        return None

    @classmethod
    def version(cls) -> str:
        """The version of the software that is measured."""
        return ""

    def start(self, folder: Path, cpus: Sequence[int]) -> None:  # noqa: B027 - most need no server
        """Start the server, if there is one, on these processors, with its data in `folder`."""

    def stop(self) -> None:
        """Stop the server. It is safe to stop what was never started."""
        if self.server is not None:
            self.server.stop()
            self.server = None


class Backend(Peer):
    """A tuple space, or what serves as one."""

    oldest_first: ClassVar[bool] = True
    """Whether the oldest tuple of a shape and key is taken first."""

    def __init__(self) -> None:
        self.schema = Schema(())
        self.spaces: tuple[str, ...] = ()

    def lacks(self, schema: Schema) -> str | None:  # noqa: ARG002 - for those that lack something
        """Why this schema can not be had; None if it can."""
        return None

    def create(self, schema: Schema, spaces: Sequence[str], size_bytes: int) -> None:
        """Make empty spaces of these names, together for about that many bytes of tuples."""
        del size_bytes
        self.schema = schema
        self.spaces = tuple(spaces)

    def drop(self) -> None:
        """Remove the spaces that `create` made."""

    @abstractmethod
    def open(self, space: str) -> Handle:
        """Open a space; called in the process that uses it."""

    def search(self, spaces: Sequence[Any], order: VisitOrder) -> Any:  # noqa: ARG002
        """What finds a match in one of several spaces at once; None to look into one by one.

        It has `take` and `read`, which wait and return a `Found`.
        """
        return None

    def memory_bytes(self) -> int | None:
        """The memory that the tuples take now, as well as the system can tell (`no_memory`)."""
        return None

    def bridge_s(self, fields: Fields) -> float | None:  # noqa: ARG002
        """What the way into another language and back costs per tuple, if there is one."""
        return None

    # --- arrays: one field for Tupelo, the same bytes for the others ---

    def array_kind(self) -> type:
        """The type that stands for an array in a template."""
        return bytes

    def array(self, values: np.ndarray) -> Any:
        """A field that holds these numbers."""
        return values.tobytes()

    def numbers(self, value: Any, dtype: str) -> np.ndarray:
        """The numbers in such a field."""
        import numpy  # noqa: ICN001

        return numpy.frombuffer(value, dtype)
