"""How far a ratio of quantiles may be off: the bootstrap over repeats.

Calls of a repeat are alike: they share two processes, and seconds in which the machine is as it is.
So repeats are drawn, with replacement, and of each draw the quantile is that of all of its calls.
The interval has the middle 95 % of the ratios (Efron's percentile interval). It comes from a fixed
seed, so a record has the same interval whenever it is read.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

from tupelo_bench.harness.statistics import CONFIDENCE, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tupelo_bench.harness.histogram import Histogram

DRAWS = 1_000
SEED = 1


def quantile_ratio(
    ours: Sequence[Histogram], theirs: Sequence[Histogram], share: float
) -> tuple[float, float]:
    """The interval of the ratio of our quantile to theirs; a histogram per repeat, none empty."""
    lot = random.Random(SEED)
    one, other = _Repeats(ours), _Repeats(theirs)
    ratios = sorted(one.drawn(lot, share) / other.drawn(lot, share) for _ in range(DRAWS))
    outside = (1 - CONFIDENCE) / 2
    return quantile(ratios, outside), quantile(ratios, 1 - outside)


class _Repeats:
    """The counts of several repeats, the highest value first."""

    def __init__(self, histograms: Sequence[Histogram]) -> None:
        self._totals = [histogram.total for histogram in histograms]
        counted = [histogram.counted() for histogram in histograms]
        values = sorted({value for each in counted for value in each}, reverse=True)
        self._rows = [(value, [each.get(value, 0) for each in counted]) for value in values]

    def drawn(self, lot: random.Random, share: float) -> int:
        """The quantile of as many repeats, drawn by lot, that of the histogram of them all."""
        count = len(self._totals)
        times = Counter(lot.choices(range(count), k=count))
        total = sum(self._totals[place] * often for place, often in times.items())
        beyond = total - max(1, round(share * total))
        seen = 0
        for value, counts in self._rows:
            seen += sum(counts[place] * often for place, often in times.items())
            if seen > beyond:
                return value
        message = "a repeat without a call has no quantile"
        raise ValueError(message)
