"""The console script `tupelo`: the command line is Rust, and lives in the native module."""

import signal
import sys

from tupelo._native import command_line


def main() -> None:
    """Run the command line and exit with its code."""
    # A waiting command does not run Python code, so the handler that Python installs would never
    # get to run: Ctrl-C ends the program as it ends any other. Where it is ignored, as in a
    # background command of a shell, it stays ignored.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(command_line(sys.argv))
