"""The password search as a task: what to do, timed and checked alike for each way of doing it.

A way of doing it is a `Searcher`: with spaces (`password`), or without (`rivals`). A result is
checked before its time counts.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tupelo.demo import database
from tupelo.demo.spaces import name_of
from tupelo.formatting import count, duration
from tupelo.terminal import Terminal

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
    server: str | None = None
    """The address of the server that has the spaces; None: they are in shared memory."""

    def part(self, worker: int) -> range:
        """The indexes of the pairs that a worker holds."""
        first, end = (self.pairs * number // self.workers for number in (worker, worker + 1))
        return range(first, end)

    def wanted(self, how_many: int) -> list[str]:
        """The passwords to search for; the seed decides which ones."""
        choice = random.Random(self.seed)  # noqa: S311
        return [database.password(choice.randrange(self.pairs)) for _ in range(how_many)]

    def one_of_each(self) -> list[str]:
        """The first password of each worker's part."""
        parts = map(self.part, range(self.workers))
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


def measure(searcher: Searcher, plan: Plan, terminal: Terminal) -> dict[str, str]:
    """Run the task with `searcher`, show each step, check every result; the times by name."""
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
    all_s = search_all(searcher, plan.wanted(plan.searches))
    searches = count(plan.searches)
    terminal.line(f"  {searches} searches at once in {duration(all_s)}, every password right")
    single_ns = search_singly(searcher, plan.wanted(SINGLES))
    terminal.line(f"  {count(SINGLES)} searches one after the other: {latency(single_ns)}")
    return {
        f"store {count(plan.pairs)} pairs": duration(store_s),
        f"first {plan.workers} searches": duration(first_s),
        f"{searches} searches at once": duration(all_s),
        **{f"one search, {name}": told for name, told in percentiles(single_ns).items()},
    }


def search_all(searcher: Searcher, passwords: Sequence[str]) -> float:
    """Search for all passwords at once; how long it took, if every answer was right."""
    expected = {database.digest(password): password for password in passwords}
    begin = time.perf_counter()
    found = searcher.search_all(list(expected))
    elapsed_s = time.perf_counter() - begin
    require_right(searcher.name, found, expected)
    return elapsed_s


def search_singly(searcher: Searcher, passwords: Sequence[str]) -> list[int]:
    """Search for one password after the other; how long each took, if every answer was right."""
    single_ns = []
    for password in passwords:
        digest = database.digest(password)
        begin_ns = time.perf_counter_ns()
        answer = searcher.search(digest)
        single_ns.append(time.perf_counter_ns() - begin_ns)
        require_right(searcher.name, {digest: answer}, {digest: password})
    return single_ns


def require_right(name: str, found: dict[str, str], expected: dict[str, str]) -> None:
    """Refuse wrong answers.

    Raises:
        WrongResultError: an answer is wrong or missing.
    """
    if found != expected:
        message = f"{name}: {len(expected.items() - found.items())} searches went wrong"
        raise WrongResultError(message)


def percentiles(samples_ns: Sequence[int]) -> dict[str, str]:
    """The figures by which a latency is told, of at least one sample."""
    ordered = sorted(samples_ns)
    places = {"p50": len(ordered) // 2, "p99": 99 * len(ordered) // 100, "max": len(ordered) - 1}
    return {name: duration(ordered[place] / 1e9) for name, place in places.items()}


def latency(samples_ns: Sequence[int]) -> str:
    """`p50 1.20 µs, p99 4.10 µs, max 2.00 ms`."""
    return ", ".join(f"{name} {told}" for name, told in percentiles(samples_ns).items())
