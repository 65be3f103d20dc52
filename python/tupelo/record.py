"""`tupelo record --out FILE -- COMMAND`: run a program, and write down what it does with spaces.

Every process that the command starts writes a file of its own; at the end they are merged into one,
in the order of the time. The exit code is that of the command.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tupelo.recording import VARIABLE

USAGE = 2
INTERRUPTED = 130
NOT_FOUND = 127  # what a shell reports for a program that is not there

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
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.print_usage(sys.stderr)
        sys.stderr.write("tupelo record: what is to run? put it behind --\n")
        return USAGE
    with tempfile.TemporaryDirectory(prefix="tupelo-record-") as folder:
        try:
            code = run(command, folder)
        except OSError as error:
            sys.stderr.write(f"tupelo record: {command[0]}: {error.strerror}\n")
            return NOT_FOUND
        lines = merge(Path(folder), options.out)
    sys.stderr.write(f"{lines} operations are in {options.out}: see `tupelo check {options.out}`\n")
    return code


def run(command: list[str], folder: str) -> int:
    """Run the command to its end; its exit code, or 130 if Ctrl-C ended it."""
    with subprocess.Popen(command, env=os.environ | {VARIABLE: folder}) as process:  # noqa: S603
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.wait()  # it got the same signal
            return INTERRUPTED
    return code if code >= 0 else 128 - code


def merge(folder: Path, out: Path) -> int:
    """Merge the files of all processes, ordered by time; the number of lines."""
    count = 0
    with ExitStack() as stack, out.open("w", encoding="utf-8") as merged:
        paths = sorted(folder.glob("*.jsonl"))
        files = [stack.enter_context(path.open(encoding="utf-8")) for path in paths]
        for line in heapq.merge(*files, key=lambda line: json.loads(line)["time_ns"]):
            merged.write(line)
            count += 1
    return count


if __name__ == "__main__":
    sys.exit(main())
