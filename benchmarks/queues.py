"""Items from one process to another: a queue of multiprocessing, and what a space does instead.

Question: what does it cost to hand items over so that none is lost when their worker dies, beside a
queue that loses them, and beside plain tuples? One process puts, one gets, both as fast as they
can; the figure is the time from the first to the last, per item, the least of several runs. The
ratios of one run count, the times are for orientation.
"""

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

from asked import at_least

import tupelo as ts
from tupelo.batteries import Queue

URL = "shm://benchmark-queue"
ITEMS = 50_000
RUNS = 5
MAXSIZE = 10_000

Mail = Any
"""A queue of multiprocessing."""


def put_tuples(space: ts.Space, _mail: Mail) -> None:
    """Put the items as plain tuples."""
    for number in range(ITEMS):
        space.put("item", number)


def take_tuples(space: ts.Space, _mail: Mail) -> None:
    """Take them."""
    for _ in range(ITEMS):
        _, item = space.take("item", int)
    check(item)


def put_mail(_space: ts.Space, mail: Mail) -> None:
    """Put the items into the queue of multiprocessing."""
    for number in range(ITEMS):
        mail.put(number)
    mail.close()
    mail.join_thread()


def get_mail(_space: ts.Space, mail: Mail) -> None:
    """Get them."""
    for _ in range(ITEMS):
        item = mail.get()
    check(item)


def put_items(space: ts.Space, _mail: Mail) -> None:
    """Put the items into the battery."""
    queue = Queue[int](space, "mail")
    for number in range(ITEMS):
        queue.put(number)


def put_bounded(space: ts.Space, _mail: Mail) -> None:
    """Put the items into the battery, with a bound."""
    queue = Queue[int](space, "mail", maxsize=MAXSIZE)
    for number in range(ITEMS):
        queue.put(number)


def put_urgent(space: ts.Space, _mail: Mail) -> None:
    """Put the items into the battery, with a priority."""
    queue = Queue[int](space, "mail")
    for number in range(ITEMS):
        queue.put(number, priority=5)


def get_items(space: ts.Space, _mail: Mail) -> None:
    """Get each item, and be done with it."""
    queue = Queue[int](space, "mail")
    for _ in range(ITEMS):
        with queue.get() as item:
            pass
    check(item)


def check(last: int) -> None:
    """Make sure that what was got is what was put."""
    if last != ITEMS - 1:
        message = f"the last item is {last}, not {ITEMS - 1}"
        raise RuntimeError(message)


Work = Callable[[ts.Space, Mail], None]

ASKED = {"plain tuples: put, take": 8, "Queue: put, get and done": 2}
"""How many times as fast as the queue of multiprocessing these are to be."""


def producer(put: Work, go: Any, mail: Mail) -> None:
    """In another process: put when told to."""
    with ts.connect(URL, create=False) as space:
        space.put("ready")
        go.wait()
        put(space, mail)


def once(put: Work, get: Work) -> float:
    """Return the seconds for one item, from the first put to the last get."""
    context = multiprocessing.get_context("fork")
    with ts.connect(URL, fresh=True) as space:
        mail: Mail = context.Queue()
        go = context.Event()
        process = context.Process(target=producer, args=(put, go, mail))
        process.start()
        space.take("ready")
        begin = time.perf_counter()
        go.set()
        get(space, mail)
        seconds = time.perf_counter() - begin
        process.join()
    return seconds / ITEMS


def main() -> None:
    """Measure, and print a table."""
    pairs: dict[str, tuple[Work, Work]] = {
        "multiprocessing.Queue: put, get": (put_mail, get_mail),
        "plain tuples: put, take": (put_tuples, take_tuples),
        "Queue: put, get and done": (put_items, get_items),
        "    with a maxsize of 10 000": (put_bounded, get_items),
        "    with a priority": (put_urgent, get_items),
    }
    least = dict.fromkeys(pairs, float("inf"))
    # In turns, so that what else the machine does meets all of them.
    for _ in range(RUNS):
        for name, (put, get) in pairs.items():
            least[name] = min(least[name], once(put, get))
    yardstick = least["multiprocessing.Queue: put, get"]
    for name, seconds in least.items():
        rate = f"{1 / seconds:>11,.0f} /s".replace(",", " ")
        ratio = yardstick / seconds
        asked = at_least(ratio, ASKED[name]) if name in ASKED else ""
        print(f"{name:<36}{seconds * 1e6:>8.2f} us{rate}{ratio:>8.1f} x{asked}")


if __name__ == "__main__":
    try:
        main()
    finally:
        ts.remove(URL)
