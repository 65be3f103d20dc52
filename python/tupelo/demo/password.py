"""The password search: a database spread over worker processes, searched through spaces.

The program is the classic case study of master and workers (Buravlev, De Nicola, Mezzina,
*Evaluating the efficiency of Linda implementations*, 2018). Each worker fills a space of its own
with its part:

    ("hash_set", digest, password)

The master puts tasks into a common space. A worker takes one, looks into its own space, then into
those of the other workers, and answers:

    ("search_task", digest, "not_processed")  ->  ("found_value", digest, password)
    ("search_task", None, "finished")             one per worker, at the end

A task is a claim, and the answer is put under it. A worker that is killed loses no search, and its
space still exists, with its part. `killing` shows it.

The program declares no index. The first searches look through whole parts, and so the spaces learn
that they are asked for digests.
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import tupelo as ts
from tupelo import like
from tupelo.demo import database, killing, rivals
from tupelo.demo.measure import Plan, WrongResultError, latency, measure
from tupelo.demo.spaces import url_of
from tupelo.demo.team import PATIENCE_S, Team
from tupelo.formatting import count, duration
from tupelo.terminal import Terminal

TupleT = TypeVar("TupleT", bound=tuple[Any, ...])

PAIR_BYTES = 400  # the most for a pair in a space, its share of the indexes included
SPACE_BYTES = 16 << 20  # for a space beside the pairs
SAMPLE_EVERY = 16  # measured puts and takes: a clock read costs as much as half a put

NOTES = (
    "With Tupelo and with the manager every process can look at every pair; a private dictionary",
    "is open to its owner only. Tupelo's first searches look through the parts, and by that the",
    "spaces learn which index they need; nobody declared one.",
)


def run(plan: Plan, terminal: Terminal, *, alone: bool) -> None:
    """The whole demo: with spaces, then (unless `alone`) the same work without."""
    plan = affordable(plan, terminal)
    terminal.line(
        f"Password search: {count(plan.pairs)} (MD5, password) pairs in {plan.workers} worker"
        " processes"
    )
    terminal.line()
    terminal.line("Tupelo: each worker has a space of its own, and all look into all")
    with fresh_spaces(plan) as (common, parts), Team(worker, plan) as team:
        team.start(plan.workers)
        # Before the clock starts, as with the others.
        common.take_many("ready", n=plan.workers, timeout=PATIENCE_S)
        spaces = Spaces(plan, terminal, common, parts)
        times = {spaces.name: measure(spaces, plan, terminal)}
        if plan.kills:
            killing.search_and_kill(plan, terminal, common, team)
        spaces.take_back()
    if alone:
        return
    for name, title in rivals.ALL:
        terminal.line(f"\n{title}")
        with rivals.rival(name, plan) as searcher:
            times[name] = measure(searcher, plan, terminal)
    terminal.line()
    labels = times[spaces.name]
    rows = [[label, *(column[label] for column in times.values())] for label in labels]
    terminal.table(["", *times], rows)
    terminal.line()
    for note in NOTES:
        terminal.line(f"  {note}")


# --- the workers ---


def worker(plan: Plan) -> None:
    """One worker: stores its part, searches until told to stop, takes its part back."""
    with ts.connect(url(plan)) as common:
        common.put("ready")
        _, part, is_stored = common.take("part", int, bool)
        with ts.connect(url(plan, part)) as own, ExitStack() as stack:
            if not is_stored:
                common.put("stored", part, store(own, plan.part(part)))
            others = ((part + step) % plan.workers for step in range(1, plan.workers))
            spaces = [own, *(stack.enter_context(ts.connect(url(plan, n))) for n in others)]
            search(common, spaces, part)
            common.put("taken", *take_all_back(own))


def store(own: ts.Space, part: range) -> list[int]:
    """Put every pair of the part; returns how long some of the puts took, in nanoseconds."""
    put_ns = []
    for number, (digest, password) in enumerate(database.pairs(part)):
        begin_ns = 0 if number % SAMPLE_EVERY else time.perf_counter_ns()
        own.put("hash_set", digest, password)
        if begin_ns:
            put_ns.append(time.perf_counter_ns() - begin_ns)
    return put_ns


def search(common: ts.Space, spaces: Sequence[ts.Space], part: int) -> None:
    """Serve search tasks until one says that it is finished."""
    while True:
        claim = common.claim("search_task", ..., str)
        with claim as (_, digest, _):
            if digest is None:
                return
            killing.in_the_middle(common, claim, digest, part)
            for space in spaces:
                pair = space.try_read("hash_set", digest, str)
                if pair is not None:
                    claim.put("found_value", digest, pair[2])
                    break


def take_all_back(own: ts.Space) -> tuple[int, int, list[int]]:
    """Take every pair, one by one: their number, the sum of the passwords, some latencies."""
    checksum = taken = 0
    take_ns: list[int] = []
    while True:
        begin_ns = time.perf_counter_ns()
        pair = own.try_take("hash_set", str, str)
        if pair is None:
            return taken, checksum, take_ns
        if taken % SAMPLE_EVERY == 0:
            take_ns.append(time.perf_counter_ns() - begin_ns)
        checksum += int(pair[2])
        taken += 1


# --- the master ---


@dataclass
class Spaces:
    """The master's side: gives out tasks and collects answers through the common space."""

    plan: Plan
    terminal: Terminal
    common: ts.Space
    parts: Sequence[ts.Space]
    name: str = "Tupelo"
    put_ns: list[int] = field(default_factory=list)

    def store(self) -> None:
        """Tell each worker its part and wait until all have stored theirs."""
        self.common.put_all(("part", number, False) for number in range(self.plan.workers))
        for _ in self.parts:
            self.put_ns += self._wait(like("stored", int, list), "stored")[2]

    def search_all(self, digests: Sequence[str]) -> dict[str, str]:
        """One task per digest; the answers come in any order."""
        for digest in digests:
            self.common.put("search_task", digest, "not_processed")
        answers = (self.common.take("found_value", str, str, timeout=PATIENCE_S) for _ in digests)
        return {digest: password for _, digest, password in answers}

    def search(self, digest: str) -> str:
        """One task, one answer."""
        self.common.put("search_task", digest, "not_processed")
        return self.common.take("found_value", digest, str, timeout=PATIENCE_S)[2]

    def take_back(self) -> None:
        """Let the workers take back the tuples that they stored; none may be missing."""
        begin = time.perf_counter()
        self.common.put_all([("search_task", None, "finished")] * self.plan.workers)
        taken = [self._wait(like("taken", int, int, list), "left") for _ in self.parts]
        elapsed_s = time.perf_counter() - begin
        expected = sum(int(database.password(index)) for index in range(self.plan.pairs))
        if sum(checksum for _, _, checksum, _ in taken) != expected:
            message = f"{sum(n for _, n, _, _ in taken)} pairs came back, not the ones stored"
            raise WrongResultError(message)
        self.terminal.line(
            f"  {count(self.plan.pairs)} pairs taken back in {duration(elapsed_s)}, none missing"
        )
        self.terminal.line(f"  one put:  {latency(self.put_ns)}")
        take_ns = [sample for _, _, _, samples in taken for sample in samples]
        self.terminal.line(f"  one take: {latency(take_ns)}")

    def _wait(self, template: ts.Template[TupleT], what: str) -> TupleT:
        """Wait for the word of one more worker; meanwhile show how much each has `what`."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                found: TupleT = self.common.take(template, timeout=0.1)
            except ts.Timeout:
                if time.monotonic() > give_up:
                    raise
            else:
                return found
            self.terminal.bars(
                [
                    (f"worker {number} {what}", space.stat()["tuples"], len(self.plan.part(number)))
                    for number, space in enumerate(self.parts)
                ]
            )


def url(plan: Plan, part: int | None = None) -> str:
    """The space of one part, or the common one."""
    return url_of(plan.name if part is None else f"{plan.name}-{part}", plan.server)


@contextmanager
def fresh_spaces(plan: Plan) -> Iterator[tuple[ts.Space, list[ts.Space]]]:
    """The common space and one per worker, empty at first, removed at the end."""
    part_bytes = SPACE_BYTES + PAIR_BYTES * len(plan.part(plan.workers - 1))
    with ExitStack() as stack:

        def fresh(address: str, size_bytes: int) -> ts.Space:
            space = stack.enter_context(ts.connect(address, fresh=True, size=size_bytes))
            stack.callback(ts.remove, address)
            return space

        parts = [fresh(url(plan, number), part_bytes) for number in range(plan.workers)]
        yield fresh(url(plan), SPACE_BYTES), parts


def affordable(plan: Plan, terminal: Terminal) -> Plan:
    """The plan, made smaller if shared memory has no room for it: a container often has 64 MiB."""
    if plan.server is not None:
        return plan
    free_bytes = shutil.disk_usage("/dev/shm").free  # noqa: S108
    room_bytes = free_bytes * 9 // 10 - SPACE_BYTES * (plan.workers + 1)
    pairs = min(plan.pairs, database.SIZE_MAX, max(room_bytes // PAIR_BYTES, plan.workers))
    if pairs < plan.pairs:
        terminal.line(
            f"{count(plan.pairs)} pairs are too many for 7 digits or for the"
            f" {count(free_bytes >> 20)} MiB free in /dev/shm: doing {count(pairs)}"
        )
    return replace(plan, pairs=pairs)
