"""The command line of the suite: `python3 -m tupelo_bench`, or `tupelo bench`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tupelo.terminal import Terminal
from tupelo_bench.backends.registry import UnknownPeerError
from tupelo_bench.command.arguments import arguments, pointless
from tupelo_bench.command.measuring import LackingError, again, measure
from tupelo_bench.command.peers import show_peers
from tupelo_bench.command.showing import show
from tupelo_bench.command.writing import require_places, store
from tupelo_bench.experiments.everything import EXPERIMENTS, YARDSTICKS
from tupelo_bench.harness import stopping
from tupelo_bench.harness.record import BadRecordError, load

USAGE = 2  # exit code
INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports for one


def main() -> int:
    """Run what was asked for; returns the exit code: 1 if a result was wrong or a part failed."""
    parser = arguments()
    options = parser.parse_args()
    if why := pointless(options, parser):
        parser.error(why)
    terminal = Terminal(sys.stdout, quiet=options.quiet)
    asked = options.only or (options.what,)
    wanted = [e for e in EXPERIMENTS if {"all", e.name} & set(asked)]
    if options.resume:
        options.out = options.resume  # where everything is written again
    # Who is told to end takes its servers, workers and spaces with it, as at Ctrl-C.
    stopping.listen()
    try:
        if options.what == "peers":
            show_peers(terminal)
            return 0
        require_places(options)
        old = load(options.compare) if options.compare else None
        if options.record:
            run = again(options.record, wanted, options.against)
        else:
            run = measure(wanted, options, terminal)
        show(run, old, wanted, options.against, terminal)
        store(run, (YARDSTICKS, *(EXPERIMENTS if options.resume else wanted)), options, terminal)
    except UnknownPeerError as error:
        return failed(str(error), USAGE)
    except BrokenPipeError:
        # Whoever reads has enough; what is left is for nobody.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
        return BROKEN_PIPE
    except (BadRecordError, LackingError, OSError) as error:
        return INTERRUPTED if stopping.told() else failed(str(error), 1)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 1 if run.failures else 0


def failed(why: str, code: int) -> int:
    """Say why nothing was done; returns the exit code."""
    sys.stderr.write(f"tupelo bench: {why}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
