"""Sorting a file of numbers with worker processes.

The master cuts the file into parts at line ends and puts each as it is; a worker takes one, reads
and sorts its numbers, and puts them back:

    ("sort_array", part, text)  ->  ("sorted_part", part, numbers)
                                or  ("bad_line", part, line within the part, its text)

At most `PARTS_AHEAD` parts per worker are under way, so the file may be larger than the space. What
stays in the master's memory is 8 bytes per number.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import tupelo as ts
from tupelo import like
from tupelo.demo.number_lines import BadLineError, Numbers, merged, pack, parse, unpack
from tupelo.demo.terminal import Terminal
from tupelo.figures import count, duration

PART_BYTES = 1 << 20  # of text, about 150 000 numbers: a put costs nothing beside reading them
LINE_BYTES_MAX = 1 << 16  # no number is longer
PARTS_AHEAD = 4
PATIENCE_S = 120.0  # longer than any part takes; a dead worker must not hang the demo


class BadFileError(Exception):
    """The file has a line that is no number, or no number at all."""


@dataclass(frozen=True)
class Plan:
    """What to sort, with how many workers, and where the result goes."""

    file: Path
    workers: int
    out: Path | None
    url: str = field(default_factory=lambda: f"shm://demo-sort-{os.getpid()}")


def worker(url: str) -> None:
    """One worker: sorts parts until there are no more."""
    with ts.connect(url) as space:
        space.put("ready")
        for _, part, text in space.consume("sort_array", int, bytes):
            try:
                numbers = sorted(parse(text))
            except BadLineError as bad:
                space.put("bad_line", part, bad.line, bad.text)
            else:
                space.put("sorted_part", part, pack(numbers))


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
        stack.enter_context(ts.spawn(worker, plan.url, n=plan.workers))
        # However this ends, no worker waits for another part.
        stack.callback(space.finish, "sort_array", int, bytes)
        for _ in range(plan.workers):
            space.take("ready", timeout=PATIENCE_S)

        begin = time.perf_counter()
        parts = sorted_parts(plan, space, terminal)
        if plan.out:
            with plan.out.open("w", encoding="ascii") as out:
                out.writelines("\n".join(map(str, block)) + "\n" for block in merged(parts))
        else:
            for _ in merged(parts):
                pass
        return parts, time.perf_counter() - begin


def sorted_parts(plan: Plan, space: ts.Space, terminal: Terminal) -> list[Numbers]:
    """Give out the parts of the file and collect them sorted, in any order."""
    size_bytes = plan.file.stat().st_size
    first_lines: list[int] = []  # of each part given out, from 1
    done: list[Numbers] = []
    given_bytes = 0
    with plan.file.open("rb") as file:
        for first_line, text in texts(file):
            space.put("sort_array", len(first_lines), text)
            first_lines.append(first_line)
            given_bytes += len(text)
            if len(first_lines) - len(done) >= PARTS_AHEAD * plan.workers:
                done.append(take_sorted(space, plan.file, first_lines))
                terminal.bars([("handed out", given_bytes, size_bytes)])
    while len(done) < len(first_lines):
        done.append(take_sorted(space, plan.file, first_lines))
    return done


def texts(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The file in pieces that end at a line end, each with the number of its first line."""
    line = 1
    while text := file.read(PART_BYTES):
        if not text.endswith(b"\n"):
            text += file.readline(LINE_BYTES_MAX)
        yield line, text
        line += text.count(b"\n")


def take_sorted(space: ts.Space, file: Path, first_lines: Sequence[int]) -> Numbers:
    """One sorted part; a bad line anywhere ends the sort with its number in the file."""
    answer = space.take(
        like("sorted_part", int, ...) | like("bad_line", int, int, str), timeout=PATIENCE_S
    )
    if answer[0] == "bad_line":
        _, part, line, text = answer
        message = f"{file}, line {first_lines[part] + line}: {text!r} is not a number"
        raise BadFileError(message)
    return unpack(answer[2])
