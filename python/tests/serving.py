"""Servers of spaces, as processes."""

import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def server(socket, *options):
    """Serve spaces on a socket until the block ends."""
    command = "import sys; from tupelo.command_line import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", command, "serve", "--socket", socket, *options],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("serving unix:///"), line
            yield process
        finally:
            process.terminate()
            process.wait()
