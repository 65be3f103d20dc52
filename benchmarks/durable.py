"""A queue on disk: a space in a file, and what programs use instead.

Question: how many pairs of a put and a take does each of them do in a second, if both are on disk
when they return? One client, and 64 at a time. The others are SQLite used as a queue by hand,
PostgreSQL (`synchronous_commit=on`, `SKIP LOCKED`, asked by pgbench, which is written in C), and
Redis (`appendfsync always`). PostgreSQL and Redis are left out where they are not installed. The
ratios of one run count; the disk is that of TUPELO_BENCH_DIRECTORY, or of the temporary files.
"""

import asyncio
import os
import pwd
import shutil
import socket
import sqlite3
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from asked import at_least

import tupelo as ts
from tupelo import aio

SECONDS = 3.0
MANY = 64
SYNCS = 50

ASKED = {"PostgreSQL": 5, "Redis": 2}
"""How many times as fast as these a space of a file is to be, with 64 clients each."""


def sync_s(directory: Path) -> float:
    """Return how long it takes to write a page over and sync it: the median."""
    times = []
    with (directory / "page").open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            begin = time.perf_counter()
            os.pwrite(file.fileno(), bytes(4096), 0)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def rate(pair: Callable[[int], object], clients: int) -> float:
    """Return how many times per second so many threads together run `pair`."""
    done = [0] * clients
    end = time.perf_counter() + SECONDS

    def client(number: int) -> None:
        while time.perf_counter() < end:
            pair(number)
            done[number] += 1

    begin = time.perf_counter()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - begin)


def of_space(url: str, clients: int) -> float:
    """Measure threads of Python with a space."""
    with ts.connect(url, fresh=True) as space:

        def pair(number: int) -> None:
            space.put("job", number)
            space.take("job", int)

        return rate(pair, clients)


async def of_tasks(url: str, clients: int) -> float:
    """Measure tasks of asyncio with a space."""
    done = 0
    async with aio.connect(url, fresh=True) as space:
        end = time.perf_counter() + SECONDS

        async def client(number: int) -> None:
            nonlocal done
            while time.perf_counter() < end:
                await space.put("job", number)
                await space.take("job", int)
                done += 1

        begin = time.perf_counter()
        await asyncio.gather(*(client(number) for number in range(clients)))
        return done / (time.perf_counter() - begin)


def of_sqlite(path: Path) -> float:
    """Measure one connection of SQLite."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
        file.execute("CREATE TABLE job (id INTEGER PRIMARY KEY, number INTEGER)")
        take = "DELETE FROM job WHERE id = (SELECT min(id) FROM job) RETURNING number"

        def pair(number: int) -> None:
            file.execute("INSERT INTO job (number) VALUES (?)", (number,))
            file.execute(take).fetchall()

        begin, done = time.perf_counter(), 0
        while time.perf_counter() < begin + SECONDS:
            pair(done)
            done += 1
        return done / (time.perf_counter() - begin)


PGBENCH = """
INSERT INTO job (number) VALUES (1);
DELETE FROM job WHERE id =
    (SELECT id FROM job ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING number;
"""


@contextmanager
def postgres(directory: Path) -> Iterator[Callable[[int], float]]:
    """Run PostgreSQL; gives what measures so many clients."""
    # It refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    directory.mkdir()
    shutil.chown(directory, user)
    directory.parent.chmod(0o755)
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/bin"))

    def run(name: str, *words: str) -> str:
        command = [str(programs / name), *words]
        return subprocess.run(  # noqa: S603 - the programs of PostgreSQL
            command, user=user, cwd=directory, check=True, capture_output=True, text=True
        ).stdout

    run("initdb", "-D", "data", "-A", "trust", "-U", "bench", "--no-sync")
    listen = f"-c listen_addresses= -c max_connections=100 -k {directory}"
    run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", listen, "start")
    try:
        base = ("-h", str(directory), "-U", "bench", "postgres")
        run("psql", "-c", "CREATE TABLE job (id bigserial PRIMARY KEY, number int)", *base)
        (directory / "pair.sql").write_text(PGBENCH, encoding="utf-8")

        def pairs(clients: int) -> float:
            words = ("-n", "-c", str(clients), "-j", "2", "-T", f"{SECONDS:.0f}")
            told = run("pgbench", *words, "-f", "pair.sql", *base)
            line = next(line for line in told.splitlines() if line.startswith("tps"))
            return float(line.split()[2])

        yield pairs
    finally:
        run("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")


@contextmanager
def redis(directory: Path) -> Iterator[Callable[[int], float]]:
    """Run Redis; gives what measures so many clients."""
    directory.mkdir()
    path = str(directory / "socket")
    durable = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
    where = ("--port", "0", "--unixsocket", path, "--dir", str(directory))
    command = [shutil.which("redis-server") or "", *where, *durable]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:  # noqa: S603 - as above
        try:
            while not Path(path).exists():
                time.sleep(0.01)

            def pairs(clients: int) -> float:
                sockets = [socket.socket(socket.AF_UNIX) for _ in range(clients)]
                for each in sockets:
                    each.connect(path)

                def pair(number: int) -> None:
                    for command in (b"LPUSH job 1\r\n", b"RPOP job\r\n"):
                        sockets[number].sendall(command)
                        sockets[number].recv(64)

                found = rate(pair, clients)
                for each in sockets:
                    each.close()
                return found

            yield pairs
        finally:
            server.terminate()


def show(name: str, per_second: float, syncs: float) -> None:
    """Print a line."""
    pairs = f"{per_second:>10,.0f} /s".replace(",", " ")
    print(f"{name:<44}{pairs}   {per_second / syncs:6.2f} for each sync")


def main() -> None:
    """Measure, and print a table."""
    base = os.environ.get("TUPELO_BENCH_DIRECTORY")
    with tempfile.TemporaryDirectory(prefix="tupelo-bench-", dir=base) as name:
        directory = Path(name)
        syncs = 1 / sync_s(directory)
        show("a page written over, and fdatasync", syncs, syncs)
        url = f"file://{directory}/jobs.tupelo"
        show("file://, one thread: put, take", of_space(url, 1), syncs)
        many = of_space(url, MANY)
        show(f"file://, {MANY} threads", many, syncs)
        show(f"file://, {MANY} tasks of asyncio", asyncio.run(of_tasks(url, MANY)), syncs)
        ts.remove(url)
        show("SQLite by hand, one connection", of_sqlite(directory / "by-hand.db"), syncs)
        others = {"PostgreSQL": ("pgbench", postgres), "Redis": ("redis-server", redis)}
        for other, (program, running) in others.items():
            if shutil.which(program) is None:
                print(f"{other} is not installed")
                continue
            with running(directory / program) as pairs:
                show(f"{other}, one client", pairs(1), syncs)
                its = pairs(MANY)
                show(f"{other}, {MANY} clients", its, syncs)
                asked = at_least(many / its, ASKED[other])
                print(f"    file:// with as many threads: {many / its:.1f} x{asked}")


if __name__ == "__main__":
    main()
