"""Statistics on raw samples, without a library: the figures, and whether two results differ.

* The confidence interval is Student's, of the mean.
* Two sets of pairs, as where both had the same seeds, are compared by the sign test, two-sided and
  exact. It asks only how often the one is above the other.
* Two sets of samples are compared by the Mann-Whitney U test, two-sided. It asks nothing of the
  distribution: times are not normal, but skewed to the right. It is exact for small sets without
  ties, by counting rank sums. Else it is the normal approximation, corrected for ties and
  continuity. The tests of this file compare both with published tables.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SIGNIFICANCE = 0.05
EXACT_UP_TO = 20  # samples in the larger set: beyond it the normal approximation is as good
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Summary:
    """The figures of one set of samples, in the unit of the samples."""

    count: int
    mean: float
    sd: float | None
    """None for a single sample."""
    median: float
    p99: float
    least: float
    greatest: float
    ci95: float | None
    """Half the width of the 95 % confidence interval of the mean; None for a single sample."""


def summary(samples: Sequence[float]) -> Summary:
    """The figures of at least one sample."""
    if not samples:
        message = "there are no samples: measure something first"
        raise ValueError(message)
    ordered = sorted(samples)
    count = len(ordered)
    mean = math.fsum(ordered) / count
    sd = ci95 = None
    if count > 1:
        sd = math.sqrt(math.fsum((x - mean) ** 2 for x in ordered) / (count - 1))
        ci95 = student_t(CONFIDENCE, count - 1) * sd / math.sqrt(count)
    return Summary(
        count,
        mean,
        sd,
        quantile(ordered, 0.5),
        quantile(ordered, 0.99),
        ordered[0],
        ordered[-1],
        ci95,
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which that share of the ordered samples lies, interpolated linearly."""
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


# --- do two sets of samples differ? ---


def differ(first: Sequence[float], second: Sequence[float]) -> bool | None:
    """Whether two sets differ significantly; None if they are too small to tell."""
    if not can_tell(len(first), len(second)):
        return None
    return mann_whitney_p(first, second) < SIGNIFICANCE


def holm(ps: Sequence[float]) -> list[float]:
    """The probabilities of a family of tests, corrected for their number (Holm 1979).

    Below `SIGNIFICANCE` by these, the chance of even one false difference in the family is no more.
    """
    found = [0.0] * len(ps)
    so_far = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda place: ps[place])):
        so_far = max(so_far, min(1.0, (len(ps) - rank) * ps[place]))
        found[place] = so_far
    return found


def share_below(first: Sequence[float], second: Sequence[float]) -> float:
    """How often a value of the first set is below one of the second; ties count as half.

    The effect size A of Vargha and Delaney: 0.5 where the sets are alike, 1 where all are below.
    """
    below = sum((one < other) + (one == other) / 2 for one in first for other in second)
    return below / (len(first) * len(second))


def is_mostly_below(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether a value of the first set is more often below one of the second than above it.

    This is what Mann-Whitney tells. The means may say the reverse, where one value is far out.
    """
    return sum((one < other) - (one > other) for one in first for other in second) > 0


def can_tell(n: int, m: int) -> bool:
    """Whether so many samples could differ significantly: if all of one are below all of the other.

    Three and three can not, four and four can.
    """
    return 2 / math.comb(n + m, n) < SIGNIFICANCE


def mann_whitney_p(first: Sequence[float], second: Sequence[float]) -> float:
    """The probability of a difference at least as large if both came from one distribution."""
    n, m = len(first), len(second)
    if not n or not m:
        message = "both sets need samples"
        raise ValueError(message)
    ties = Counter([*first, *second])
    ranks: dict[float, float] = {}
    before = 0
    for value in sorted(ties):
        ranks[value] = before + (ties[value] + 1) / 2
        before += ties[value]
    u = sum(ranks[value] for value in first) - n * (n + 1) / 2
    u = min(u, n * m - u)
    if before == len(ties) and max(n, m) <= EXACT_UP_TO:
        ways = _ways(n, m)
        return min(1.0, 2 * sum(ways[: int(u) + 1]) / math.comb(n + m, n))
    total = n + m
    correction = sum(t**3 - t for t in ties.values()) / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - correction)
    if variance == 0:
        return 1.0
    z = max(0.0, n * m / 2 - u - 0.5) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def sign_test_p(first: Sequence[float], second: Sequence[float]) -> float:
    """The probability of so uneven a division of pairs if neither of both were mostly above.

    Pairs that are equal tell nothing, and are left out.
    """
    pairs = list(zip(first, second, strict=True))
    above = sum(one > other for one, other in pairs)
    below = sum(one < other for one, other in pairs)
    count = above + below
    rarer = sum(math.comb(count, k) for k in range(min(above, below) + 1))
    return min(1.0, 2 * rarer * 0.5**count)


def can_tell_pairs(count: int) -> bool:
    """Whether so many pairs could differ significantly: if all are on one side. Six can."""
    return 2 * 0.5**count < SIGNIFICANCE


@cache
def _ways(n: int, m: int) -> tuple[int, ...]:
    """How many arrangements of n and m samples have U = 0, 1, 2, and so on."""
    if n == 0 or m == 0:
        return (1,)
    # The largest sample is of the first set, and beats all m of the second, or it is of the second.
    with_first, with_second = _ways(n - 1, m), _ways(n, m - 1)
    ways = [0] * (n * m + 1)
    for u, count in enumerate(with_first):
        ways[u + m] += count
    for u, count in enumerate(with_second):
        ways[u] += count
    return tuple(ways)


# --- Student's t ---


@cache
def student_t(confidence: float, freedom: int) -> float:
    """The t below which |t| stays with that probability, at so many degrees of freedom."""
    low, high = 0.0, 1e3
    for _ in range(100):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return high


def _within(t: float, freedom: int) -> float:
    """The probability of |T| <= t: a finite series in the angle (Abramowitz and Stegun 26.7)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = freedom % 2 == 1
    term = cosine if odd else 1.0
    series = 0.0 if freedom == 1 else term
    for k in range(2, freedom - 1, 2):
        term *= cosine * cosine * (k / (k + 1) if odd else (k - 1) / k)
        series += term
    return 2 / math.pi * (angle + sine * series) if odd else sine * series
