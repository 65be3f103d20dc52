"""The password search without a space: with `multiprocessing` alone, driven as its experts would.

* Queues: each worker keeps its part in a dictionary of its own, the fastest store there is. No
  process knows which worker has a digest, so each task goes to all of them and its owner answers.
* Manager: one dictionary in a server process that all can look into. Parts are stored in batches,
  since a call to the manager costs a round trip however little it carries.

Workers are started and ready before the clock starts, as they are with spaces.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.synchronize import Event
from typing import TYPE_CHECKING, Any, TypeAlias

from tupelo.demo import database
from tupelo.demo.measure import Plan, Searcher

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

BATCH = 10_000  # pairs per call to the manager: larger batches were not faster
PATIENCE_S = 120.0  # longer than any step takes; a dead worker must not hang the demo
SPAWN = multiprocessing.get_context("spawn")  # as `tupelo.spawn` does

AnyQueue: TypeAlias = "Queue[Any]"


@dataclass(frozen=True)
class Queues:
    """The master's side: tasks go to every queue in `tasks`, answers come from one."""

    name: str
    plan: Plan
    start: Event
    tasks: Sequence[AnyQueue]
    results: AnyQueue

    def store(self) -> None:
        """Tell every worker to store its part, and wait for all."""
        self.start.set()
        for _ in range(self.plan.workers):
            self.results.get(timeout=PATIENCE_S)

    def search_all(self, digests: Sequence[str]) -> dict[str, str]:
        """Each digest to every worker that may have it; the answers come in any order."""
        for digest in digests:
            for queue in self.tasks:
                queue.put(digest)
        return dict(self.results.get(timeout=PATIENCE_S) for _ in digests)

    def search(self, digest: str) -> str:
        """One digest, one answer."""
        for queue in self.tasks:
            queue.put(digest)
        password: str = self.results.get(timeout=PATIENCE_S)[1]
        return password

    def finish(self) -> None:
        """Tell every worker that there is no more, also where they share one queue."""
        for number in range(self.plan.workers):
            self.tasks[number % len(self.tasks)].put(None)


@contextmanager
def workers(plan: Plan, target: Callable[..., None], arguments: Sequence[Any]) -> Iterator[None]:
    """One process per part, running `target(indexes of the part, *arguments of the part)`."""
    processes = [
        SPAWN.Process(target=target, args=(plan.part(number), *own), daemon=True)
        for number, own in enumerate(arguments)
    ]
    for process in processes:
        process.start()
    try:
        yield
        for process in processes:
            process.join(timeout=PATIENCE_S)
    finally:
        for process in processes:
            process.kill()


@contextmanager
def with_queues(plan: Plan) -> Iterator[Searcher]:
    """A queue to each worker, one back."""
    results: AnyQueue = SPAWN.Queue()
    tasks: list[AnyQueue] = [SPAWN.Queue() for _ in range(plan.workers)]
    start = SPAWN.Event()
    with workers(plan, queue_worker, [(start, own, results) for own in tasks]):
        searcher = Queues("Queue + dict", plan, start, tasks, results)
        for _ in range(plan.workers):
            results.get(timeout=PATIENCE_S)
        yield searcher
        searcher.finish()


def queue_worker(part: range, start: Event, tasks: AnyQueue, results: AnyQueue) -> None:
    """One worker: a dictionary of its own."""
    results.put("ready")
    start.wait()
    pairs = dict(database.pairs(part))
    results.put("stored")
    for digest in iter(tasks.get, None):
        password = pairs.get(digest)
        if password is not None:
            results.put((digest, password))


@contextmanager
def with_manager(plan: Plan) -> Iterator[Searcher]:
    """A dictionary and two queues in a server process."""
    with SPAWN.Manager() as manager:
        pairs = manager.dict()
        tasks: Any = manager.Queue()
        results: Any = manager.Queue()
        start = SPAWN.Event()
        with workers(plan, manager_worker, [(start, pairs, tasks, results)] * plan.workers):
            searcher = Queues("Manager.dict", plan, start, [tasks], results)
            for _ in range(plan.workers):
                results.get(timeout=PATIENCE_S)
            yield searcher
            searcher.finish()


def manager_worker(part: range, start: Event, pairs: Any, tasks: Any, results: Any) -> None:
    """One worker: everything through the manager."""
    results.put("ready")
    start.wait()
    own = database.pairs(part)
    while batch := dict(islice(own, BATCH)):
        pairs.update(batch)
    results.put("stored")
    for digest in iter(tasks.get, None):
        results.put((digest, pairs[digest]))


ALL: Sequence[tuple[str, Callable[[Plan], AbstractContextManager[Searcher]]]] = (
    ("multiprocessing.Queue: each worker has a dictionary of its own", with_queues),
    ("multiprocessing.Manager: one dictionary in a server process", with_manager),
)
