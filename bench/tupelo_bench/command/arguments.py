"""What may be asked of `tupelo bench`: the options, their values and the help."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tupelo.common_options import add_common_options
from tupelo_bench.backends.registry import PEERS
from tupelo_bench.command.values import (
    frequencies,
    minutes,
    nearest,
    one_of,
    positive,
    seed,
    several_of,
)
from tupelo_bench.experiments.everything import EXPERIMENTS
from tupelo_bench.experiments.workload import KIND_SHARES, OPERATION_SHARES
from tupelo_bench.harness.budget import FOREVER_S

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

EXAMPLES = """examples:
  tupelo bench mem --quick                  a minute or two; to see what there is
  tupelo bench mem --vs redis,sqlite        beside some peers only
  tupelo bench all --out results            everything, with figures and a page
  tupelo bench rpc --compare old/run.json   what changed since an earlier run
  tupelo bench all --resume results         another sitting of the same record
  tupelo bench all --only cases --peer javaspaces --resume results    a part of it
  tupelo bench all --only cases --anew --resume results    that part again, on another machine
  tupelo bench all --record old/run.json --out results    the files again, nothing measured
  tupelo bench rpc --record old/run.json --against redis    how the others are beside Redis
  tupelo bench peers                        what is installed, and how to install the rest
"""
NAMES = tuple(peer.name for peer in PEERS)
WHAT = (*(experiment.name for experiment in EXPERIMENTS), "all", "peers")
BUDGET_MINUTES = 90
QUICK_MINUTES = 4


class Parser(argparse.ArgumentParser):
    """A parser that says what to type also where an option is unknown, or has no value."""

    def error(self, message: str) -> NoReturn:
        """Show the usage and what was wrong, and exit with 2."""
        super().error(message + self._way_out(message))

    def _way_out(self, message: str) -> str:
        if valueless := re.match(r"argument (--\w+): expected one argument", message):
            value = self._option_string_actions[valueless[1]].metavar or "VALUE"
            return f": type {valueless[1]}={value}, with = also before a value that begins with -"
        if message.startswith("unrecognized arguments"):
            # Of an option and its value, which comes after it, the option is what is unknown.
            words = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
            options = [option for option in self._option_string_actions if option[:2] == "--"]
            near = [found for word in words if (found := nearest(word, options))]
            meant = f": did you mean {', '.join(near)}?" if near else ":"
            known = f"{meant} there are {', '.join(options)}"
            return known if words else f": one of {', '.join(WHAT)} is asked for at a time"
        if message.endswith("required: WHAT"):
            return f": type one of {', '.join(WHAT)}, as in tupelo bench mem --quick"
        return ""


def arguments() -> argparse.ArgumentParser:
    """The parser."""
    parser = Parser(
        prog="tupelo bench",
        description="Runs the experiments of the literature on Tupelo and its peers; every result"
        " is checked before its time counts.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what",
        type=one_of(WHAT),
        metavar="WHAT",
        help=f"{', '.join(WHAT[:-1])}, or {WHAT[-1]}",
    )
    _add_measuring(parser)
    _add_results(parser)
    add_common_options(parser)
    return parser


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    """What is measured, how often, and how long it may take."""
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"small sizes, in a minute or two; at most {QUICK_MINUTES} minutes",
    )
    parser.add_argument(
        "--vs", metavar="NAMES", help="only these peers, as in mp,redis; '' for none"
    )
    parser.add_argument(
        "--peer", metavar="NAMES", help="these alone, as in javaspaces: Tupelo, too, only if named"
    )
    parser.add_argument(
        "--only",
        type=several_of([experiment.name for experiment in EXPERIMENTS]),
        metavar="WHAT",
        help="of all: these experiments, as in cases,settle",
    )
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FOLDER",
        help="add what its record lacks, and further repeats, and write all files there again",
    )
    parser.add_argument(
        "--anew",
        action="store_true",
        help="with --resume: first leave out what its record has of the experiments that are run,"
        " of all systems; with --peer or --vs, of those that are run",
    )
    parser.add_argument(
        "--repeats", type=positive("--repeats", 10), metavar="N", help="of each cell (10)"
    )
    parser.add_argument(
        "--seed", type=seed, metavar="N", default=1, help="of all random input, 0 or more (1)"
    )
    parser.add_argument(
        "--workload",
        type=Path,
        metavar="FILE",
        help="settle: age the spaces by a history of `tupelo record`",
    )
    parser.add_argument(
        "--budget",
        type=minutes,
        metavar="MINUTES|none",
        help="the longest it may take; with none, everything runs to its end"
        f" ({BUDGET_MINUTES}; {QUICK_MINUTES} if --quick)",
    )
    parser.add_argument(
        "--operations",
        type=frequencies("--operations", OPERATION_SHARES),
        metavar="R,T,W",
        help="settle: how often a generated workload reads, takes and writes (0,0,100)",
    )
    parser.add_argument(
        "--entries",
        type=frequencies("--entries", KIND_SHARES),
        metavar="N,S,A,F",
        help="settle: how often it has an entry Null, String, Array, File (45,15,25,15)",
    )


def _add_results(parser: argparse.ArgumentParser) -> None:
    """What is made of the record, and with which it is compared."""
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="measure nothing: make tables and files of the record of an earlier run",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write run.json, run.csv, figures and report.html there",
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the record of the run")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page")
    parser.add_argument(
        "--against",
        type=one_of(NAMES),
        metavar="NAME",
        help="with whom the tables compare everybody, each with the test (tupelo-shm)",
    )
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help="the record of an earlier run: show what changed",
    )


MEASURING = (
    "quick",
    "vs",
    "peer",
    "only",
    "resume",
    "anew",
    "repeats",
    "seed",
    "workload",
    "budget",
    "operations",
    "entries",
)
RESULTS = ("record", "out", "save", "html", "against", "compare")


def pointless(options: argparse.Namespace, parser: argparse.ArgumentParser) -> str | None:
    """Which options would say nothing beside the others; None if all say something."""

    def given(names: Sequence[str]) -> str:
        typed = [name for name in names if getattr(options, name) != parser.get_default(name)]
        return ", ".join(f"--{name}" for name in typed)

    if options.what == "peers" and (found := given((*MEASURING, *RESULTS))):
        return f"{found}: peers only lists the peers: leave it out, or ask for an experiment"
    if options.vs is not None and options.peer is not None:
        return "--vs beside --peer: --vs names who stands beside Tupelo, --peer who runs at all"
    if options.only is not None and options.what != "all":
        return f"--only beside {options.what}: type tupelo bench all --only, or leave it out"
    if why := _pointless_of_sittings(options):
        return why
    if options.record and (found := given(MEASURING)):
        return f"{found}: with --record nothing is measured: leave it out, or --record"
    return None


def _pointless_of_sittings(options: argparse.Namespace) -> str | None:
    if options.resume is not None and options.out is not None:
        return "--out beside --resume: the files are written into the folder that is resumed"
    if options.anew and options.resume is None:
        return "--anew without --resume: a new record has nothing to leave out; leave out --anew"
    return None


def budget_s(options: argparse.Namespace) -> float | None:
    """The time that the run may take; None for any."""
    if options.budget is None:
        return 60.0 * (QUICK_MINUTES if options.quick else BUDGET_MINUTES)
    return None if options.budget == FOREVER_S else float(options.budget)
