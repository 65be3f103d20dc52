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

from tupelo_bench.backends.calls import NativeCaller, address_file
from tupelo_bench.backends.omniorb.client import OmniORBClient
from tupelo_bench.harness.lifetime import Server
from tupelo_bench.harness.steps import step

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = Path(__file__).parents[1] / "native"
HEADER = "omniORB4/CORBA.h"
LIBRARIES = ("-lomniORB4", "-lomnithread", "-pthread")
ANSWER_BYTES_MAX = "1073741824"  # of a message; by default it is 2 MiB


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
