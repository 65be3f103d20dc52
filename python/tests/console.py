"""Runs the console script in tests: the command line of the native module, as from a shell."""

import subprocess
import sys
from pathlib import Path

INSTALLED = Path(sys.executable).with_name("tupelo")
"""The console script as it is installed, beside the Python that runs the tests."""

SCRIPT = "from tupelo.command_line import main; main()"


def command(*words):
    """Return the words of `tupelo WORDS…`, to be started."""
    return [sys.executable, "-c", SCRIPT, *words]


def run(*words):
    """Run `tupelo WORDS…` to its end."""
    return subprocess.run(command(*words), capture_output=True, text=True, check=False, timeout=60)
