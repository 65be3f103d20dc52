"""The password search as a task: what to do, timed and checked alike for each way of doing it.

A way of doing it is a `Searcher`; there is one with spaces (`password`) and two without (`rivals`).
A result is checked before its time counts.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tupelo.demo import database
from tupelo.demo.samples import Latency, samples
from tupelo.demo.spaces import name_of
from tupelo.demo.terminal import Terminal
from tupelo.formatting import count, duration

SINGLES = 1_000  # searches one after the other, for the latency


class WrongResultError(Exception):
    """A result differs from the expected one; its time does not count."""


@dataclass(frozen=True)
class Plan:
    """What to do, the same for each way of doing it."""

    pairs: int
    workers: int
    searches: int
    seed: int
    kills: int = 0
    """Workers that are killed with SIGKILL in the middle of a search."""
    name: str = field(default_factory=lambda: name_of("password"))

    def part(self, worker: int) -> range:
        """The indexes of the pairs that a worker holds."""
        return range(
            self.pairs * worker // self.workers,
            self.pairs * (worker + 1) // self.workers,
        )

    def wanted(self, how_many: int) -> list[str]:
        """The passwords to search for; the seed decides which ones."""
        choice = random.Random(self.seed)  # noqa: S311
        return [database.password(choice.randrange(self.pairs)) for _ in range(how_many)]

    def one_of_each(self) -> list[str]:
        """The first password of each worker's part."""
        parts = (self.part(worker) for worker in range(self.workers))
        return [database.password(part[0]) for part in parts if part]


class Searcher(Protocol):
    """One way of doing it, with its worker processes started and ready."""

    @property
    def name(self) -> str:
        """Its name, in a word or two."""

    def store(self) -> None:
        """Let every worker make and store its part; return when all have."""

    def search_all(self, digests: Sequence[str]) -> dict[str, str]:
        """Ask for all digests at once; the passwords by digest."""

    def search(self, digest: str) -> str:
        """Ask for one digest and wait for its password."""


@dataclass(frozen=True)
class Outcome:
    """What one way cost."""

    name: str
    store_s: float
    first_s: float
    search_all_s: float
    single: Latency


def measure(searcher: Searcher, plan: Plan, terminal: Terminal) -> Outcome:
    """Run the task with `searcher`, show each step, check every result."""
    begin = time.perf_counter()
    searcher.store()
    store_s = time.perf_counter() - begin
    terminal.line(
        f"  {count(plan.pairs)} pairs made and stored in {duration(store_s)},"
        f" {count(int(plan.pairs / store_s))} per second"
    )

    first = plan.one_of_each()
    first_s = search_all(searcher, first)
    terminal.line(f"  the first {len(first)} searches, one for each part, in {duration(first_s)}")
    wanted = plan.wanted(plan.searches)
    search_all_s = search_all(searcher, wanted)
    terminal.line(
        f"  {count(len(wanted))} searches at once in {duration(search_all_s)}, every password right"
    )
    single = search_singly(searcher, plan.wanted(SINGLES))
    terminal.line(f"  {count(SINGLES)} searches one after the other: {single}")
    return Outcome(searcher.name, store_s, first_s, search_all_s, single)


def search_all(searcher: Searcher, passwords: Sequence[str]) -> float:
    """Search for all passwords at once; how long it took, if every answer was right."""
    expected = {database.digest(password): password for password in passwords}
    begin = time.perf_counter()
    found = searcher.search_all(list(expected))
    elapsed_s = time.perf_counter() - begin
    if found != expected:
        message = f"{searcher.name}: {len(expected.items() - found.items())} searches went wrong"
        raise WrongResultError(message)
    return elapsed_s


def search_singly(searcher: Searcher, passwords: Sequence[str]) -> Latency:
    """Search for one password after the other; how long each took, if every answer was right."""
    single_ns = samples()
    for password in passwords:
        digest = database.digest(password)
        begin_ns = time.perf_counter_ns()
        answer = searcher.search(digest)
        single_ns.append(time.perf_counter_ns() - begin_ns)
        if answer != password:
            message = f"{searcher.name}: {digest} is of {password}, the answer was {answer}"
            raise WrongResultError(message)
    return Latency.of(single_ns)


def compare(outcomes: Sequence[Outcome], plan: Plan, terminal: Terminal) -> None:
    """The outcomes side by side."""
    terminal.table(
        ["", *(outcome.name for outcome in outcomes)],
        [
            [f"store {count(plan.pairs)} pairs", *(duration(o.store_s) for o in outcomes)],
            [
                f"first {plan.workers} searches",
                *(duration(o.first_s) for o in outcomes),
            ],
            [
                f"{count(plan.searches)} searches at once",
                *(duration(o.search_all_s) for o in outcomes),
            ],
            ["one search, p50", *(o.single.p50 for o in outcomes)],
            ["one search, p99", *(o.single.p99 for o in outcomes)],
            ["one search, max", *(o.single.longest for o in outcomes)],
        ],
    )
