"""`tupelo record --out FILE -- COMMAND`: run a program, and record its use of spaces.

Every process that the command starts writes a file of its own. At the end the files are merged into
one, in the order of time. The exit code is that of the command, also after Ctrl-C: the command gets
the same signal and decides itself.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tupelo.common_options import add_common_options
from tupelo.recording import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

USAGE = 2  # also for a file that cannot be written
NOT_FOUND = 127  # as a shell reports a missing program

EXAMPLES = """examples:
  tupelo record --out run.jsonl -- python3 program.py
  tupelo check run.jsonl
"""


def main() -> int:
    """Run the command and merge what its processes wrote; returns the command's exit code."""
    parser = argparse.ArgumentParser(
        prog="tupelo record",
        description="Runs a Python program and writes down what it does with spaces, a line each.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the record")
    add_common_options(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.print_usage(sys.stderr)
        sys.stderr.write("tupelo record: what is to run? put it behind --\n")
        return USAGE
    try:
        # Before the run: a file that cannot be written is reported now rather than after the run.
        # An earlier record stays until there is another one.
        merged = options.out.open("a", encoding="utf-8")
    except OSError as error:
        sys.stderr.write(f"tupelo record: {options.out} can not be written: {error.strerror}\n")
        return USAGE
    with merged:
        return record(command, merged, quiet=options.quiet)


def record(command: list[str], merged: TextIO, *, quiet: bool = False) -> int:
    """Run the command, and write its record; returns the command's exit code."""
    leave_interrupts_to_the_command()
    try:
        folder = tempfile.mkdtemp(prefix="tupelo-record-")
    except OSError as error:
        sys.stderr.write(f"tupelo record: no folder to record in: {error.strerror}\n")
        return USAGE
    try:
        code = run(command, folder)
    except OSError as error:
        shutil.rmtree(folder)
        sys.stderr.write(f"tupelo record: {command[0]}: {error.strerror}\n")
        return NOT_FOUND
    try:
        empty(merged)
        count, torn = merge(Path(folder), merged)
        merged.flush()
    except OSError as error:
        sys.stderr.write(
            f"tupelo record: {merged.name}: {error.strerror}; what each process wrote is in"
            f" {folder}\n"
        )
        with suppress(OSError):  # the rest of it would be refused once more
            merged.close()
        return code or USAGE
    # A process that outlives the command may be writing while the folder is removed.
    shutil.rmtree(folder, ignore_errors=True)
    if torn:
        sys.stderr.write(f"{torn} lines were torn, and are left out\n")
    if not quiet:
        out = merged.name
        sys.stderr.write(f"{count} operations are in {out}: see `tupelo check {out}`\n")
    return code


def leave_interrupts_to_the_command() -> None:
    """From now on, let Ctrl-C end the command only: its record is still written."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # which the command is to inherit
        signal.signal(signal.SIGINT, lambda *_: None)


def run(command: list[str], folder: str) -> int:
    """Run the command to its end; its exit code, 128 and more if a signal ended it.

    A signal that ends this process means the command: the command gets it, and its record is
    written.
    """
    with subprocess.Popen(command, env=os.environ | {VARIABLE: folder}) as process:  # noqa: S603
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: process.send_signal(number))
        code = process.wait()
    return code if code >= 0 else 128 - code


def empty(merged: TextIO) -> None:
    """Remove an earlier record, if it is in a file: a pipe or a terminal has none to remove."""
    if stat.S_ISREG(os.fstat(merged.fileno()).st_mode):
        merged.truncate(0)


def merge(folder: Path, merged: TextIO) -> tuple[int, int]:
    """Merge the files of all processes, ordered by time; the numbers of operations and torn lines.

    They are sorted here, all together: threads of one process read the clock in one order and may
    write in another.
    """
    lines: list[tuple[int, str]] = []
    operations = torn = 0
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8", errors="replace") as written:
            for whole in written:
                if not (line := whole.rstrip("\0\n")):
                    continue  # the unused rest of a file
                try:
                    event = json.loads(line)
                    lines.append((event["time_ns"], line))
                    operations += event.get("verb") != "waits"  # which comes before its operation
                except (ValueError, KeyError, TypeError):
                    torn += 1
    lines.sort(key=lambda timed: timed[0])
    merged.writelines(f"{line}\n" for _, line in lines)
    return operations, torn


if __name__ == "__main__":
    sys.exit(main())
