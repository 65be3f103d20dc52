"""What a task costs: `Pool.map` beside `multiprocessing`, and a pool whose workers are killed.

Questions: is a task that survives its worker cheaper than one of `multiprocessing.Pool` that does
not? Does a pool that loses twenty workers on the way lose a task? Both pools are started before the
clock is, hand out one task at a time, and are measured in turn; the ratio of the medians counts.
"""

import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator

from asked import at_most

import tupelo as ts
from tupelo.batteries import Pool

URL = "shm://benchmark-pool"

TASKS = 10_000
WORKERS = 2
RUNS = 7
KILLS = 20


def trivial(number: int) -> int:
    """Do next to nothing."""
    return number + 1


def seconds_of(work: Callable[[], Iterator[int] | list[int]]) -> float:
    """Return how long it took; the results are checked."""
    begin = time.perf_counter()
    results = list(work())
    elapsed_s = time.perf_counter() - begin
    if sorted(results) != list(range(1, TASKS + 1)):
        message = f"{len(results)} results, not those of {TASKS} tasks"
        raise RuntimeError(message)
    return elapsed_s


def maps() -> None:
    """Measure `map`, ours and theirs in turn."""
    spawn = multiprocessing.get_context("spawn")
    ours: list[float] = []
    theirs: list[float] = []
    lazy: list[float] = []
    with spawn.Pool(WORKERS) as other, Pool(URL, workers=WORKERS) as pool:
        for _ in range(RUNS):
            ours.append(seconds_of(lambda: pool.map(trivial, range(TASKS))))
            theirs.append(seconds_of(lambda: other.map(trivial, range(TASKS), chunksize=1)))
            lazy.append(seconds_of(lambda: other.imap(trivial, range(TASKS), chunksize=1)))
    yardstick_s = statistics.median(theirs)
    for name, times in (
        ("multiprocessing.Pool.map, chunksize=1", theirs),
        ("multiprocessing.Pool.imap, chunksize=1", lazy),
        ("tupelo.batteries.Pool.map", ours),
    ):
        median_s = statistics.median(times)
        per_task_us = median_s / TASKS * 1e6
        ratio = median_s / yardstick_s
        asked = at_most(ratio, 1) if times is ours else ""
        print(f"{name:<42} {per_task_us:>7.1f} us a task  {ratio:>6.2f} x{asked}")


def kills() -> None:
    """Kill workers on the way, at even distances."""
    every = TASKS // KILLS
    killed = 0

    def work() -> Iterator[int]:
        nonlocal killed
        for number, result in enumerate(pool.map(trivial, range(TASKS), as_completed=True)):
            if number % every == every // 2:
                os.kill(pool.pids()[number % len(pool.pids())], signal.SIGKILL)
                killed += 1
            yield result

    with Pool(URL, workers=WORKERS) as pool:
        elapsed_s = seconds_of(work)
    print(f"{TASKS} tasks, {killed} workers killed on the way: none lost, {elapsed_s:.2f} s")


if __name__ == "__main__":
    ts.connect(URL, fresh=True).close()
    try:
        maps()
        kills()
    finally:
        ts.remove(URL)
