from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kullback.estimation.interval import (
    FEWEST_EFFECTIVE,
    Interval,
    ratio_error,
    ratio_interval,
    skewed_reach,
    widened_interval,
)

PROPERTY = settings(derandomize=True, deadline=None)


def test_the_error_is_that_of_leaving_one_cluster_out() -> None:
    rng = np.random.default_rng(1)
    below = rng.geometric(0.05, size=200).astype(np.float64)
    above = below * rng.gamma(1.0, 0.02, size=200)
    left = (above.sum() - above) / (below.sum() - below)
    jackknife = np.sqrt(199 / 200 * ((left - left.mean()) ** 2).sum())
    found = ratio_interval(above, below, effective=200, confidence=0.95)
    assert found.mean == pytest.approx(above.sum() / below.sum(), rel=1e-14)
    assert found.standard_error == pytest.approx(jackknife, rel=0.05)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_clusters_of_one_size_have_the_classic_t_interval(confidence: float) -> None:
    means = np.random.default_rng(2).normal(0.01, 0.1, size=12)
    found = ratio_interval(7 * means, np.full(12, 7.0), effective=12, confidence=confidence)
    error = stats.sem(means)
    low, high = stats.t.interval(confidence, 11, loc=means.mean(), scale=error)
    assert found == pytest.approx((means.mean(), low, high, error), rel=1e-12)


def test_the_effective_number_of_clusters_widens_the_interval_alone() -> None:
    above, below = np.array([1.0, 2.0, 4.0, 3.0]), np.ones(4)
    all_four = ratio_interval(above, below, effective=4, confidence=0.95)
    half = ratio_interval(above, below, effective=2, confidence=0.95)
    assert (half.mean, half.standard_error) == (all_four.mean, all_four.standard_error)
    assert half.high - half.mean == pytest.approx(stats.t.ppf(0.975, 1) * half.standard_error)


@PROPERTY
@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9)), min_size=2, max_size=9),
    st.floats(0.01, 0.999),
)
def test_the_mean_is_inside(clusters: list[tuple[float, float]], confidence: float) -> None:
    above, below = np.array(clusters).T
    effective = below.sum() ** 2 / (below**2).sum()
    found = ratio_interval(above, below, effective=effective, confidence=confidence)
    assert effective < FEWEST_EFFECTIVE or found.low <= found.mean <= found.high


def identical(found: Interval, *expected: float) -> bool:
    return np.array_equal(found, expected, equal_nan=True)


def test_no_error_can_be_told_from_one_cluster() -> None:
    nan, one = float("nan"), np.array([2.0])
    for effective in (1.0, 9.0):
        found = ratio_interval(one, 2 * one, effective=effective, confidence=0.9)
        assert identical(found, 0.5, nan, nan, nan)
    two = np.array([1.0, 3.0])
    assert identical(ratio_interval(two, two, effective=1.0, confidence=0.9), 1, nan, nan, nan)


def test_nothing_has_no_mean() -> None:
    for nothing in (np.zeros(0), np.zeros(3)):
        found = ratio_interval(nothing, nothing, effective=0, confidence=0.9)
        assert np.isnan(found).all()


def test_the_interval_covers_as_often_as_it_says() -> None:
    """64 prompts with an effect of their own, of random size; 2000 seeds."""
    rng, truth, seeds = np.random.default_rng(3), 0.01, 2000
    below = rng.geometric(1 / 40, size=(seeds, 64)).astype(np.float64)
    above = below * rng.normal(truth, 0.02, size=(seeds, 64))
    above += np.sqrt(below) * rng.normal(0, 0.1, size=(seeds, 64))
    kish = below.sum(axis=1) ** 2 / (below**2).sum(axis=1)
    found = np.array(
        [
            ratio_interval(a, b, effective=e, confidence=0.95)
            for a, b, e in zip(above, below, kish, strict=True)
        ]
    )
    covered = ((found[:, 1] <= truth) & (truth <= found[:, 2])).mean()
    assert abs(covered - 0.945) < 5 * np.sqrt(0.945 * 0.055 / seeds)
    # And the standard error is the spread of the means.
    assert np.sqrt((found[:, 3] ** 2).mean()) == pytest.approx(found[:, 0].std(), rel=0.1)


def test_a_count_of_one_reaches_as_far_as_an_exact_interval_of_a_count() -> None:
    """Garwood's 97.5 % end for one event in many is 5.57; Hall's transformation is wider."""
    once = np.zeros(5000)
    once[0] = 5000.0  # its mean is 1 and its error 1
    reach = skewed_reach(once, np.ones(5000), 1.96, upward=True) * ratio_error(once, np.ones(5000))
    assert stats.chi2.ppf(0.975, 4) / 2 < 1 + reach < 8


def test_skewness_moves_a_far_tail_out_and_never_in() -> None:
    values = np.random.default_rng(5).lognormal(0, 1.2, size=60)
    ones = np.ones(60)
    for t in (0.7, 1.7, 2.0, 3.3):
        assert skewed_reach(values, ones, t, upward=True) > t
        assert skewed_reach(values, ones, t, upward=False) == t
        assert skewed_reach(-values, ones, t, upward=False) == pytest.approx(
            skewed_reach(values, ones, t, upward=True)
        )
    assert skewed_reach(ones, ones, 2.0, upward=True) == 2.0
    symmetric = np.array([-1e200, 1e200] * 4)
    assert skewed_reach(symmetric, np.ones(8), 2.0, upward=True) == 2.0


@pytest.mark.parametrize("clusters", [64, 256])
def test_skewed_means_are_held_more_often(clusters: int) -> None:
    """The upper end at 97.5 % of a log-normal's mean, over 4000 samples of a seed."""
    rng = np.random.default_rng(clusters)
    missed = {"student": 0, "skewed": 0}
    t = float(stats.t.ppf(0.975, clusters - 1))
    for _ in range(4000):
        values, ones = rng.lognormal(0, 1.0, size=clusters), np.ones(clusters)
        error = ratio_error(values, ones)
        reach = skewed_reach(values, ones, t, upward=True)
        missed["student"] += values.mean() + t * error < np.exp(0.5)
        missed["skewed"] += values.mean() + reach * error < np.exp(0.5)
    assert missed["skewed"] < 0.7 * missed["student"]
    assert missed["skewed"] < 4000 * 0.05


def test_a_widened_interval_is_students_where_nothing_is_skewed() -> None:
    how = {"effective": 40.0, "confidence": 0.9}
    symmetric = np.concatenate([1 + np.arange(20) / 20, 1 - np.arange(20) / 20])
    student, widened = (
        form(symmetric, np.ones(40), **how) for form in (ratio_interval, widened_interval)
    )
    assert widened == pytest.approx(student, rel=1e-9)
    skewed = np.random.default_rng(7).lognormal(0, 1, size=40)
    student, widened = (
        form(skewed, np.ones(40), **how) for form in (ratio_interval, widened_interval)
    )
    assert (widened.low, widened.mean) == (student.low, student.mean)
    assert widened.high > student.high
    assert identical(widened_interval(skewed[:1], np.ones(1), **how), skewed[0], *[np.nan] * 3)
