"""Sorting a file of numbers with worker processes.

The master cuts the file into parts at line ends and puts each as it is. A worker takes a part,
reads and sorts its numbers, and puts them back:

    ("sort_array", part, text)  ->  ("sorted_part", part, numbers)
                                or  ("bad_line", part, line within the part, its text)
    ("sort_array", -1, b"")         one per worker, at the end

A task is a claim, and the answer is put under it: a worker that is killed loses no part. At most
`PARTS_AHEAD` parts per worker are under way, and no more than there is room for. So the file may be
larger than the space. The master's memory holds 8 bytes per number.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import tupelo as ts
from tupelo import like
from tupelo.demo import killing
from tupelo.demo.number_lines import BadLineError, Numbers, merged, pack, parse, unpack
from tupelo.demo.spaces import name_of
from tupelo.demo.team import PATIENCE_S, Team
from tupelo.formatting import count, duration
from tupelo.terminal import Terminal

PART_BYTES = 1 << 20  # of text, about 150 000 numbers: a put costs nothing beside reading them
PART_ROOM_BYTES = 6 * PART_BYTES  # a text of digits beside its result, which is four times as long
LINE_BYTES_MAX = 1 << 16  # no number is longer
PARTS_AHEAD = 4
NO_MORE = -1  # instead of the number of a part


class BadFileError(Exception):
    """The file has a line that is no number, or no number at all."""


@dataclass(frozen=True)
class Plan:
    """What to sort, with how many workers, and where the result goes."""

    file: Path
    workers: int
    out: Path | None
    kills: int = 0
    """Workers that are killed with SIGKILL in the middle of a part."""
    url: str = field(default_factory=lambda: f"shm://{name_of('sort')}")


def worker(url: str) -> None:
    """One worker: sorts parts until there are no more."""
    with ts.connect(url) as space:
        space.put("ready")
        while True:
            claim = space.claim("sort_array", int, bytes)
            with claim as (_, part, text):
                if part == NO_MORE:
                    return
                killing.in_the_middle(space, claim, part)
                try:
                    numbers = sorted(parse(text))
                except BadLineError as bad:
                    claim.put("bad_line", part, bad.line, bad.text)
                else:
                    claim.put("sorted_part", part, pack(numbers))


def run(plan: Plan, terminal: Terminal, *, alone: bool) -> None:
    """Sort the file with workers, then (unless `alone`) check it against one process."""
    size_bytes = plan.file.stat().st_size
    terminal.line(f"Sorting {plan.file} ({count(size_bytes >> 10)} KiB)")
    parts, elapsed_s = with_workers(plan, terminal)
    numbers = sum(map(len, parts))
    ends = [(part[0], part[-1]) for part in parts if part]
    if not ends:
        message = f"{plan.file} has no numbers; one per line is expected"
        raise BadFileError(message)
    terminal.line(
        f"  with {plan.workers} workers: {count(numbers)} numbers in {duration(elapsed_s)},"
        f" from {min(first for first, _ in ends)} to {max(last for _, last in ends)}"
    )
    if plan.out:
        terminal.line(f"  written to {plan.out}")
    if alone:
        return
    begin = time.perf_counter()
    expected = sorted(parse(plan.file.read_bytes()))
    alone_s = time.perf_counter() - begin
    terminal.line(f"  sorted() in one process: {duration(alone_s)}")
    position = 0
    for block in merged(parts):
        if expected[position : position + len(block)] != block:
            message = f"the workers' result differs from sorted() after {position} numbers"
            raise BadFileError(message)
        position += len(block)
    faster, times = ("the workers were", alone_s / elapsed_s)
    if times < 1:
        faster, times = ("one process was", elapsed_s / alone_s)
    terminal.line(
        f"  the results are equal; {faster} {times:.1f} times as fast, on {os.cpu_count()} cores"
    )


def with_workers(plan: Plan, terminal: Terminal) -> tuple[list[Numbers], float]:
    """The sorted parts, and how long reading, sorting, merging and writing took."""
    with ExitStack() as stack:
        space = stack.enter_context(ts.connect(plan.url, fresh=True))
        stack.callback(ts.remove, plan.url)
        team = stack.enter_context(Team(worker, plan.url))
        team.start(plan.workers)
        # However this ends, no worker waits for another part.
        stack.callback(space.put_all, [("sort_array", NO_MORE, b"")] * plan.workers)
        space.take_many("ready", n=plan.workers, timeout=PATIENCE_S)

        begin = time.perf_counter()
        space.put_all([("victim",)] * plan.kills)
        parts = Sorting(plan, space, terminal, team).parts()
        if plan.out:
            with plan.out.open("w", encoding="ascii") as out:
                out.writelines("\n".join(map(str, block)) + "\n" for block in merged(parts))
        else:
            for _ in merged(parts):
                pass
        return parts, time.perf_counter() - begin


@dataclass
class Sorting:
    """The master's side: gives out the parts of the file and collects them sorted, in any order."""

    plan: Plan
    space: ts.Space
    terminal: Terminal
    team: Team
    first_lines: list[int] = field(default_factory=list)  # of each part given out, from 1

    def parts(self) -> list[Numbers]:
        """All parts."""
        plan, done = self.plan, list[Numbers]()
        size_bytes = plan.file.stat().st_size
        ahead = parts_ahead(plan.workers, room_of(self.space))
        given_bytes = 0
        with plan.file.open("rb") as file:
            for first_line, text in texts(file):
                self.space.put("sort_array", len(self.first_lines), text)
                self.first_lines.append(first_line)
                given_bytes += len(text)
                if len(self.first_lines) - len(done) >= ahead:
                    done.append(self._take_sorted())
                    self.terminal.bars([("handed out", given_bytes, size_bytes)])
        while len(done) < len(self.first_lines):
            done.append(self._take_sorted())
        return done

    def _take_sorted(self) -> Numbers:
        """One sorted part; a bad line anywhere ends the sort with its number in the file."""
        answers = like("sorted_part", int, ...) | like("bad_line", int, int, str)
        while True:
            answer = self.space.take(
                answers | like("in_the_middle", int, int, int), timeout=PATIENCE_S
            )
            match answer:
                case ("in_the_middle", part, pid, _):
                    self._kill(part, pid)
                case ("bad_line", part, line, text):
                    place = f"{self.plan.file}, line {self.first_lines[part] + line}"
                    message = f"{place}: {text!r} is not a number"
                    raise BadFileError(message)
                case (_, part, numbers):
                    self._tell_if_again(part)
                    return unpack(numbers)

    def _kill(self, part: int, pid: int) -> None:
        self.team.kill(pid)
        if not self.team.pids:
            self.team.start(1)
        self.terminal.line(f"  worker {pid} killed while it sorted part {part}")

    def _tell_if_again(self, part: int) -> None:
        again = self.space.try_take("done_again", part, int, int)
        if again is not None:
            _, _, pid, attempt = again
            self.terminal.line(f"  part {part} sorted again by worker {pid}, attempt {attempt}")


def room_of(space: ts.Space) -> int:
    """The limit of the space, or of the system's memory for it: a container often has 64 MiB."""
    free_bytes = shutil.disk_usage("/dev/shm").free  # noqa: S108
    return min(int(space.stat()["bytes_max"]), free_bytes)


def parts_ahead(workers: int, room_bytes: int) -> int:
    """How many parts may be under way at a time, however many workers wait for one."""
    return max(1, min(PARTS_AHEAD * workers, room_bytes // PART_ROOM_BYTES))


def texts(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The file in pieces that end at a line end, each with the number of its first line."""
    line = 1
    while text := file.read(PART_BYTES):
        if not text.endswith(b"\n"):
            text += file.readline(LINE_BYTES_MAX)
        yield line, text
        line += text.count(b"\n")
