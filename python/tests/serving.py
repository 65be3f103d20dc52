"""Servers of spaces, as processes."""

import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def server(socket, *options):
    """Serve spaces on a socket until the block ends. The process has the `url` of its spaces.

    `socket` may be an address, as `tcp://127.0.0.1:0`, instead of a path.
    """
    where = ["--listen", socket] if "://" in str(socket) else ["--socket", socket]
    command = "import sys; from tupelo.command_line import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", command, "serve", *where, *options],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("serving "), line
            process.url = line.removeprefix("serving ").strip()
            yield process
        finally:
            process.terminate()
            process.wait()
