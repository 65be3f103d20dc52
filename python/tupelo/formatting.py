"""Figures for people: bars, counts and durations as text."""

from __future__ import annotations

__all__ = ["bar", "count", "duration"]

BAR_WIDTH = 32


def bar(done: int, total: int) -> str:
    """A bar that is full when everything is done."""
    full = BAR_WIDTH * min(done, total) // max(total, 1)
    return "█" * full + "░" * (BAR_WIDTH - full)


def count(number: int) -> str:
    """A number that can be read: `1 000 000`."""
    return f"{number:,}".replace(",", " ")


def duration(seconds: float) -> str:
    """A duration with its unit, three digits: `2.31 s`, `417 µs`."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        scaled = seconds * factor
        if scaled >= 1:
            digits = 2 if scaled < 10 else 1 if scaled < 100 else 0  # noqa: PLR2004
            return f"{scaled:.{digits}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"
