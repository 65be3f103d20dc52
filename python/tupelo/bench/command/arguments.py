"""What may be asked of `tupelo bench`: the options, their values and the help."""

from __future__ import annotations

import argparse
from pathlib import Path

from tupelo.bench.command.values import frequencies, minutes, positive
from tupelo.bench.experiments.everything import EXPERIMENTS
from tupelo.bench.experiments.workload import KIND_SHARES, OPERATION_SHARES
from tupelo.bench.harness.budget import FOREVER_S

EXAMPLES = """examples:
  tupelo bench mem --quick                  seconds; to see what there is
  tupelo bench mem --vs redis,sqlite        beside some peers only
  tupelo bench all --out results            everything, with figures and a page
  tupelo bench rpc --compare old/run.json   what changed since an earlier run
  tupelo bench all --record old/run.json --out results    the files again, nothing measured
  tupelo bench peers                        what is installed, and how to install the rest
"""
BUDGET_MINUTES = 90
QUICK_MINUTES = 4


def arguments() -> argparse.ArgumentParser:
    """The parser."""
    names = [experiment.name for experiment in EXPERIMENTS]
    parser = argparse.ArgumentParser(
        prog="tupelo bench",
        description="Runs the experiments of the literature on Tupelo and its peers; every result"
        " is checked before its time counts.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what",
        choices=[*names, "all", "peers"],
        metavar="WHAT",
        help=f"{', '.join(names)}, all, or peers",
    )
    _add_measuring(parser)
    _add_results(parser)
    return parser


def _add_measuring(parser: argparse.ArgumentParser) -> None:
    """What is measured, how often, and how long it may take."""
    parser.add_argument("--quick", action="store_true", help="small sizes, in seconds")
    parser.add_argument(
        "--vs", metavar="NAMES", help="only these peers, as in mp,redis; '' for none"
    )
    parser.add_argument("--repeats", type=positive, metavar="N", help="of each cell (10)")
    parser.add_argument("--seed", type=int, default=1, help="of all random input (1)")
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
        type=frequencies(OPERATION_SHARES),
        metavar="R,T,W",
        help="settle: how often a generated workload reads, takes and writes (0,0,100)",
    )
    parser.add_argument(
        "--entries",
        type=frequencies(KIND_SHARES),
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
        "--compare",
        type=Path,
        metavar="FILE",
        help="the record of an earlier run: show what changed",
    )


def budget_s(options: argparse.Namespace) -> float | None:
    """The time that the run may take; None for any."""
    if options.budget is None:
        return 60.0 * (QUICK_MINUTES if options.quick else BUDGET_MINUTES)
    return None if options.budget == FOREVER_S else float(options.budget)
