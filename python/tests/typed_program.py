"""What type checkers infer; run by mypy and basedpyright, never executed (test_typing.py)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, assert_type
from uuid import UUID

import attrs
import msgspec
import numpy as np

import tupelo as ts
from tupelo import REST, F, aio, linda


def verbs(space: ts.Space) -> None:
    """Each verb returns what its template says."""
    assert_type(space.put("job", 7, 3.5), None)
    assert_type(space.put("job", timeout=3.5), None)
    assert_type(space.put("job", lease=3.5), ts.Lease)
    assert_type(space.put("job", after=timedelta(seconds=1), lease=None), ts.Lease)
    seconds = 3.5 if space.count() else None
    assert_type(space.put("job", lease=seconds), ts.Lease | None)
    assert_type(space.put_all([("job", 1)], lease=3), int)
    assert_type(space.put_all([("job", 1)]), int)
    assert_type(space.put_all(("job", n) for n in range(3)), int)
    assert_type(space.put_if_absent("job", 1, unless=("job", int)), bool)
    assert_type(space.put_if_absent("job", 1, lease=3.5), ts.Lease | None)
    assert_type(space.take("job", int), tuple[str, int])
    assert_type(space.read("job", int, timeout=1.5), tuple[str, int])
    assert_type(space.take("job", int, timeout=timedelta(seconds=1)), tuple[str, int])
    assert_type(space.try_take("job", int), tuple[str, int] | None)
    assert_type(space.try_read("job", int, order=F.max(1)), tuple[str, int] | None)
    assert_type(space.take_all("job", int, limit=3), list[tuple[str, int]])
    assert_type(space.read_all("job", int), list[tuple[str, int]])
    assert_type(space.take_many("job", int, n=3, at_least=1), list[tuple[str, int]])
    assert_type(space.claim("job", int, ttl=3), ts.Claim[tuple[str, int]])
    assert_type(space.dead("job", int), list[ts.DeadLetter[tuple[str, int]]])
    assert_type(space.requeue("job", int), int)
    assert_type(space.scan("job", int), Iterator[tuple[str, int]])
    assert_type(space.consume("job", int, idle=3), Iterator[tuple[str, int]])
    assert_type(space.swap("job", int, to=("job", "done")), tuple[str, int])
    assert_type(space.try_swap("job", int, to=("job",)), tuple[str, int] | None)
    assert_type(space.count("job", int), int)
    assert_type(space.wait_none("job", ..., timeout=3), None)
    assert_type(space.finish("job", int), None)
    assert_type(space.move_to(space, "job", int), int)
    assert_type(space.stat()["tuples"], Any)
    assert_type(space.explain("job").differences, list[tuple[int, str, str]])


def searches(space: ts.Space, other: ts.Space) -> None:
    """What a search finds has the type of the tuple."""
    found = ts.search([space, other], "job", int, timeout=timedelta(seconds=1))
    assert_type(found, ts.Found[tuple[str, int]])
    assert_type(found.tuple, tuple[str, int])
    assert_type(found.space, ts.Space)
    assert_type(found.visited, int)
    assert_type(found.waited_s, float)
    search = ts.Search([space, other], order="success factor")
    assert_type(search.spaces, tuple[ts.Space, ...])
    assert_type(search.take("job", ..., where="f[1] > 3").tuple, tuple[str, Any])
    assert_type(search.read(ts.like("job", int), timeout=None).tuple, tuple[str, int])
    assert_type(search.try_take("job", float), ts.Found[tuple[str, float]] | None)
    assert_type(search.try_read(..., F > 3), ts.Found[tuple[Any, float]] | None)


async def awaited_searches(space: aio.Space, other: aio.Space) -> None:
    """The same for asyncio, with spaces of its own."""
    found = await aio.search([space, other], "job", int, want="read")
    assert_type(found.tuple, tuple[str, int])
    assert_type(found.space, aio.Space)
    search = aio.Search([space, other])
    assert_type((await search.take("job", int, timeout=3)).tuple, tuple[str, int])
    assert_type(await search.try_read("job"), aio.Found[tuple[str]] | None)


def claims_and_leases(space: ts.Space) -> None:
    """What they give has the type of the tuple."""
    claim = space.claim("job", int, max_attempts=3, order=F.max(1), timeout=5)
    assert_type(claim.tuple, tuple[str, int])
    assert_type(claim.fence, int)
    with claim as (_, number):
        assert_type(number, int)
        claim.put("result", number)
    with space.claim(ts.like("job", int) | ts.like("stop")) as job:
        assert_type(job, tuple[str, int] | tuple[str])
    for letter, attempts, reasons in space.dead("job", float):
        assert_type(letter, tuple[str, float])
        assert_type(attempts, int)
        assert_type(reasons[-1], str)
    lease = space.put("host", "a", lease=60)
    assert_type(lease.expires_in_s, float | None)
    with lease.keep_alive():
        lease.renew(60)


def patterns(space: ts.Space) -> None:
    """A type stands for a value of that type, `...` for anything, a value for itself."""
    assert_type(space.take("job", 7), tuple[str, int])
    assert_type(space.take("job", ...), tuple[str, Any])
    assert_type(space.take(..., str), tuple[Any, str])
    assert_type(space.take("job", None), tuple[str, None])
    assert_type(space.take(str), tuple[str])
    assert_type(space.take("a", bytes, True), tuple[Any, bytes, Any])
    assert_type(space.take(str, bytes, bool), tuple[str, bytes, bool])
    assert_type(space.take("a", bytes, True, float), tuple[Any, bytes, Any, float])
    assert_type(space.take("a", datetime, Decimal, UUID), tuple[Any, datetime, Decimal, UUID])
    assert_type(space.take("a", datetime.now(UTC)), tuple[str, datetime])
    assert_type(space.take("temp", F > 30.0), tuple[str, float])
    assert_type(space.take("temp", F.between(3, 9)), tuple[str, float])
    assert_type(space.take("name", F >= "a"), tuple[str, str])
    assert_type(space.take("name", F.glob("*.png")), tuple[str, str])
    assert_type(space.take("name", F.prefix(b"x")), tuple[str, bytes])
    assert_type(space.take("name", F.in_({2, 3})), tuple[str, int])
    assert_type(space.take("name", F.number), tuple[str, int | float])
    assert_type(space.take("name", F == "x"), tuple[str, str])
    assert_type(space.take("name", F != "x"), tuple[str, Any])
    assert_type(space.take("name", F.opaque), tuple[str, Any])
    assert_type(space.take("name", (F > "a") & (F < "b")), tuple[str, str])
    assert_type(space.take("name", (F > "a") | bytes), tuple[str, str | bytes])
    assert_type(space.take("job", REST), tuple[Any, ...])
    assert_type(space.take(REST), tuple[Any, ...])
    assert_type(space.take("job", int, 3, REST), tuple[Any, ...])
    five = ("a", "b", "c", int, list)
    assert_type(space.take(*five), tuple[Any, ...])
    assert_type(space.take(1, 2, 3, 4, 5), tuple[Any, ...])
    fields: list[str] = ["a", "b"]
    assert_type(space.take(*fields), tuple[Any, ...])
    _, tile = space.take("tile", np.ndarray)
    assert tile.shape


def unions(space: ts.Space) -> None:
    """A union of types as the last of one or two fields keeps its types."""
    assert_type(space.take("job", int | None), tuple[str, int | None])
    assert_type(space.take(str, int | str | None), tuple[str, int | str | None])
    assert_type(space.try_take(int | str), tuple[int | str] | None)
    assert_type(space.take("job", "int"), tuple[str, str])
    assert_type(space.take(int | None, 3), tuple[int | None, int])
    assert_type(space.take(int | None, str | bytes), tuple[int | None, str | bytes])
    assert_type(space.take("job", int | None, float), tuple[Any, ...])
    assert_type(space.take("job", int, 3, int | None), tuple[Any, ...])


def templates(space: ts.Space) -> None:
    """A template carries the type of what it finds."""
    job = ts.like("job", int)
    assert_type(job, ts.Template[tuple[str, int]])
    assert_type(space.take(job), tuple[str, int])
    either = job | ts.like("stop")
    assert_type(space.take(either), tuple[str, int] | tuple[str])
    match space.take(either, timeout=5):
        case (_, number):
            assert_type(number, int)
        case (_,):
            pass
    assert_type(ts.parse("job, :int"), ts.Template[tuple[Any, ...]])


@dataclass
class Job:
    """An entry."""

    id: int
    status: str = "new"


class Point(NamedTuple):
    """Another."""

    x: float


@attrs.define
class Note:
    """One of attrs."""

    text: str


class Event(msgspec.Struct):
    """One of msgspec."""

    name: str


def entries(space: ts.Space) -> None:
    """A class of entries stands for its instances."""
    assert_type(space.put(Job(1)), None)
    assert_type(space.put_all([Job(1), ("job", 1)]), int)
    assert_type(space.take(Job), Job)
    assert_type(space.take(Job, status="new", id=F > 3, timeout=3), Job)
    assert_type(space.try_take(Point, x=1.5), Point | None)
    assert_type(space.read_all(Note, limit=3), list[Note])
    assert_type(space.take(Event, name=F.glob("a*")), Event)
    assert_type(space.take(Job(1)), Job)
    assert_type(ts.like(Job, status="new"), ts.Template[Job])
    assert_type(space.take(ts.like(Job) | ts.like("stop")), Job | tuple[str])
    assert_type(space.swap(Job, id=1, to=Job(2)), Job)
    assert_type(space.scan(Job, id=1), Iterator[Job])
    assert_type(space.try_claim(Job, id=1), ts.Claim[Job] | None)


def refused(space: ts.Space, pair: tuple[int, int]) -> None:
    """What a call refuses is refused by the checker, too: a comment without use is an error."""
    space.take("job", list[int])  # type: ignore[type-var]
    space.take("job", int, dict[str, int])  # type: ignore[type-var]
    space.take(("job", int))  # type: ignore[call-overload]
    space.take("job", Job)  # type: ignore[type-var]
    space.take("job", {1, 2})  # type: ignore[call-overload]
    space.take("job", int, timeouts=3)  # type: ignore[call-overload]
    assert_type(space.take("job", list), tuple[str, list[Any]])
    assert_type(space.take("job", [1, 2]), tuple[str, list[int]])
    assert_type(space.take("job", pair), tuple[str, tuple[int, int]])
    assert_type(space.take("job", F == [1, 2]), tuple[str, Any])


def rest() -> None:
    """What is not a verb."""
    with ts.connect("shm://jobs", size="1G") as space:
        assert_type(space, ts.Space)
        assert_type(space.url, str)
    with linda.connect() as lindas:
        assert_type(lindas, linda.Space)
        assert_type(lindas.in_("job", int), tuple[str, int])
        assert_type(lindas.rdp("job", int), tuple[str, int] | None)
    with ts.spawn(rest, n=3) as workers:
        assert_type(workers.pids, list[int])
    try:
        ts.remove("shm://jobs")
    except ts.TupeloError as error:
        assert_type(error.hint, str | None)


async def awaited() -> None:
    """The asyncio twin has the types of the synchronous verbs."""
    async with aio.connect("shm://jobs") as space:
        assert_type(space, aio.Space)
        assert_type(await space.take("job", int, timeout=5), tuple[str, int])
        assert_type(await space.try_read("job", ...), tuple[str, Any] | None)
        assert_type(await space.take_many("job", int, n=3), list[tuple[str, int]])
        assert_type(await space.count("job", ...), int)
        async for _, number in space.consume("job", int):
            assert_type(number, int)
        async with space.claim("job", int, ttl=5) as (_, number):
            assert_type(number, int)
        claim = await space.claim("job", int)
        assert_type(claim, aio.Claim[tuple[str, int]])
        assert_type(claim.tuple, tuple[str, int])
        assert_type(await space.try_claim("job", int), aio.Claim[tuple[str, int]] | None)
        assert_type(await space.dead("job", int), list[ts.DeadLetter[tuple[str, int]]])
        assert_type(await space.put("job", 1), None)
        assert_type(await space.put("job", 1, lease=5), aio.Lease)
        assert_type(await space.take(Job, status="new"), Job)
