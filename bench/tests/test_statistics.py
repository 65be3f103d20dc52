"""The statistics of the suite, against published tables and hand-made cases."""

import math
import random

import pytest

from tupelo_bench.harness.statistics import (
    can_tell_pairs,
    holm,
    mann_whitney_p,
    quantile,
    share_below,
    sign_test_p,
    student_t,
    summary,
)


@pytest.mark.parametrize(
    ("freedom", "printed"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (9, 2.262), (10, 2.228), (29, 2.045)],
)
def test_student_t_is_that_of_the_printed_table(freedom, printed):
    assert round(student_t(0.95, freedom), 3) == printed


@pytest.mark.parametrize(
    ("n", "m", "u", "significant"),
    # Critical values of U at 0.05, two-sided, as printed in textbooks.
    [
        (5, 5, 2, True),
        (5, 5, 3, False),
        (8, 10, 17, True),
        (8, 10, 18, False),
        (10, 10, 23, True),
        (10, 10, 24, False),
    ],
)
def test_mann_whitney_is_significant_from_the_printed_critical_value_on(n, m, u, significant):
    first = with_u(n, m, u)
    second = [float(x) for x in range(m)]
    assert (mann_whitney_p(first, second) <= 0.05) is significant


def with_u(n, m, u):
    """n samples that together beat u of the m samples 0, 1, 2, …, without ties."""
    beaten = []
    for left in range(n, 0, -1):
        beats = min(m, math.ceil(u / left)) if u else 0
        beaten.append(beats)
        u -= beats
    assert u == 0
    return [beats - 0.5 + place / 100 for place, beats in enumerate(sorted(beaten))]


def test_mann_whitney_with_ties_is_the_corrected_normal_approximation():
    # scipy.stats.mannwhitneyu(..., method="asymptotic") gives the same digits.
    first = [1, 2, 2, 3, 3, 3, 4, 5]
    second = [2, 3, 4, 4, 5, 5, 6, 6]
    assert mann_whitney_p(first, second) == pytest.approx(0.05445716, abs=1e-6)


@pytest.mark.parametrize(
    ("above", "below", "p"),
    # As in printed tables of the test: 2 (C(n, 0) + … + C(n, the rarer)) / 2^n.
    [
        (20, 0, 1.9073486e-06),
        (0, 20, 1.9073486e-06),
        (15, 5, 0.04138947),
        (14, 6, 0.11531830),
        (9, 1, 0.02148438),
        (8, 2, 0.10937500),
        (6, 0, 0.03125),
        (5, 0, 0.0625),
        (10, 10, 1.0),
        (0, 0, 1.0),
    ],
)
def test_the_sign_test_is_the_binomial_distribution_of_a_coin(above, below, p):
    pairs = [(1.0, 0.0)] * above + [(0.0, 1.0)] * below + [(7.0, 7.0)] * 3  # which tell nothing
    first, second = zip(*pairs, strict=True)
    assert sign_test_p(first, second) == pytest.approx(p, rel=1e-6)
    assert can_tell_pairs(above + below) is (2 ** (1 - above - below) < 0.05)


def test_a_difference_within_every_pair_is_found_however_far_apart_the_pairs_are():
    first = [float(x) for x in range(20)]
    second = [x + 0.01 for x in first]
    assert mann_whitney_p(first, second) > 0.5
    assert sign_test_p(first, second) < 1e-5


def test_samples_that_are_all_equal_do_not_differ():
    assert mann_whitney_p([7.0] * 10, [7.0] * 10) == 1


def test_two_samples_of_one_distribution_differ_in_one_case_of_twenty():
    choice = random.Random(2)
    cases = 2_000
    wrong = sum(
        mann_whitney_p([choice.random() for _ in range(8)], [choice.random() for _ in range(8)])
        < 0.05
        for _ in range(cases)
    )
    assert 0.02 < wrong / cases < 0.06  # the exact test is on the safe side


def test_the_summary_has_the_figures_of_the_samples():
    figures = summary([4.0, 2.0, 3.0, 1.0])
    assert (figures.count, figures.mean, figures.median) == (4, 2.5, 2.5)
    assert figures.sd == pytest.approx(1.2909944)
    assert figures.ci95 == pytest.approx(3.182446 * 1.2909944 / 2)
    assert (figures.least, figures.greatest) == (1.0, 4.0)


def test_a_single_sample_has_no_deviation():
    figures = summary([3.0])
    assert (figures.sd, figures.ci95, figures.p99) == (None, None, 3.0)


def test_no_samples_are_refused():
    with pytest.raises(ValueError, match="measure something first"):
        summary([])


def test_a_quantile_lies_between_its_neighbours():
    assert quantile([0.0, 10.0], 0.25) == 2.5
    assert quantile([1.0], 0.99) == 1.0


def test_holms_correction_is_that_of_the_textbook():
    # Holm 1979, with the example of R's p.adjust: sorted times what is left, never falling.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_effect_size_is_the_share_of_pairs_that_are_below():
    assert share_below([1, 2], [3, 4]) == 1.0
    assert share_below([1, 2, 3], [1, 2, 3]) == 0.5
    assert share_below([1, 4], [2, 3]) == 0.5
    assert share_below([3], [1, 2, 3, 4]) == pytest.approx(0.375)
