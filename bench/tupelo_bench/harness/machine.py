"""What a run was made on: the machine, the versions, the load when it began."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tupelo

GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
GIT_S = 10.0  # more than it takes to look at a clone
NO_RESULTS = ":(exclude,top)docs/results"


def describe() -> dict[str, Any]:
    """The machine, in values that JSON has."""
    return {
        "processor": _processor(),
        "processors": sorted(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {kernel()}",
        "mhz": _cpuinfo().get("cpu MHz", ""),
        "cache": _cpuinfo().get("cache size", ""),
        "governor": _told(GOVERNOR),
        "virtual": "hypervisor" in _cpuinfo().get("flags", "").split(),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """The versions of what every run uses; those of the peers are added as they run."""
    return {
        "tupelo": _with_revision(tupelo.__version__),
        "python": sys.version.split()[0],
        "libc": " ".join(platform.libc_ver()),
        "numpy": version("numpy"),
        "size of Tupelo's extension": extension_size(),
    }


def extension_size() -> str:
    """How large the file is that has the engine, the client and the server."""
    files = Path(tupelo.__file__).parent.glob("*.so")
    size_bytes = max((file.stat().st_size for file in files), default=0)
    return f"{size_bytes / (1 << 20):.1f} MiB" if size_bytes else ""


def _told(path: Path) -> str:
    """What the kernel says in a file; empty if there is none, as in most virtual machines."""
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _with_revision(version: str) -> str:
    """The version, and which commit of it, where the package lies in a clone of its own.

    "dirty" says that files have changed since, beside the results: a sitting writes those itself.
    """
    try:
        _git("ls-files", "--error-unmatch", "__init__.py")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", NO_RESULTS)
        return f"{version} ({_git('describe', '--always')}{'-dirty' if changed else ''})"
    except (OSError, subprocess.SubprocessError):
        return version


def _git(*words: str) -> str:
    command = ("git", "-C", str(Path(tupelo.__file__).parent), *words)
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_S)
    return told.stdout.strip()


def kernel() -> str:
    """The version of the kernel, without the name that whoever built it gave it."""
    return platform.release().partition("-")[0]


def _cpuinfo() -> dict[str, str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _processor() -> str:
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()
