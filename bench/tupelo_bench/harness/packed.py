"""Samples as whole numbers times a power of ten: half as many letters in a record, and the same.

`[1.014e-07, 9.99e-08]` is `[1014, 999]` times 10^-10. Read back it is the same to the last bit,
since both are the float that is nearest to that decimal number.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

DIGITS = 4  # repeats differ in the second or third
EXPONENT_MAX = 400  # of ten, up or down: beyond it there is no float


def rounded(sample: float) -> float:
    """A sample as it stands in a record."""
    return float(_decimal(sample))


def packed(samples: Sequence[float]) -> tuple[list[int], int]:
    """The samples, rounded, as whole numbers, and the power of ten that makes them that."""
    decimals = [_decimal(sample).normalize() for sample in samples]
    # A zero has any power, and asks for none.
    powers = [int(decimal.as_tuple().exponent) for decimal in decimals if decimal]
    exponent = min(powers, default=0)
    return [int(decimal.scaleb(-exponent)) for decimal in decimals], exponent


def unpacked(numbers: Sequence[float], exponent: int) -> list[float]:
    """What was packed.

    Raises:
        ValueError: these are no numbers, or no such power.
    """
    if type(exponent) is not int or abs(exponent) > EXPONENT_MAX:
        message = f"the power {exponent!r} is no whole number up to {EXPONENT_MAX}"
        raise ValueError(message)
    if exponent == 0:  # as in an older record, whose numbers may have one of their own
        return [float(number) for number in numbers]
    return [float(f"{number}e{exponent}") for number in numbers]


def _decimal(sample: float) -> Decimal:
    return Decimal(f"{sample:.{DIGITS - 1}e}")
