"""Bootstrap intervals over people: coverage, weights, and the root of a mean of squares."""

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.evaluate.intervals import bootstrap, linearised
from tacit.rng import SeededKeys


def test_the_interval_is_that_of_the_central_limit_for_many_people():
    values = np.random.default_rng(0).normal(3.0, 2.0, 4000)
    found = bootstrap(values, keys=SeededKeys(1))
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_about_95_of_100_intervals_hold_the_truth():
    draw = np.random.default_rng(2)
    inside = 0
    for number in range(200):
        found = bootstrap(draw.binomial(1, 0.3, 150).astype(float), keys=SeededKeys(number))
        inside += found.low <= 0.3 <= found.high
    assert 178 <= inside <= 200  # a binomial of 200 at .95 falls below 178 once in ten thousand


def test_weights_make_it_a_mean_over_ratings():
    found = bootstrap(np.array([1.0, 0.0]), weights=np.array([3.0, 1.0]), keys=SeededKeys(0))
    assert found.value == 0.75
    squares = bootstrap(np.array([3.0, 4.0]), squared=True, keys=SeededKeys(0))
    assert squares.value == pytest.approx(np.sqrt(12.5))
    assert (squares.low, squares.high) == pytest.approx((3.0, 4.0))


def test_nobody_has_no_interval():
    with pytest.raises(TacitError, match="over nobody"):
        bootstrap(np.zeros(0), keys=SeededKeys(0))


def pooled(values, weights, power):
    return (weights * values**power).sum() / weights.sum()


@pytest.mark.parametrize("squared", [False, True])
def test_linearised_values_have_the_mean_and_the_spread_of_the_metric(squared):
    draw = np.random.default_rng(5)
    people, weights = 4000, draw.integers(1, 60, 4000).astype(float)
    values = draw.gamma(4.0, 0.2, people) * (1 + 0.01 * weights)
    metric = np.sqrt(pooled(values, weights, 2)) if squared else pooled(values, weights, 1)
    found = linearised(values, weights=weights, squared=squared)
    assert found.mean() == pytest.approx(metric)
    # the standard error by resampling people, which needs no derivative (500 draws: 3 % of noise)
    again = []
    for _ in range(500):
        who = draw.integers(0, people, people)
        whole = pooled(values[who], weights[who], 2 if squared else 1)
        again.append(np.sqrt(whole) if squared else whole)
    assert found.std(ddof=1) / np.sqrt(people) == pytest.approx(np.std(again), rel=0.12)
    np.testing.assert_allclose(linearised(values), values)
