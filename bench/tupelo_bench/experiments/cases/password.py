"""Password search: a database of (digest, password) spread over the workers' local spaces.

The master puts tasks, a worker takes one, searches its own space and then those of the others, and
answers. At the end there is one "finished" per worker; its digest is null, which is a value.

Two skeletons: the digest as the second field, as in the paper's listing, and as the first, as its
TUPLEWARE(H) needs it. To a tuple space that must not matter.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tupelo_bench.backends.base import Backend, Schema, Shape
from tupelo_bench.experiments.cases.skeleton import (
    COLLECTING,
    END,
    KEYED_READING,
    KEYED_WITHDRAWING,
    LOCAL_WRITING,
    MASTER,
    Searcher,
    Worker,
    begin_together,
    note,
    run_warm,
    take_timed,
    total_s,
    warm,
)
from tupelo_bench.harness.workers import WrongResultError

if TYPE_CHECKING:
    from tupelo_bench.experiments.warming import WarmUp
    from tupelo_bench.harness.workers import Bench
    from tupelo_bench.runner import Stage

SEARCHES = 100
# Tuples that each worker reads and takes from its own space after the searches; and at a time.
WITHDRAWN, WITHDRAWN_AT_A_TIME = 1_000, 100
NUMBERS = 10_000_000  # passwords are numbers of seven digits
STEP = 7_654_321  # has no factor in common with NUMBERS: so no password comes twice
PAIR_BYTES = 40


@dataclass(frozen=True)
class Plan:
    """One cell of the case."""

    size: int
    workers: int
    key_first: bool
    seed: int

    def part(self, worker: int) -> range:
        """The passwords that a worker holds, by their place."""
        return range(self.size * worker // self.workers, self.size * (worker + 1) // self.workers)

    def wanted(self) -> list[str]:
        """The passwords to search for."""
        choice = random.Random(self.seed)
        return list(map(password, choice.sample(range(self.size), SEARCHES)))

    def entry(self, digest: Any, secret: Any) -> tuple[Any, ...]:
        """A tuple of the database, or a template for one."""
        return (digest, "hash_set", secret) if self.key_first else ("hash_set", digest, secret)


def schema(*, key_first: bool) -> Schema:
    """What is in the spaces."""
    key, tag_at = (0, 1) if key_first else (1, 0)
    return Schema(
        (
            Shape("hash_set", 3, (key,), tag_at=tag_at, awaited=False),
            Shape("stored", 2),
            Shape("search_task", 3),
            Shape("found_value", 3),
        )
    )


def database(part: range) -> list[tuple[str, str]]:
    """The (digest, password) pairs of a part."""
    return [(digest_of(secret), secret) for secret in map(password, part)]


def password(place: int) -> str:
    """The password at a place."""
    return f"{place * STEP % NUMBERS:07}"


def digest_of(secret: str) -> str:
    """The MD5 digest of a password, in hexadecimal."""
    return hashlib.md5(secret.encode(), usedforsecurity=False).hexdigest()


def once(stage: Stage, plan: Plan) -> None:
    """One repeat: a master and the workers."""
    _, profilers = run_warm(stage, master, worker, plan)
    note(stage, profilers, total_s(profilers))


def master(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Ask for all passwords, check every answer, tell the workers to finish."""
    space = backend.open(MASTER)
    wanted = {digest_of(secret): secret for secret in plan.wanted()}
    warm(bench, warm_up, space)
    begin_together(bench)
    for _ in range(plan.workers):
        space.take("stored", int)
    with bench.profiler.time(LOCAL_WRITING, len(wanted)):
        for digest in wanted:
            space.put("search_task", digest, "not_processed")
    found = [
        take_timed(bench.profiler, COLLECTING, space, ("found_value", str, str)) for _ in wanted
    ]
    bench.profiler.moment(END)
    for _ in range(plan.workers):
        space.put("search_task", None, "finished")
    bench.start.wait()
    answers = {digest: secret for _, digest, secret in found}
    if answers != wanted:
        message = f"{len(wanted.items() - answers.items())} of {len(wanted)} passwords are wrong"
        raise WrongResultError(message)
    space.close()


def worker(bench: Bench, backend: Backend, plan: Plan, warm_up: WarmUp) -> None:
    """Store a part of the database, search until told to finish."""
    me = Worker.open(bench, backend, plan.workers)
    tuples = [plan.entry(*pair) for pair in database(plan.part(me.number))]
    searcher = Searcher(me)
    me.warm(warm_up)
    begin_together(bench)
    me.put_local(tuples)
    me.put_remote("stored", me.number)
    while True:
        _, digest, status = me.take_remote("search_task", ..., ...)
        if status == "finished":
            break
        found = searcher.read(*plan.entry(digest, str))
        me.put_remote("found_value", digest, found[2])
    # Nobody may take from a space in which others still search.
    bench.start.wait()
    read_and_withdraw(me, plan, tuples[:WITHDRAWN])
    me.close()


def read_and_withdraw(me: Worker, plan: Plan, wanted: list[tuple[str, str, str]]) -> None:
    """Read tuples of the own space, then take them, by the same templates.

    Untimed reads of all come first, which build the index where that is not yet done, and one of
    each just before its own. So both operations find the index and the tuple in the same state.
    """
    key_at = 0 if plan.key_first else 1
    templates = [plan.entry(entry[key_at], str) for entry in wanted]
    read, take, profiler = me.own.read, me.own.take, me.bench.profiler
    found = [read(*template) for template in templates]
    for begin in range(0, len(templates), WITHDRAWN_AT_A_TIME):
        some = templates[begin : begin + WITHDRAWN_AT_A_TIME]
        again = [read(*template) for template in some]
        with profiler.time(KEYED_READING, len(some)):
            were_read = [read(*template) for template in some]
        with profiler.time(KEYED_WITHDRAWING, len(some)):
            taken = [take(*template) for template in some]
        if not again == were_read == taken == found[begin : begin + WITHDRAWN_AT_A_TIME]:
            message = f"a read or take by a key found another tuple than {some[0]!r} and the next"
            raise WrongResultError(message)
    if [tuple(fields) for fields in found] != wanted:
        message = f"{len(wanted)} tuples were read by a key, and others came"
        raise WrongResultError(message)
