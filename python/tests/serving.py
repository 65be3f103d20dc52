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


class Restarted:
    """A server of spaces in shared memory, behind a port that stays the same."""

    def __init__(self, listen="tcp://127.0.0.1:0", *options):
        self._listen, self._options = listen, options
        self._process = None
        self._serving = None
        self.start()

    def start(self):
        self._serving = server(self._listen, "--engine", "shm", *self._options)
        self._process = self._serving.__enter__()
        self._listen = self._process.url.removesuffix("/NAME")

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._serving.__exit__(None, None, None)

    def restart(self):
        self.kill()
        self.start()

    def url(self, name):
        return f"{self._listen}/{name}?size=16M"
