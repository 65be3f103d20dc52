"""Quantiles of all calls of a cell: from the merged histogram of its repeats.

The mean of the quantiles of the repeats is another number. Where one repeat of ten stood still, it
is a tenth of what that one had, and no share of all calls was as fast as that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tupelo_bench.harness.histogram import Histogram
from tupelo_bench.harness.parameters import told

if TYPE_CHECKING:
    from tupelo_bench.harness.record import Run

QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
NS_PER_S = 1e9


def pool(run: Run) -> None:
    """Give each quantile the value of all calls, where the record has the histogram of them."""
    shares = dict(QUANTILES)
    histograms = {
        (measure.experiment, measure.backend, told(measure.parameters), measure.metric): text
        for measure in run.measures
        if (text := measure.histogram) is not None
    }
    decoded: dict[str, Histogram] = {}
    for place, measure in enumerate(run.measures):
        of, _, name = measure.metric.rpartition(" ")
        cell = (measure.experiment, measure.backend, told(measure.parameters), of)
        text = histograms.get(cell)
        if name in shares and text is not None:
            histogram = decoded.setdefault(text, Histogram.decoded(text))
            pooled = histogram.quantile(shares[name]) / NS_PER_S
            run.measures[place] = replace(measure, pooled=pooled)
