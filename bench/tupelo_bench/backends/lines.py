"""How long each adapter is: what it takes to drive a system as the suite does."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tupelo_bench.backends.base import Peer

LANGUAGES = (".py", ".rb", ".java", ".cc", ".h", ".idl")
COMMENTS = ("#", "//", "/*", "*", '"""')


def adapter_lines(peer: type[Peer]) -> int:
    """The lines of its module, or of all files of its package, that are neither empty nor comments.

    What several adapters share is in none of them, and a module with two counts for both.
    """
    file = Path(inspect.getfile(peer))
    files = file.parent.rglob("*") if file.name == "__init__.py" else [file]
    return sum(
        bool(line.strip()) and not line.strip().startswith(COMMENTS)
        for each in files
        if each.suffix in LANGUAGES
        for line in each.read_text(encoding="utf-8").splitlines()
    )
