"""The values of options: what they have to be, and what to type instead."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from tupelo.bench.harness.budget import FOREVER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def positive(text: str) -> int:
    """An argument that counts something."""
    number = int(text)
    if number < 1:
        message = f"must be 1 or more, not {number}"
        raise argparse.ArgumentTypeError(message)
    return number


def frequencies(of: Mapping[Any, float]) -> Callable[[str], dict[Any, float]]:
    """An argument that gives each of some things a frequency."""

    def parsed(text: str) -> dict[Any, float]:
        numbers = [float(word) for word in text.split(",")]
        if len(numbers) != len(of) or min(numbers) < 0 or not sum(numbers):
            message = f"needs {len(of)} numbers, as many as {', '.join(of)}, not {text!r}"
            raise argparse.ArgumentTypeError(message)
        return dict(zip(of, numbers, strict=True))

    return parsed


def minutes(text: str) -> float:
    """A number of minutes, in seconds; infinitely many for `none`."""
    return FOREVER_S if text == "none" else 60.0 * positive(text)
