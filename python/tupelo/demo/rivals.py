"""The password search without a space: with `multiprocessing` alone, driven as its experts would.

* Queues: each worker keeps its part in a dictionary of its own, the fastest store there is. No
  process knows which worker has a digest, so each task goes to all of them and its owner answers.
* Manager: one dictionary in a server process that all can look into. Parts are stored in batches,
  since a call to the manager costs a round trip however little it carries.

Workers are started and ready before the clock starts, as they are with spaces.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tupelo.demo import database
from tupelo.demo.measure import Plan
from tupelo.demo.team import PATIENCE_S

BATCH = 10_000  # pairs per call to the manager: larger batches were not faster
SPAWN = multiprocessing.get_context("spawn")  # as `tupelo.spawn` does

ALL = (
    ("Queue + dict", "multiprocessing.Queue: each worker has a dictionary of its own"),
    ("Manager.dict", "multiprocessing.Manager: one dictionary in a server process"),
)
"""Names and titles."""


@dataclass(frozen=True)
class Rival:
    """The master's side: tasks go to every queue in `tasks`, answers come from one."""

    name: str
    plan: Plan
    start: Any
    tasks: Sequence[Any]
    results: Any

    def wait_for_all(self) -> None:
        """Wait for the word of every worker."""
        for _ in range(self.plan.workers):
            self.results.get(timeout=PATIENCE_S)

    def store(self) -> None:
        """Tell every worker to store its part, and wait for all."""
        self.start.set()
        self.wait_for_all()

    def search_all(self, digests: Sequence[str]) -> dict[str, str]:
        """Each digest to every worker that may have it; the answers come in any order."""
        for digest in digests:
            for queue in self.tasks:
                queue.put(digest)
        return dict(self.results.get(timeout=PATIENCE_S) for _ in digests)

    def search(self, digest: str) -> str:
        """One digest, one answer."""
        return self.search_all([digest])[digest]


@contextmanager
def rival(name: str, plan: Plan) -> Iterator[Rival]:
    """One of `ALL`, with its workers started and ready; they end with the block."""
    with ExitStack() as stack:
        pairs = None  # each worker has its own
        start, queues = SPAWN.Event(), plan.workers
        maker: Any = SPAWN
        if name == "Manager.dict":
            maker = stack.enter_context(SPAWN.Manager())
            pairs, queues = maker.dict(), 1
        tasks, results = [maker.Queue() for _ in range(queues)], maker.Queue()
        processes = [
            SPAWN.Process(
                target=worker,
                args=(plan.part(number), start, pairs, tasks[number % queues], results),
                daemon=True,
            )
            for number in range(plan.workers)
        ]
        for process in processes:
            process.start()
            stack.callback(process.kill)
        searcher = Rival(name, plan, start, tasks, results)
        searcher.wait_for_all()
        yield searcher
        for number in range(plan.workers):
            tasks[number % queues].put(None)
        for process in processes:
            process.join(timeout=PATIENCE_S)


def worker(part: range, start: Any, pairs: Any, tasks: Any, results: Any) -> None:
    """One worker, with the dictionary of all, or with one of its own."""
    results.put("ready")
    start.wait()
    own = database.pairs(part)
    store = dict(own) if pairs is None else pairs
    while batch := dict(islice(own, BATCH)):
        store.update(batch)
    results.put("stored")
    for digest in iter(tasks.get, None):
        password = store.get(digest)
        if password is not None:
            results.put((digest, password))
