"""Ten thousand tasks that wait for tuples: what one costs, and how soon one of them is woken.

Beside it, in the same run: the cost of a task that waits for nothing. Also how soon a byte through
a pipe wakes the loop, and how late a sleep of the loop ends. No process puts a delayed tuple at its
time: the waiting process keeps the time.
"""

import asyncio
import multiprocessing
import os
import statistics
import struct
import time
from collections.abc import Callable, Coroutine
from typing import Any

from asked import at_most

import tupelo as ts
from tupelo import aio

URL = "shm://benchmark-tasks"

TASKS = 10_000
WAKES = 300
DUE_S = 0.005


async def cost_of(make: Callable[[int], Coroutine[Any, Any, object]]) -> float:
    """Return the seconds that it takes to create, begin and cancel a task of `make(n)`."""
    begin = time.perf_counter()
    tasks = [asyncio.create_task(make(n)) for n in range(TASKS)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return (time.perf_counter() - begin) / TASKS


def partner(url: str, write_end: int) -> None:
    """In another process: whenever asked to, wait until the loop sleeps, and wake it."""
    space = ts.connect(url, create=False)
    for _, how in iter(lambda: space.take("wake", str), ("wake", "end")):
        time.sleep(0.002)
        if how == "pipe":
            os.write(write_end, struct.pack("d", time.perf_counter()))
        else:
            space.put("mine", time.perf_counter())


async def pipe_latency(shared: aio.Space, read_end: int) -> float:
    """Return the median seconds from a byte written by another process to the loop's callback."""
    loop, times = asyncio.get_running_loop(), list[float]()
    rung = asyncio.Event()

    def readable() -> None:
        (sent,) = struct.unpack("d", os.read(read_end, 8))
        times.append(time.perf_counter() - sent)
        rung.set()

    loop.add_reader(read_end, readable)
    for _ in range(WAKES):
        rung.clear()
        await shared.put("wake", "pipe")
        await rung.wait()
    loop.remove_reader(read_end)
    return statistics.median(times)


async def take_latency(shared: aio.Space, others: int) -> float:
    """Return the median seconds from another process's put to the task that gets it, of many."""
    waiting = [asyncio.create_task(shared.take("other", n)) for n in range(others)]
    await asyncio.sleep(0.01)
    times: list[float] = []
    for _ in range(WAKES):
        await shared.put("wake", "put")
        _, sent = await shared.take("mine", float)
        times.append(time.perf_counter() - sent)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return statistics.median(times)


async def lateness(wait: Callable[[], Coroutine[Any, Any, object]]) -> tuple[float, float]:
    """Return how many seconds later than `DUE_S` after its begin `wait()` ends: median and most."""
    late: list[float] = []
    for _ in range(WAKES):
        begin = time.perf_counter()
        await wait()
        late.append(time.perf_counter() - begin - DUE_S)
    return statistics.median(late), max(late)


def row(name: str, time_s: float, yardstick_s: float, asked: str = "") -> None:
    """Print one figure, how many times the yardstick it is, and what is asked of it."""
    print(f"{name:<35} {time_s * 1e6:8.1f} us  {time_s / yardstick_s:5.1f} x{asked}")


async def main() -> None:
    """Measure, and print a table."""
    forever = asyncio.Event()

    async def idle(_n: int) -> None:
        await forever.wait()

    async with aio.connect(URL, fresh=True) as shared:
        for _ in range(2):
            task_s = await cost_of(idle)
            take_s = await cost_of(lambda n: shared.take("reply", n, str))
        read_end, write_end = os.pipe()
        fork = multiprocessing.get_context("fork")
        other = fork.Process(target=partner, args=(URL, write_end))
        other.start()
        pipe_s = await pipe_latency(shared, read_end)
        alone_s = await take_latency(shared, 0)
        among_s = await take_latency(shared, TASKS - 1)
        await shared.put("wake", "end")
        other.join()

        async def take_later() -> None:
            await shared.put("later", 1, after=DUE_S)
            await shared.take("later", int)

        asleep, later = await lateness(lambda: asyncio.sleep(DUE_S)), await lateness(take_later)
    print(f"create and cancel a task            {task_s * 1e6:8.1f} us")
    row("create and cancel a waiting take", take_s, task_s, at_most(take_s / task_s, 3))
    print(f"a byte through a pipe to the loop   {pipe_s * 1e6:8.1f} us")
    row("a put to the one waiting take", alone_s, pipe_s)
    row(f"a put to one of {TASKS} such takes", among_s, pipe_s, at_most(among_s / pipe_s, 3))
    for name, (median_s, most_s) in (("a sleep", asleep), ("a tuple that is there later", later)):
        asked = at_most(most_s * 1e3, 20, "ms")
        print(f"{name:<33} {median_s * 1e6:10.1f} us late, {most_s * 1e6:.1f} at most{asked}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    finally:
        ts.remove(URL)
