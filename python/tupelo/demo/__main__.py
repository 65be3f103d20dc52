"""The command line of the demos: `python3 -m tupelo.demo`, or `tupelo demo`."""

import argparse
import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from tupelo import TupeloError
from tupelo.common_options import add_common_options
from tupelo.demo import password, sort
from tupelo.demo.measure import Plan, WrongResultError
from tupelo.demo.spaces import name_of, remove_left_behind, served, url_of
from tupelo.terminal import Terminal

EXAMPLES = """examples:
  tupelo demo password                      a million passwords, four workers, a hundred searches
  tupelo demo password --pairs 100000       the same, smaller
  tupelo demo password --kill 3             three workers are killed while they search
  tupelo demo sort numbers.txt              sort a file of your own, one number per line
  tupelo demo sort numbers.txt --workers 8 --out sorted.txt
  tupelo demo password --pairs 10000 --serve   the same by way of a server
"""
USAGE = 2  # exit code
INTERRUPTED = 130
BROKEN_PIPE = 141  # as a shell reports it


def positive(text: str) -> int:
    """An argument that counts something."""
    number = int(text)
    if number < 1:
        message = f"must be 1 or more, not {number}"
        raise argparse.ArgumentTypeError(message)
    return number


def arguments() -> argparse.ArgumentParser:
    """The parser, with one sub-command per demo."""
    parser = argparse.ArgumentParser(
        prog="tupelo demo",
        description="Shows a space at work, with real processes, checked results and a comparison.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common_options(parser)
    demos = parser.add_subparsers(dest="demo", metavar="DEMO")

    search = demos.add_parser("password", help="search a database spread over worker processes")
    search.add_argument("--pairs", type=positive, default=1_000_000, help="size of the database")
    search.add_argument("--searches", type=positive, default=100, help="passwords to find")
    search.add_argument("--seed", type=int, default=1, help="chooses what is searched for")

    sorting = demos.add_parser("sort", help="sort a file of numbers with worker processes")
    sorting.add_argument("file", type=Path, help="one number per line")
    sorting.add_argument("--out", type=Path, help="write the sorted numbers here")
    for demo in (search, sorting):
        demo.add_argument("--workers", type=positive, default=4, help="worker processes")
        demo.add_argument(
            "--kill", type=positive, default=0, metavar="N", help="workers to kill on the way"
        )
        demo.add_argument("--alone", action="store_true", help="leave out the comparison")
        where = demo.add_mutually_exclusive_group()
        where.add_argument(
            "--server", metavar="URL", help="use the spaces of this server, as tcp://hub:7667"
        )
        where.add_argument("--serve", action="store_true", help="start a server, and use its")
        add_common_options(demo, default=argparse.SUPPRESS)
    return parser


def main() -> int:
    """Run the chosen demo; returns the exit code."""
    parser = arguments()
    options = parser.parse_args()
    if options.demo is None:
        parser.print_help()
        return USAGE
    terminal = Terminal(sys.stdout, quiet=options.quiet)
    try:
        remove_left_behind()
        with served() if options.serve else nullcontext(options.server) as server:
            run(options, server, terminal)
    except (sort.BadFileError, WrongResultError, TupeloError) as error:
        return failed(options.demo, str(error))
    except OSError as error:
        return refused(options.demo, error)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def run(options: argparse.Namespace, server: str | None, terminal: Terminal) -> None:
    """Run the demo that the options name, in shared memory or in the spaces of a server."""
    if options.demo == "password":
        plan = Plan(options.pairs, options.workers, options.searches, options.seed, options.kill)
        password.run(replace(plan, server=server), terminal, alone=options.alone)
    else:
        url = url_of(name_of("sort"), server)
        job = sort.Plan(options.file, options.workers, options.out, options.kill, url)
        sort.run(job, terminal, alone=options.alone)


def refused(demo: str, error: OSError) -> int:
    """Print the error of the space; returns the exit code."""
    why = error.strerror or str(error)
    if error.filename is not None:
        return failed(demo, f"{error.filename}: {why}")
    # The output itself may have failed: the rest of it would fail once more at the end.
    sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    if isinstance(error, BrokenPipeError):
        # The reader has closed the pipe.
        return BROKEN_PIPE
    return failed(demo, why)


def failed(demo: str, why: str) -> int:
    """Say why a demo failed; returns the exit code."""
    sys.stderr.write(f"tupelo demo {demo}: {why}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
