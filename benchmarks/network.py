"""A server of spaces from Python, beside Redis with its own client.

Question: what do a put, a take and a call that is woken cost a program whose space is behind a
server? Redis runs on the same machine, keeps everything in memory and writes nothing to a disk; its
client is `redis-py` with `hiredis`. Both are reached by TCP on this machine. Runs alternate; the
median counts. The other figures of a network are those of `crates/server/benches/network`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asked import at_most

import tupelo as ts
from tupelo import aio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CALLS = 2_000
RUNS = 9
TASKS = 10_000
WAKES = 300
TUPELO = Path(sys.executable).parent / "tupelo"


@contextmanager
def tupelo_server() -> Iterator[str]:
    """Run a server of spaces in its memory; give its URL, with a space."""
    command = [str(TUPELO), "serve", "--listen", "tcp://127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - ours
        line = process.stdout.readline() if process.stdout else ""
        yield line.split()[1].replace("NAME", "bench")
        process.terminate()


@contextmanager
def redis_server() -> Iterator[int | None]:
    """Run Redis; give its port, or `None` if it is not installed."""
    server = shutil.which("redis-server")
    if server is None:
        yield None
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        where = ["--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
        command = [server, *where, "--save", "", "--appendonly", "no"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - found above
            while not is_open(port):
                pass
            yield port
            process.terminate()


def is_open(port: int) -> bool:
    """Return whether something listens at this port."""
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def redis_client(port: int) -> Any:
    """Return a client of Redis, which reads answers by hiredis if that is installed."""
    import redis  # noqa: PLC0415 - a peer, not a dependency

    return redis.Redis(host="127.0.0.1", port=port)


def each_us(call: Callable[[], object], calls: int = CALLS) -> float:
    """Return the microseconds of one call."""
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls * 1e6


def beside(name: str, runs: list[tuple[float, float]]) -> None:
    """Print a figure beside that of Redis, without the first run, which warms up."""
    ours, theirs = (statistics.median(side) for side in zip(*runs[1:], strict=True))
    print(
        f"{name:<44} {ours:>8.1f} us, Redis {theirs:>8.1f} us {ours / theirs:>6.2f} x"
        f"{at_most(ours / theirs, 1.15)}"
    )


def alone(space: ts.Space, client: Any) -> None:
    """Measure one caller that waits for each answer."""
    puts, takes = [], []
    for _ in range(RUNS + 1):
        puts.append(
            (each_us(lambda: space.put("job", 17)), each_us(lambda: client.lpush("job", b"17")))
        )
        takes.append((each_us(lambda: space.take("job", int)), each_us(lambda: client.rpop("job"))))
    beside("put beside LPUSH", puts)
    beside("take beside RPOP", takes)


def echo_tuples(url: str) -> None:
    """In another process: answer each ping."""
    with ts.connect(url) as space:
        while space.take("ping", int)[1]:
            space.put("pong", 1)


def echo_items(port: int) -> None:
    """In another process: answer each ping."""
    client = redis_client(port)
    while client.brpop(["ping"])[1] != b"0":
        client.lpush("pong", b"1")


def blocked(url: str, port: int) -> None:
    """Measure a put that wakes a blocked take of another process, and the same way back."""
    context = multiprocessing.get_context("spawn")
    partners = [
        context.Process(target=echo_tuples, args=(url,)),
        context.Process(target=echo_items, args=(port,)),
    ]
    for partner in partners:
        partner.start()
    with ts.connect(url) as space:
        client = redis_client(port)

        def tuples() -> None:
            space.put("ping", 1)
            space.take("pong", int)

        def items() -> None:
            client.lpush("ping", b"1")
            client.brpop(["pong"])

        runs = [(each_us(tuples, 500), each_us(items, 500)) for _ in range(RUNS + 1)]
        beside("put, blocked take, and back; beside BRPOP", runs)
        space.put("ping", 0)
        client.lpush("ping", b"0")
    for partner in partners:
        partner.join()


async def waiting(url: str) -> None:
    """Let thousands of tasks wait on one connection, and wake them one by one."""
    shared = aio.connect(url)
    begin = time.perf_counter()
    tasks = [asyncio.create_task(shared.take("mine", number)) for number in range(TASKS)]
    await asyncio.sleep(0)
    begun = (time.perf_counter() - begin) / TASKS * 1e6
    times, puts = [], []
    for wake in range(WAKES):
        number = wake * 7_919 % TASKS
        begin = time.perf_counter()
        await shared.put("mine", number)
        await tasks[number]
        times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        await shared.put("none")
        puts.append(time.perf_counter() - begin)
    woken, put = statistics.median(times) * 1e6, statistics.median(puts) * 1e6
    print(f"{TASKS} tasks wait on one connection: {begun:.1f} us to begin one")
    print(f"    a put wakes one: {woken:.1f} us, {woken / put:.2f} x a put")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    """Print all figures."""
    with tupelo_server() as url, redis_server() as port:
        with ts.connect(url) as space:
            if port is None:
                print("Redis is not installed: apt-get install redis-server")
            else:
                alone(space, redis_client(port))
                blocked(url, port)
        asyncio.run(waiting(url))


if __name__ == "__main__":
    main()
