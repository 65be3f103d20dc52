"""Quantities as people read them: three digits and a unit that fits."""

from __future__ import annotations

SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BYTES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
THOUSANDS = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def quantity(value: float, unit: str, *, short: bool = False) -> str:
    """`quantity(2.5e-6, "s")` is "2.50 µs"; `short`, for an axis, leaves out zeros at the end."""
    step, suffix = scale(value, unit)
    number = f"{value / step:.3g}" if short else digits(value / step)
    return f"{number}{suffix}"


def between(value: float, least: float, greatest: float, unit: str) -> str:
    """A quantity and from where to where it goes, all in its unit: "2.50 µs (2.10 - 9.80)".

    The quantity alone where it goes nowhere.
    """
    step, suffix = scale(value, unit)
    ends = [digits(end / step) for end in (least, greatest)]
    return (
        digits(value / step) + suffix + (f" ({ends[0]} - {ends[1]})" if len(set(ends)) > 1 else "")
    )


def scale(value: float, unit: str) -> tuple[float, str]:
    """By what to divide a value, and what to write behind it."""
    steps = SECONDS if unit == "s" else BYTES if unit == "bytes" else THOUSANDS
    step, prefix = next((pair for pair in steps if abs(value) >= pair[0]), steps[-1])
    return step, f"{prefix} {unit}".rstrip() if steps is THOUSANDS else f" {prefix}"


def whole(number: float) -> str:
    """A whole number, its digits in groups of three: "10 000"."""
    return f"{number:,.0f}".replace(",", " ")


def digits(value: float) -> str:
    """Three digits that count; of what is below a tenth, two."""
    size = abs(value)
    if size >= 100:  # noqa: PLR2004
        return f"{value:.0f}"
    if size >= 10:  # noqa: PLR2004
        return f"{value:.1f}"
    if 0 < size < 0.1:  # noqa: PLR2004
        return f"{value:.2g}"
    return f"{value:.2f}"
