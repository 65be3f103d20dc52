"""Histograms: the text is that of the HdrHistogram libraries."""

import random

from tupelo_bench.harness.histogram import Histogram


def test_the_text_is_that_of_the_libraries():
    histogram = Histogram()
    histogram.record([1, 1_000, 5_000, 1_000_000])
    # As HdrHistogram(1, 3600 * 10**9, 3).encode() of the Python port makes it, byte by byte.
    assert histogram.encoded() == (
        "HISTFAAAACt4nJNpmSzMwMDAzQABzFCaEch0M9ixgMH+A1SA6TQ/00dlpt9VTACRYgfC"
    )


def test_a_quantile_is_right_to_three_digits():
    choice = random.Random(3)
    values = sorted(int(choice.lognormvariate(12, 2)) for _ in range(10_001))
    histogram = Histogram()
    histogram.record(values)
    for share in (0.5, 0.9, 0.99, 0.999, 1.0):
        exact = values[max(1, round(share * len(values))) - 1]
        assert exact <= histogram.quantile(share) <= exact * 1.001


def test_small_values_are_exact():
    histogram = Histogram()
    histogram.record(range(2_048))
    assert histogram.quantile(0.5) == 1_023
    assert histogram.total == 2_048


def test_an_empty_histogram_has_a_text_too():
    assert Histogram().total == 0
    assert Histogram().encoded().startswith("HISTF")
