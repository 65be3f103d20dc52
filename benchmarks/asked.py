"""What is asked of a ratio, and whether it is reached: the end of a row of a benchmark."""

from __future__ import annotations


def at_most(ratio: float, most: float, unit: str = "x") -> str:
    """Say that `ratio` is to be no more than `most`, and whether it is."""
    return _asked(f"at most {most:g} {unit}", is_reached=ratio <= most)


def at_least(ratio: float, least: float, unit: str = "x") -> str:
    """Say that `ratio` is to be no less than `least`, and whether it is."""
    return _asked(f"at least {least:g} {unit}", is_reached=ratio >= least)


def _asked(what: str, *, is_reached: bool) -> str:
    return f"  (asked: {what}; {'reached' if is_reached else 'MISSED'})"
