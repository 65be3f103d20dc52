"""The command line of the suite: `python3 -m tupelo.bench`, or `tupelo bench`."""

from __future__ import annotations

import argparse
import datetime as dt
import errno
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tupelo.bench.backends.registry import PEERS, UnknownPeerError, chosen
from tupelo.bench.experiments.everything import EXPERIMENTS, YARDSTICKS
from tupelo.bench.experiments.workload import KIND_SHARES, OPERATION_SHARES, recorded
from tupelo.bench.harness import machine
from tupelo.bench.harness.budget import FOREVER_S
from tupelo.bench.harness.progress import Progress
from tupelo.bench.harness.record import BadRecordError, Run, load
from tupelo.bench.harness.runner import Options, Runner
from tupelo.bench.report import files
from tupelo.bench.report.compare import cautions, compared
from tupelo.bench.report.page import page
from tupelo.bench.report.tables import tables
from tupelo.bench.report.targets import targets
from tupelo.bench.report.units import quantity
from tupelo.demo.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tupelo.bench.backends.base import Peer
    from tupelo.bench.experiments.base import Experiment
    from tupelo.bench.report.tables import Table

EXAMPLES = """examples:
  tupelo bench mem --quick                  seconds; to see what there is
  tupelo bench mem --vs redis,sqlite        beside some peers only
  tupelo bench all --out results            everything, with figures and a page
  tupelo bench rpc --compare old/run.json   what changed since an earlier run
  tupelo bench all --record old/run.json --out results    the files again, nothing measured
  tupelo bench peers                        what is installed, and how to install the rest
"""
USAGE = 2  # exit code
INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports for one
QUICK_REPEATS = 2
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
    return parser


def positive(text: str) -> int:
    """An argument that counts something."""
    number = int(text)
    if number < 1:
        message = f"must be 1 or more, not {number}"
        raise argparse.ArgumentTypeError(message)
    return number


def frequencies(of: Mapping[Any, float]) -> Callable[[str], dict[Any, float]]:
    """An argument that gives each of some things a frequency."""

    def parsed(text: str) -> dict[Any, float]:
        numbers = [float(word) for word in text.split(",")]
        if len(numbers) != len(of) or min(numbers) < 0 or not sum(numbers):
            message = f"needs {len(of)} numbers, as many as {', '.join(of)}, not {text!r}"
            raise argparse.ArgumentTypeError(message)
        return dict(zip(of, numbers, strict=True))

    return parsed


def minutes(text: str) -> float:
    """A number of minutes, in seconds; infinitely many for `none`."""
    return FOREVER_S if text == "none" else 60.0 * positive(text)


def budget_s(options: argparse.Namespace) -> float | None:
    """The time that the run may take; None for any."""
    if options.budget is None:
        return 60.0 * (QUICK_MINUTES if options.quick else BUDGET_MINUTES)
    return None if options.budget == FOREVER_S else float(options.budget)


def main() -> int:
    """Run what was asked for; returns the exit code: 1 if a result was wrong or a part failed."""
    options = arguments().parse_args()
    terminal = Terminal(sys.stdout)
    wanted = [e for e in EXPERIMENTS if options.what in ("all", e.name)]
    # Who is told to end takes its servers, workers and spaces with it, as at Ctrl-C.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        if options.what == "peers":
            show_peers(terminal)
            return 0
        require_places(options)
        old = load(options.compare) if options.compare else None
        if options.record:
            run = again(options.record, wanted)
        else:
            run = measure(wanted, options, terminal)
        report(run, old, wanted, options, terminal)
    except UnknownPeerError as error:
        return failed(str(error), USAGE)
    except BrokenPipeError:
        # Whoever reads has enough; what is left is for nobody.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
        return BROKEN_PIPE
    except (BadRecordError, OSError) as error:
        return failed(str(error), 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 1 if run.failures else 0


def require_places(options: argparse.Namespace) -> None:
    """See that what is asked for can be written, before anything is measured.

    Raises:
        OSError: it can not; with the name of the place.
    """
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.out):
            pass
    for path in (options.save, options.html):
        if path is not None and path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "a folder: name a file", str(path))
        if path is not None:
            with tempfile.TemporaryFile(dir=path.parent):
                pass


def measure(wanted: Sequence[Experiment], options: argparse.Namespace, terminal: Terminal) -> Run:
    """Run the yardsticks and the experiments."""
    run = Run(
        command=["tupelo", "bench", *sys.argv[1:]],
        begin=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        seed=options.seed,
        quick=options.quick,
        machine=machine.describe(),
        versions=machine.versions(),
    )
    repeats = options.repeats or (QUICK_REPEATS if options.quick else 10)
    workload = recorded(options.workload) if options.workload else None
    asked = Options(
        options.quick, repeats, options.seed, budget_s(options),
        workload, options.operations, options.entries,
    )  # fmt: skip
    progress = Progress(terminal)
    runner = Runner(run, asked, progress)
    peers = chosen(options.vs)
    begin = time.monotonic()
    runner.all_of(
        [block for experiment in (YARDSTICKS, *wanted) for block in experiment.blocks(peers, asked)]
    )
    for experiment in wanted:
        run.measures += experiment.derive(run)
    run.duration_s = round(time.monotonic() - begin, 1)
    return run


def again(path: Path, wanted: Sequence[Experiment]) -> Run:
    """The record of an earlier run; what follows from its measures is computed anew."""
    run = load(path)
    run.measures = [
        *(measure for measure in run.measures if not measure.derived),
        *(measure for experiment in wanted for measure in experiment.derive(run)),
    ]
    return run


def report(
    run: Run,
    old: Run | None,
    wanted: Sequence[Experiment],
    options: argparse.Namespace,
    terminal: Terminal,
) -> None:
    """Show the tables, then write the files."""
    everything = (YARDSTICKS, *wanted)
    for experiment in everything:
        for table in tables(run, experiment.name, experiment.main, narrow=True):
            show(table, terminal)
    if old is not None:
        terminal.line()
        for caution in cautions(old, run):
            terminal.line(f"caution: {caution}")
        changes = compared(old, run)
        if changes.rows:
            show(changes, terminal)
        else:
            terminal.line("nothing changed since the old run")
    verdicts = targets(run)
    if verdicts.rows and not run.quick:
        show(verdicts, terminal)
    store(run, everything, options, terminal)


def store(
    run: Run, everything: tuple[Experiment, ...], options: argparse.Namespace, terminal: Terminal
) -> None:
    """Write the files that were asked for, and say what went wrong."""
    terminal.line()
    try:
        write(run, everything, options, terminal)
    except OSError:
        if not options.record:
            with tempfile.NamedTemporaryFile(suffix=".run.json", delete=False) as rescued:
                run.save(Path(rescued.name))
            sys.stderr.write(f"tupelo bench: what was measured is in {rescued.name}\n")
        raise
    for remark in run.failures:
        terminal.line(f"{remark.experiment}, {remark.backend}: {remark.why}: {remark.text}")
    if run.quick:
        terminal.line("quick sizes: to see that it works, not how fast it is")


def write(
    run: Run, everything: tuple[Experiment, ...], options: argparse.Namespace, terminal: Terminal
) -> None:
    """Write the files that were asked for."""
    if options.out:
        written = files.write(run, everything, options.out)
        size_bytes = sum(path.stat().st_size for path in written)
        terminal.line(
            f"{len(written)} files in {options.out}, {quantity(size_bytes, 'bytes')}, among them"
            f" {written[-1]}"
        )
    if options.save:
        run.save(options.save)
        terminal.line(f"the record is in {options.save}")
    if options.html:
        options.html.write_text(page(run, everything), encoding="utf-8")
        terminal.line(f"the page is {options.html}")


def show(table: Table, terminal: Terminal) -> None:
    """A table on the terminal."""
    terminal.line()
    terminal.line(table.title)
    terminal.table(table.heads, table.rows)


def show_peers(terminal: Terminal) -> None:
    """Tell which peers are here, and how to install the others."""
    rows = []
    for peer in PEERS:
        lacking = peer.missing()
        state = f"{lacking}: {peer.how_to_install}" if lacking else version_of(peer)
        rows.append((peer.name, "yes" if lacking is None else "no", peer.title, state))
    name_width = max(len(name) for name, *_ in rows)
    title_width = max(len(title) for *_, title, _ in rows)
    for name, here, title, state in rows:
        words = (name.ljust(name_width), here.ljust(3), title.ljust(title_width), state)
        terminal.line(f"  {'  '.join(words)}".rstrip())


def version_of(peer: type[Peer]) -> str:
    """The version of a peer that is here; one that does not tell must not hide the others."""
    try:
        return peer.version()
    except Exception as error:  # noqa: BLE001 - of any program or package
        return f"does not tell its version: {error}"


def failed(why: str, code: int) -> int:
    """Say why nothing was done; returns the exit code."""
    sys.stderr.write(f"tupelo bench: {why}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
