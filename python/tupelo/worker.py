"""`python3 -m tupelo.worker`, or `tupelo worker`: processes that compute a function for others."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from tupelo import SpaceRemoved, TupeloError, connect
from tupelo._native import announce, typed_s
from tupelo.batteries.core.remote import Address, public_terms, require_shared
from tupelo.common_options import add_common_options
from tupelo.spawn import WORKERS_MAX
from tupelo.tasks import functions, protocol
from tupelo.tasks.crew import Processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tupelo._native import Space
    from tupelo.tasks.crew import Terms

EXAMPLES = """examples:
  tupelo worker film:render                  the function render of film.py, as its @worker says
  tupelo worker film:render -n 4             in four processes
  tupelo worker math:sqrt -u shm://numbers   any function, for space.eval(..., on="workers")

Ctrl-C and SIGTERM let every process end its task; a second one ends them at once. A process that
dies is replaced, and its task is done again.
"""
FAILED = 1
USAGE = 2

LOOK_S = 1.0
"""How long a signal may have been there until it is looked for."""


def main(words: Sequence[str] | None = None) -> int:
    """Serve until a signal ends it; returns the exit code."""
    parser = arguments()
    options = parser.parse_args(words)
    try:
        function = functions.at(options.path)
    except LookupError as error:
        sys.stderr.write(f"tupelo worker: {error.args[0]}\n")
        return USAGE
    address = getattr(function, "address", None)
    address = address if isinstance(address, Address) else None
    terms, count = plan(options, function, address)
    try:
        space = connect(options.url) if address is None else address.connect(options.url)
        require_shared(space)
    except (TupeloError, ValueError) as error:
        sys.stderr.write(f"tupelo worker: {error}\n")
        return FAILED if isinstance(error, TupeloError) else USAGE
    with space:
        return Service(space, terms, quiet=options.quiet).run(count)


def arguments() -> argparse.ArgumentParser:
    """The parser."""
    parser = argparse.ArgumentParser(
        prog="tupelo worker",
        description="Compute a function for other programs, in processes of this machine.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", metavar="MODULE:FUNCTION", help="what to compute")
    parser.add_argument("-n", type=processes, metavar="N", help="processes; as @worker says, or 1")
    parser.add_argument("-u", "--url", help="the space; as @worker says, or $TUPELO_URL")
    parser.add_argument(
        "--timeout", type=positive_s, metavar="TIME", help="what a task may take: 5s, 200ms, 2min"
    )
    add_common_options(parser)
    return parser


def plan(
    options: argparse.Namespace, function: Callable[..., Any], address: Address | None
) -> tuple[Terms, int]:
    """Return how and in how many processes to serve: as asked, or as `@worker` says."""
    timeout_s: float | None = options.timeout
    count: int | None = options.n
    if address is None:
        path = own_path(function, options.path)
        return public_terms(path, protocol.TTL_S, timeout_s), count or 1
    terms = address.crew_terms()
    if timeout_s is not None:
        terms = terms._replace(timeout_s=timeout_s)
    return terms, count or address.terms.concurrency


def own_path(function: Callable[..., Any], given: str) -> str:
    """Return the path under which `Space.eval` asks for a function that was found by a given one.

    A package may pass on a function of one of its modules; its caller asks for that of the module.
    """
    if not functions.has_path(function):
        return given
    try:
        return functions.path_of(function)
    except TypeError:
        return given


class Service:
    """The processes, and this one, which waits for what happens."""

    def __init__(self, space: Space, terms: Terms, *, quiet: bool = False) -> None:
        """Get ready; say nothing of what goes on if `quiet`."""
        self._quiet = quiet
        self._space = space
        self._queue = terms.queue
        self._url = space.url
        # Also from a signal's handler, which must not wait for a lock that it has interrupted.
        self._news: SimpleQueue[str | None] = SimpleQueue()
        self._crew = Processes(space, terms._replace(reconnects=True), self._news.put, self._died)

    def run(self, count: int) -> int:
        """Serve until a signal comes; returns the exit code."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._news.put(None))
        self._crew.add(count)
        # From here to the end of this process, a caller that asks for the function is told that it
        # is served.
        self._announcement = announce(self._space, self._queue)
        self._say(f"serving {self._queue} in {self._url}, processes: {count}; Ctrl-C ends them")
        why = self._next_news()
        if why is not None:
            sys.stderr.write(f"tupelo worker: {why}\n")
            self._crew.kill()
            return FAILED
        self._crew.retire()
        self._say("every process ends its task; Ctrl-C again ends them at once")
        threading.Thread(target=self._tell_the_end, name="tupelo ending", daemon=True).start()
        if self._next_news() is None:
            self._crew.kill()
        return 0

    def _next_news(self) -> str | None:
        """Wait for the next event; look for it every second, whichever thread gets a signal.

        A signal that comes while another thread starts a process may be handled there without
        waking this thread: its handler runs when this thread does something.
        """
        while True:
            with suppress(Empty):
                return self._news.get(timeout=LOOK_S)
            self._follow_the_name()

    def _follow_the_name(self) -> None:
        """Go on in the space that has the name now, as the processes do, if this was removed."""
        try:
            self._space.try_read(protocol.END, self._queue)
        except SpaceRemoved as removed:
            try:
                self._space = connect(self._url, objects=self._space.objects)
                self._announcement = announce(self._space, self._queue)
            except TupeloError as error:
                self._say(f"{removed.args[0]}; the next one can not be used yet: {error}")
            else:
                self._say(f"{removed.args[0]}; serving the one that has its name now")
        except TupeloError:
            pass  # of what else is wrong the processes tell

    def _tell_the_end(self) -> None:
        self._crew.join()
        self._news.put("they have ended")

    def _died(self, pid: int, how: str) -> None:
        self._say(f"process {pid} {how}: its task is done again, and a new process takes its place")

    def _say(self, line: str) -> None:
        if not self._quiet:
            say(line)


def say(line: str) -> None:
    """Print a line at once. Whether anybody reads it or not, the work goes on."""
    if sys.stdout is None:  # it was closed before this program began
        return
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        # The rest of it is dropped: otherwise the next line would write it again, as would the
        # start of a process and the end.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end


def processes(text: str) -> int:
    """Parse a number of processes."""
    number = int(text)
    if not 1 <= number <= WORKERS_MAX:
        message = f"must be 1 to {WORKERS_MAX}, not {number}"
        raise argparse.ArgumentTypeError(message)
    return number


def positive_s(text: str) -> float:
    """Parse a time, such as 5s; a bare number is seconds."""
    try:
        time_s = typed_s(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None
    if not time_s:
        message = "must be more than 0"
        raise argparse.ArgumentTypeError(message)
    return time_s


if __name__ == "__main__":
    sys.exit(main())
