"""The interval of a median: what it is by theory, and how often it holds the true one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from py_backends.results.report import Estimate
from py_backends.results.statistics import duration, holm, median

ORDER_STATISTICS = {6: (1, 6), 7: (1, 7), 8: (1, 8), 9: (2, 8), 10: (2, 9), 15: (4, 12), 20: (6, 15), 30: (10, 21)}
"""Samples, and which of them in ascending order bound the median at 95% by the sign test (tables of Conover)."""


@pytest.mark.parametrize("count", ORDER_STATISTICS)
def test_bounds_are_the_order_statistics_of_the_sign_test(count: int) -> None:
    low, high = ORDER_STATISTICS[count]
    assert probability_below(low - 1, count) <= 0.025 < probability_below(low, count), "the table is right"
    samples = [float(rank) ** 2 for rank in range(1, count + 1)]
    found = median(np.random.default_rng(count).permutation(samples).tolist())
    assert (found.low, found.high) == (low**2, high**2)
    assert found.value == np.median(samples)


def probability_below(most: int, count: int) -> float:
    """That at most `most` of `count` fair coins show heads."""
    return sum(math.comb(count, heads) for heads in range(most + 1)) / 2**count


@pytest.mark.parametrize("count", [1, 2, 5])
def test_too_few_samples_have_no_interval(count: int) -> None:
    found = median([3.0] * count)
    assert (found.value, found.low, found.high) == (3.0, None, None)


@pytest.mark.parametrize("count", [6, *(pytest.param(each, marks=pytest.mark.slow) for each in (15, 30))])
def test_the_interval_holds_the_true_median_as_often_as_it_promises(count: int) -> None:
    """Of times that are skewed, as those of a computer are; the figure has to be that of theory, not only above 95%."""
    draws, generator = 1500, np.random.default_rng(20)
    low_rank, _ = ORDER_STATISTICS[count]
    promised = 1 - 2 * probability_below(low_rank - 1, count)
    held = 0
    for samples in generator.lognormal(size=(draws, count)):  # whose median is 1
        found = median(samples.tolist())
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 1 <= found.high
    three_deviations = 3 * math.sqrt(promised * (1 - promised) / draws)
    assert promised >= 0.95
    assert held / draws == pytest.approx(promised, abs=three_deviations)


def test_samples_that_are_all_alike() -> None:
    found = median([2.0] * 12)
    assert (found.value, found.low, found.high) == (2.0, 2.0, 2.0)


def test_a_duration_says_how_many_samples_and_the_least_of_them() -> None:
    samples = [5.0, 1.0, 4.0, 2.0, 3.0, 9.0]
    found = duration(samples)
    assert (found.median, found.low, found.high, found.minimum, found.samples) == (3.5, 1.0, 9.0, 1.0, 6)
    assert samples == [5.0, 1.0, 4.0, 2.0, 3.0, 9.0], "they belong to rounds and keep their order"
    few = duration(samples[:5])
    assert (few.median, few.low, few.high, few.samples) == (3.0, None, None, 5)


class TestHolm:
    @pytest.mark.parametrize(
        ("given", "adjusted"),
        [
            ([], []),
            ([0.03], [0.03]),
            ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # a larger one is never less than a smaller one
            ([0.02, 0.01], [0.02, 0.02]),
            ([0.5, 0.6, 0.9], [1.0, 1.0, 1.0]),
            ([0.0, 0.02, 0.02], [0.0, 0.04, 0.04]),  # equal ones stay equal
        ],
    )
    def test_by_hand(self, given: list[float], adjusted: list[float]) -> None:
        assert holm(given) == pytest.approx(adjusted)

    def test_rarely_finds_what_is_not_there_where_each_alone_often_would(self) -> None:
        """A family of 12 findings by chance has a false one in at most 5% of the draws; uncorrected, in 46%."""
        draws, family = 2000, 12
        p_values = np.random.default_rng(21).uniform(size=(draws, family))
        promised = 1 - (1 - 0.05 / family) ** family  # of independent ones: the smallest decides
        found = np.mean([min(holm(row.tolist())) < 0.05 for row in p_values])
        assert promised <= 0.05
        assert found == pytest.approx(promised, abs=3 * math.sqrt(promised * (1 - promised) / draws))


def test_what_is_left_of_an_estimate_is_as_uncertain_as_both() -> None:
    """Each was measured by itself: their errors add as the sides of a right angle."""
    left = Estimate(0.7, 0.4, 1.1).less(Estimate(0.2, 0.17, 0.6))
    assert (left.value, left.low, left.high) == (pytest.approx(0.5), 0.0, pytest.approx(0.5 + math.hypot(0.4, 0.03)))
    sure = Estimate(0.7, 0.4, 1.1).less(Estimate.exactly(0.2))
    assert (sure.value, sure.low, sure.high) == tuple(map(pytest.approx, (0.5, 0.2, 0.9)))
    nothing = Estimate(0.2, 0.1, 0.3).less(Estimate(0.7, 0.7, 0.7))
    assert (nothing.value, nothing.low, nothing.high) == (0.0, 0.0, pytest.approx(0.1))


def test_estimates_are_scaled_added_and_drawn_towards_one_another_with_their_intervals() -> None:
    one, two = Estimate(2.0, 1.0, 4.0), Estimate(6.0, 3.0, 20.0)
    assert one.times(3) == Estimate(6.0, 3.0, 12.0)
    assert one.plus(two) == Estimate(8.0, 4.0, 24.0)
    assert (one.towards(two, 0), one.towards(two, 0.25), one.towards(two, 1)) == (one, Estimate(3.0, 1.5, 8.0), two)
    assert Estimate.exactly(5.0) == Estimate(5.0, 5.0, 5.0)
