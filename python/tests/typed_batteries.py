"""What type checkers infer of the batteries; run by mypy and basedpyright, never executed."""

from typing import Any, assert_type

import tupelo as ts
from tupelo import aio, batteries
from tupelo.aio import batteries as awaited


def values(space: ts.Space) -> None:
    """A register has the type of its default."""
    hits = batteries.Counter(space, "hits")
    hits += 1
    assert_type(hits, batteries.Counter)
    assert_type(hits.value, int)
    best = batteries.Register(space, "best", default=float("inf"))
    assert_type(best, batteries.Register[float])
    assert_type(best.update(lambda old: min(old, 3.5)), float)
    names = batteries.Register[str | None](space, "name", default=None)
    assert_type(names.value, str | None)


async def awaited_values(space: aio.Space) -> None:
    """The same for asyncio."""
    assert_type(await awaited.Counter(space, "hits").add(), int)
    best = awaited.Register(space, "best", default=float("inf"))
    assert_type(best, awaited.Register[float])
    assert_type(await best.get(), float)


def locks(space: ts.Space) -> None:
    """Whatever is acquired gives a permit."""
    for one in (
        batteries.Lock(space, "a", ttl=3),
        batteries.Semaphore(space, "a", n=3),
        batteries.RWLock(space, "a").reader,
        batteries.RWLock(space, "a", readers=3).writer,
    ):
        with one as permit:
            assert_type(permit, batteries.Permit)
            assert_type(permit.token, int)
        assert_type(one.acquire(timeout=3), batteries.Permit)
        assert_type(one.try_acquire(), batteries.Permit | None)


async def awaited_locks(space: aio.Space) -> None:
    """The same for asyncio."""
    async with awaited.Lock(space, "a") as permit:
        assert_type(permit, awaited.Permit)
        assert_type(permit.token, int)
    table = awaited.RWLock(space, "a")
    assert_type(await table.writer.try_acquire(), awaited.Permit | None)
    async with await awaited.Semaphore(space, "a", n=3).acquire(timeout=3):
        pass


def meetings(space: ts.Space) -> None:
    """Numbers, and what went wrong."""
    try:
        assert_type(batteries.Barrier(space, "a", parties=3).wait(timeout=3), int)
    except batteries.BrokenBarrier as error:
        assert_type(error.missing, tuple[str, ...])
    assert_type(batteries.Latch(space, "a").count_down(), int)
    assert_type(batteries.Latch(space, "a").left, int)


def queues(space: ts.Space) -> None:
    """A queue has the type of its items."""
    mail = batteries.Queue[str](space, "mail", maxsize=3)
    mail.put("hello", priority=3, after=3, timeout=3)
    assert_type(mail.get(timeout=3), batteries.Delivery[str])
    with mail.get() as letter:
        assert_type(letter, str)
    assert_type(mail.try_get(), batteries.Delivery[str] | None)
    for dead, attempts, error in mail.dead:
        assert_type(dead, str)
        assert_type(attempts, int)
        assert_type(error, str)


async def awaited_queues(space: aio.Space) -> None:
    """The same for asyncio."""
    mail = awaited.Queue[str](space, "mail")
    async with await mail.get() as letter:
        assert_type(letter, str)
    async with mail.get(timeout=5) as letter:
        assert_type(letter, str)
    assert_type(await mail.get(), awaited.Delivery[str])
    assert_type(await mail.try_get(), awaited.Delivery[str] | None)
    async for dead in mail.dead:
        assert_type(dead, awaited.DeadItem[str])


def half(number: int, *, exact: bool = False) -> float:
    """Something to compute."""
    return number / 2 if exact else number // 2


@batteries.worker("shm://film", retries=3)
def render(frame: int, scene: str = "sea") -> str:
    """Compute something elsewhere."""
    return f"{scene} {frame}"


def work(space: ts.Space) -> None:
    """Results have the types of the functions."""
    with batteries.Pool("shm://typed", workers=2, retries=1, timeout=3) as pool:
        for result in pool.map(half, range(3), as_completed=True):
            assert_type(result, float)
        for either in pool.map(half, range(3), return_exceptions=True):
            assert_type(either, float | ts.RemoteError)
        assert_type(pool.submit(half, 3, exact=True).result(), float)
        for failure in pool.failures:
            assert_type(failure, batteries.Failure)
            assert_type(failure.error, ts.RemoteError)
    assert_type(render(7, scene="lake"), str)
    assert_type(render.submit(7).result(timeout=3), str)
    space.eval("half", 3, ts.call(half, 3, exact=True), on="processes").result()


@awaited.worker("shm://film")
def awaited_render(frame: int) -> str:
    """The same for asyncio."""
    return f"{frame}"


async def awaited_work(space: aio.Space) -> None:
    """The same for asyncio."""
    async with awaited.Pool("shm://typed") as pool:
        async for result in pool.map(half, range(3)):
            assert_type(result, float)
        async for either in pool.map(half, range(3), return_exceptions=True):
            assert_type(either, float | ts.RemoteError)
        assert_type(await pool.submit(half, 3), float)
    assert_type(await awaited_render.submit(7), str)
    await space.eval("half", 3, ts.call(half, 3))


def results(space: ts.Space) -> None:
    """Rows have the type of the template."""
    rows = batteries.gather(space, "result", int, float, n=3, timeout=3, progress="results")
    assert_type(rows, batteries.Rows[tuple[Any, int, float]])
    assert_type(rows[0], tuple[Any, int, float])
    assert_type(rows.columns(), dict[str, list[Any]])


async def awaited_results(space: aio.Space) -> None:
    """The same for asyncio."""
    rows = await awaited.gather(space, "result", int, n=3)
    assert_type(rows, awaited.Rows[tuple[str, int]])


def services(space: ts.Space) -> None:
    """What is asked and answered may be anything."""
    batteries.Service(space, "double", lambda number: 2 * number, concurrency=2).run()
    assert_type(batteries.call(space, "double", 3, timeout=3), Any)


async def awaited_services(space: aio.Space) -> None:
    """The same for asyncio."""
    await awaited.Service(space, "double", lambda number: 2 * number, concurrency=2).run()
    assert_type(await awaited.call(space, "double", 3, timeout=3), Any)
