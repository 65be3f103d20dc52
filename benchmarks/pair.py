"""What a put and a take cost from Python, beside a dict, multiprocessing and (if present) Redis.

Question: how much dearer is a crash-safe tuple that every process sees than two operations on a
private dict? Each figure is the least of several runs; the ratios of one run count, the times are
for orientation.
"""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import tempfile
import timeit
from pathlib import Path
from time import perf_counter_ns

from asked import at_least, at_most

import tupelo as ts

CALLS = 100_000
RUNS = 15
PUTS = 16  # of an array in a row: 256 KiB
ARRAY_BYTES = 16 << 10
URL = "shm://bench-python"


def least_ns(statement: str, names: dict[str, object], calls: int = CALLS) -> float:
    """Return the least time of one call of `statement`, in nanoseconds."""
    return min(timeit.repeat(statement, globals=names, number=calls, repeat=RUNS)) / calls * 1e9


def row(name: str, time_ns: float, yardstick_ns: float, asked: str = "") -> None:
    """Print one figure, how many times the yardstick it is, and what is asked of it."""
    print(f"{name:<62} {time_ns:>9.1f} ns  {time_ns / yardstick_ns:>8.2f} x{asked}")


def pairs(space: ts.Space) -> float:
    """Measure the pair beside a dict; return it."""
    for k in range(200):
        space.put("job", k, 3.5)
    for k in reversed(range(200)):
        space.take("job", k, float)
    names: dict[str, object] = {"space": space, "d": {}, "k": 17}
    dict_ns = least_ns('d["job", k] = ("job", k, 3.5); d.pop(("job", k))', names)
    row("dict: insert + pop of a tuple", dict_ns, dict_ns)
    pair_ns = least_ns('space.put("job", k, 3.5); space.take("job", k, float)', names)
    asked = at_most(pair_ns / dict_ns, 2.5)
    row('shm://: put + take by ("job", k, float)', pair_ns, dict_ns, asked)
    space.put("job", 17, 3.5)
    row("    read, in pairs", least_ns('space.read("job", k, float)', names), pair_ns)
    row(
        "    take that misses, in pairs",
        least_ns('space.try_take("job", -1, float)', names),
        pair_ns,
    )
    space.take("job", 17, float)
    return pair_ns


def arrays(space: ts.Space) -> None:
    """Measure a put of 16 KiB beside copies of 16 KiB, the bare one and that of NumPy."""
    try:
        import numpy as np  # noqa: PLC0415 - an extra: the other figures do without it
    except ModuleNotFoundError:
        print("numpy is not installed: pip install numpy")
        return
    array = np.arange(ARRAY_BYTES // 8, dtype=np.float64)
    names: dict[str, object] = {
        "space": space,
        "array": array,
        "np": np,
        "source": memoryview(bytes(ARRAY_BYTES)),
        "target": memoryview(bytearray(ARRAY_BYTES)),
    }
    copy_ns = least_ns("target[:] = source", names, 20_000)
    row("memcpy of 16 KiB", copy_ns, copy_ns)
    row("numpy: copy of the array", least_ns("array.copy()", names, 20_000), copy_ns)
    put_ns, limit_ns = least_put_ns(space, array), 2 * copy_ns + 200
    row("shm://: put of the array", put_ns, copy_ns, at_most(put_ns, round(limit_ns), "ns"))
    both_ns = least_ns("space.put('tile', array); space.take('tile', np.ndarray)", names, 5_000)
    row("shm://: put + take of the array", both_ns, copy_ns)


def least_put_ns(space: ts.Space, array: object) -> float:
    """Return the least time of one put of `array`; the takes between batches do not count."""
    times_ns = []
    for _ in range(RUNS * 100):
        begin_ns = perf_counter_ns()
        for _ in range(PUTS):
            space.put("tile", array)
        times_ns.append((perf_counter_ns() - begin_ns) / PUTS)
        for _ in range(PUTS):
            space.take("tile", type(array))
    return min(times_ns)


def queue(pair_ns: float) -> None:
    """Measure a multiprocessing queue, put and got by one process."""
    mail = multiprocessing.get_context("spawn").SimpleQueue()
    queue_ns = least_ns("mail.put(('job', 17, 3.5)); mail.get()", {"mail": mail}, 10_000)
    row("multiprocessing.SimpleQueue: put + get, in pairs", queue_ns, pair_ns)


def redis_lists(pair_ns: float) -> None:
    """Measure a Redis list on a Unix socket, if the server and its client are there."""
    server = shutil.which("redis-server")
    try:
        import redis  # noqa: PLC0415 - a peer, not a dependency
    except ModuleNotFoundError:
        redis = None
    if server is None or redis is None:
        print("Redis is not installed: apt-get install redis-server; pip install redis hiredis")
        return
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "redis.sock"
        command = [
            server,
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--save",
            "",
            "--dir",
            folder,
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - found above
            client = redis.Redis(unix_socket_path=str(socket))
            while not socket.exists():
                pass
            redis_ns = least_ns("c.lpush('job', b'17'); c.brpop(['job'])", {"c": client}, 2_000)
            asked = at_least(redis_ns / pair_ns, 150)
            row("Redis: LPUSH + BRPOP on a Unix socket, in pairs", redis_ns, pair_ns, asked)
            process.terminate()


def main() -> None:
    """Print all figures."""
    with ts.connect(URL, fresh=True) as space:
        pair_ns = pairs(space)
        arrays(space)
    ts.remove(URL)
    queue(pair_ns)
    redis_lists(pair_ns)


if __name__ == "__main__":
    main()
