"""PostgreSQL's server: a cluster of its own in a private folder, on a Unix socket there."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tupelo_bench.harness.lifetime import Server
from tupelo_bench.harness.steps import step

if TYPE_CHECKING:
    from collections.abc import Sequence


def installed_servers(root: Path) -> list[Path]:
    """Where the programs of each server that is installed are, the newest first."""
    # A client alone makes such a folder, too.
    servers = [programs.parent for programs in root.glob("*/bin/initdb")]
    return sorted(servers, key=_version, reverse=True)


def _version(programs: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in programs.parent.name.split(".") if part.isdecimal())


PROGRAMS = installed_servers(Path("/usr/lib/postgresql"))
ACCOUNT = "postgres"  # which Debian's package makes; the server refuses to run as root
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "shared_buffers": "1GB",  # by default an eighth, less than the largest fills
    "max_wal_senders": "0",
    "autovacuum_naptime": "5s",
    "listen_addresses": "",
    # In its folder, and not in /dev/shm, where they would stay if it were killed.
    "dynamic_shared_memory_type": "mmap",
}


def start_server(folder: Path, cpus: Sequence[int]) -> Server:
    """Make its data, and start it on these processors; `ServerFailedError` if there is no data."""
    data = folder / "data"
    data.mkdir()
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam(ACCOUNT)
        account = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        for each in (folder, data):
            shutil.chown(each, user.pw_uid, user.pw_gid)
    # Whatever the language of this machine, texts are texts, and in the order of their bytes.
    texts = ("--encoding=UTF8", "--no-locale")
    program = str(PROGRAMS[0] / "initdb")
    step(
        folder,
        program,
        "-D",
        str(data),
        "-A",
        "trust",
        "-U",
        "bench",
        "--no-sync",
        *texts,
        **account,
    )
    settings = [word for pair in SETTINGS.items() for word in ("-c", "=".join(pair))]
    program = str(PROGRAMS[0] / "postgres")
    command = [program, "-D", str(data), "-k", str(folder), *settings]
    # Told by SIGTERM, it waits until nobody is connected any more.
    return Server(command, folder, cpus, signal.SIGINT, **account)
