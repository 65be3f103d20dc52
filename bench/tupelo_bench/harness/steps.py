"""Programs that prepare something for a peer and end: compilers, and who makes a server's data."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from tupelo_bench.harness.lifetime import GRACE_S, LINES_MAX, ServerFailedError, die_with_parent
from tupelo_bench.harness.stopping import ENDINGS, endings_wait

if TYPE_CHECKING:
    from pathlib import Path


def step(folder: Path, *command: str, **options: Any) -> None:
    """Run a program in `folder`; raise `ServerFailedError` with what it said if it fails.

    If we are told to end meanwhile, it ends first, with all that it has started: those would
    write on into a folder that is being removed. What it keeps for a while lies in `folder`, too.
    """
    parent = os.getpid()

    def prepare() -> None:
        die_with_parent(parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDINGS)

    with ExitStack() as unless_ended:
        with endings_wait():
            program = subprocess.Popen(
                command,
                cwd=folder,
                env=os.environ | {"TMPDIR": str(folder)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,  # a group of its own
                preexec_fn=prepare,  # noqa: PLW1509 - nothing but system calls
                **options,
            )
            unless_ended.callback(_end_all, program)
        said, _ = program.communicate()
        unless_ended.pop_all()
    if program.returncode:
        last = said.splitlines()[-LINES_MAX:]
        name = os.path.basename(command[0])  # noqa: PTH119 - of a word
        raise ServerFailedError("\n".join([f"{name} failed", *last]))


def _end_all(program: subprocess.Popen[str]) -> None:
    # Asked first: who makes a server's data has memory that stays where it is killed.
    for signal_number, patience_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal_number)
        with suppress(subprocess.TimeoutExpired):
            program.communicate(timeout=patience_s)  # all that could write has ended then
            return
