"""Whole-number noise has the distribution it is named after, exactly and by statistics."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ive

from tacit.errors import TacitError
from tacit.protect.integer_noise import discrete_gaussian, skellam


def chances(table):
    """The probability of every value, from the thresholds alone."""
    edges = [0, *map(int, table.thresholds), 2**64]
    return np.array([high - low for low, high in pairwise(edges)], dtype=float) / 2.0**64


@pytest.mark.parametrize("variance", [0.3, 4.0, 250.0, 66_000.0])
def test_skellam_tables_hold_the_published_probabilities(variance):
    table = skellam(variance)
    found, values = chances(table), np.arange(len(table.thresholds) + 1) + table.low
    expected = ive(np.abs(values), variance)  # exp(-v) I_k(v): two Poisson numbers of mean v/2
    likely = expected > 2.0**-40
    np.testing.assert_allclose(found[likely], expected[likely], rtol=1e-4)
    np.testing.assert_allclose(found, expected, atol=2.0**-50)
    assert found @ values == pytest.approx(0, abs=1e-6)
    assert found @ values**2 == pytest.approx(variance, rel=1e-9)


def by_integral(values, variance):
    """exp(-v) I_k(v) as the mean of exp(v (cos t - 1)) cos(k t) over a period; the sum converges at once."""
    angles = np.linspace(0, 14 / math.sqrt(variance), 20_001)
    heights = np.exp(-2 * variance * np.sin(angles / 2) ** 2)
    heights[0] /= 2
    return np.array([heights @ np.cos(k * angles) for k in values]) * angles[1] / np.pi


@pytest.mark.parametrize("variance", [2.0**27, 2.0**28 - 1, 2.0**28, 2.0**30, 5.0e10])
def test_skellam_tables_of_a_large_variance_hold_the_integral_that_defines_them(variance):
    table = skellam(variance)
    spread = math.sqrt(variance)
    values = np.array([0, 1, 50, *(int(turn * spread) for turn in (0.5, 1, 2, 3, 4))])
    edges = [int(table.thresholds[value - table.low - 1 + side]) for value in values for side in (0, 1)]
    found = np.diff(np.array(edges, dtype=object).reshape(-1, 2)).astype(float).ravel() / 2.0**64
    np.testing.assert_allclose(found, by_integral(values, variance), rtol=1e-7)


@pytest.mark.parametrize("variance", [0.5, 9.0, 10_000.0])
def test_discrete_gaussian_tables_are_proportional_to_the_density(variance):
    table = discrete_gaussian(variance)
    found, values = chances(table), np.arange(len(table.thresholds) + 1) + table.low
    middle = np.flatnonzero(found > 2.0**-30)
    ratios = np.log(found[middle]) - np.log(found[-table.low])
    np.testing.assert_allclose(ratios, -(values[middle] ** 2) / (2 * variance), atol=1e-6)


@given(st.sampled_from([0.5, 30.0, 5000.0]))
def test_tables_are_symmetric_and_rise(variance):
    for table in (skellam(variance), discrete_gaussian(variance)):
        thresholds = [int(t) for t in table.thresholds]
        assert thresholds == sorted(thresholds)
        assert all(low + high == 2**64 for low, high in zip(thresholds, reversed(thresholds), strict=True))


def test_draws_follow_the_skellam_law():
    """Chi-squared over the likely values; fails once in a million runs of another seed."""
    words = np.random.default_rng(3).integers(0, 2**64, (1, 200_000), dtype=np.uint64)
    drawn = skellam(6.0).drawn(words)[0]
    values = np.arange(-7, 8)
    seen = np.array([(drawn == value).sum() for value in values])
    expected = stats.skellam.pmf(values, 3.0, 3.0) * len(drawn)
    assert ((seen - expected) ** 2 / expected).sum() < stats.chi2.isf(1e-6, len(values))


def test_the_sum_of_shares_is_skellam_of_the_summed_variance():
    words = np.random.default_rng(5).integers(0, 2**64, (25, 40_000), dtype=np.uint64)
    summed = skellam(2.0).drawn(words).sum(axis=0)
    values = np.arange(-18, 19)
    seen = np.array([(summed == value).sum() for value in values])
    expected = stats.skellam.pmf(values, 25.0, 25.0) * len(summed)
    assert ((seen - expected) ** 2 / expected).sum() < stats.chi2.isf(1e-6, len(values))


@pytest.mark.parametrize("variance", [0.0, 1e12, float("nan")])
def test_impossible_variances_are_refused(variance):
    with pytest.raises(TacitError, match="variance"):
        skellam(variance)
