"""The parameters of a cell as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Parameters


def told(parameters: Parameters) -> str:
    """Parameters as text: `type=Null fill=0`."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())
