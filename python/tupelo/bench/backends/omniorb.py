"""omniORB, an implementation of CORBA: a small C++ program on both sides.

Debian has no binding of it for Python. The program runs batches and times its calls itself, so that
the way from Python to it is in no figure. Such calls are compared only with what is computed by
native programs, too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tupelo.bench.backends.calls import NativeCaller, address_file
from tupelo.bench.harness.lifetime import Server, ServerFailedError, die_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

PROGRAMS = Path(__file__).parent / "native"
HEADER = "omniORB4/CORBA.h"
LIBRARIES = ("-lomniORB4", "-lomnithread", "-pthread")
ANSWER_BYTES_MAX = "1073741824"  # of a message; by default it is 2 MiB
LINES_MAX = 5  # of a failed step of the build in a message


class OmniORB(NativeCaller):
    """A server process per servant, on Unix sockets."""

    name = "omniorb"
    title = "omniORB"
    how = (
        "A C++ program with omniORB over Unix sockets, as server and as client, built when the"
        " experiment starts; it times its calls itself, a thread per server where several are"
        " under way at once."
    )
    how_to_install = "apt-get install omniidl libomniorb4-dev g++"

    @classmethod
    def missing(cls) -> str | None:
        for program in ("omniidl", "g++"):
            if shutil.which(program) is None:
                return f"no {program}"
        has_headers = preprocessed(f"#if !__has_include(<{HEADER}>)\n#error\n#endif\n")
        return "no omniORB headers" if has_headers is None else None

    @classmethod
    def version(cls) -> str:
        told = preprocessed("#include <omniORB4/acconfig.h>\nVERSION=PACKAGE_VERSION\n") or ""
        return told.rpartition("VERSION=")[2].strip().strip('"')

    def start(self, folder: Path, cpus: Sequence[int]) -> None:
        """Build the program in `folder`."""
        del cpus
        self.folder = folder
        built = ["-std=c++17", "-O2", f"-I{folder}", f"-I{PROGRAMS}"]
        step(folder, "omniidl", "-bcxx", str(PROGRAMS / "calls.idl"))
        sources = [str(PROGRAMS / "calls.cc"), "callsSK.cc"]
        step(folder, "g++", *built, "-o", "calls", *sources, *LIBRARIES)

    def serve(self, number: int) -> Server:
        """Start a server; it answers when this returns."""
        address = address_file(self.folder, number)
        address.unlink(missing_ok=True)  # that of an earlier repeat
        command = [str(self.folder / "calls"), "server", str(address), *self._limits()]
        # Without it omniORB listens on all addresses of the machine.
        command += ["-ORBendPoint", f"giop:unix:{address}.sock"]
        server = Server(command, self.folder, sorted(os.sched_getaffinity(0)))
        server.wait_until(address.exists)
        return server

    def client(self, servers: int) -> OmniORBClient:
        """Start a client that is connected to so many servers."""
        addresses = [str(address_file(self.folder, number)) for number in range(servers)]
        return OmniORBClient([str(self.folder / "calls"), "client", *addresses, *self._limits()])

    @staticmethod
    def _limits() -> list[str]:
        return ["-ORBgiopMaxMsgSize", ANSWER_BYTES_MAX]


def preprocessed(text: str) -> str | None:
    """What the preprocessor of C++ makes of a text; None if it objects."""
    command = ["g++", "-E", "-P", "-x", "c++", "-"]
    ended = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return None if ended.returncode else ended.stdout


def step(folder: Path, *command: str) -> None:
    """Run a step of the build; raise `ServerFailedError` with what it said if it fails."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ended.returncode:
        said = (ended.stdout + ended.stderr).splitlines()[-LINES_MAX:]
        raise ServerFailedError("\n".join([f"{command[0]} failed", *said]))


class OmniORBClient:
    """The client program, told by lines what to do; calls.cc has them all."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of the system
        )
        self._line()  # it is connected

    def exchange(
        self, request_bytes: int, answer_bytes: int, count: int, warm_up: int
    ) -> list[int]:
        """Call the first server again and again; the nanoseconds of each call."""
        self._tell(f"exchange {request_bytes} {answer_bytes} {count} {warm_up}")
        return [int(word) for word in self._line().split()]

    def sort(self, parts: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        """Have each server sort a part, all at once; the sorted parts, and the nanoseconds."""
        import numpy as np

        counts = " ".join(str(len(part)) for part in parts)
        self._tell(f"sort {counts}", b"".join(part.tobytes() for part in parts))
        duration_ns = int(self._line())
        answers = [self._read(part.nbytes) for part in parts]
        return [np.frombuffer(answer, "i8") for answer in answers], duration_ns

    def stop(self) -> None:
        """End the servers, and the client."""
        self._tell("stop")
        self._line()
        with self._process as process:
            assert process.stdin is not None  # noqa: S101 - a pipe
            process.stdin.close()

    def _tell(self, line: str, data: bytes = b"") -> None:
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        self._process.stdin.write(line.encode("ascii") + b"\n" + data)
        self._process.stdin.flush()

    def _line(self) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        line = self._process.stdout.readline()
        if not line:
            self._fail()
        return line

    def _read(self, size_bytes: int) -> bytes:
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        data = self._process.stdout.read(size_bytes)
        if len(data) < size_bytes:
            self._fail()
        return data

    def _fail(self) -> None:
        with self._process as process:  # which waits for it, and closes the pipes
            code = process.wait()
        message = f"the client program ended with code {code}: see above what it said"
        raise ServerFailedError(message)
