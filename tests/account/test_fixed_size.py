import json
import math
from pathlib import Path

import numpy as np
import pytest

from tacit.account import fixed_size, losses
from tacit.account.claim import Adjacency
from tacit.account.events import FixedSize, Gaussian, Sampled
from tacit.account.gaussian import delta_of

GOLDEN = json.loads((Path(__file__).parent / "goldens" / "dp_privrec.json").read_text())


def epsilons(event, adjacency):
    whole = losses.composed({event: 1000}, adjacency, 3e-4)
    return [whole.get_epsilon_for_delta(delta) for delta in GOLDEN["deltas"]]


@pytest.mark.parametrize("row", GOLDEN["rows"], ids=lambda row: row["row"])
def test_a_thousand_rounds_match_the_table_and_its_bracket(row):
    sampling = FixedSize(*map(int, row["row"].split("/")))
    upper = epsilons(Sampled(Gaussian(2.0, 1.0), sampling), Adjacency.REPLACE_ONE)
    lower = epsilons(fixed_size.attained(2.0, 1.0, sampling), Adjacency.ADD_REMOVE)
    assert upper == pytest.approx(row["fixed_replace_one"], abs=6e-4)
    assert lower == pytest.approx(row["fixed_replace_one_attained"], abs=6e-4)
    assert all(low < high for low, high in zip(lower, upper, strict=True))


def test_an_independent_implementation_brackets_the_largest_cohort():
    found = epsilons(Sampled(Gaussian(2.0, 1.0), FixedSize(30, 4800)), Adjacency.REPLACE_ONE)
    for value, (low, high) in zip(found, [(1.921, 1.952), (1.509, 1.540), (1.081, 1.112)], strict=True):
        assert low <= value <= high


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_everybody_taking_part_is_the_plain_gaussian(mu):
    points = np.array([-2.0, -0.3, 0.0, 0.4, 1.0, 5.0])
    expected = [delta_of(e, mu) if e >= 0 else 1 - math.exp(e) * (1 - delta_of(-e, mu)) for e in points]
    assert fixed_size.profile(points, mu, 1.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rate", [1e-4, 0.03, 0.5])
@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_profile_is_that_of_some_pair_of_distributions(mu, rate):
    points = np.linspace(-4, 6, 401)
    deltas = fixed_size.profile(points, mu, rate)
    assert np.all(np.diff(deltas) <= 1e-14)
    assert np.all(deltas >= np.maximum(0, 1 - np.exp(points)) - 1e-14)
    slopes = np.diff(deltas) / np.diff(np.exp(points))  # convex in exp(epsilon)
    assert np.all(np.diff(slopes) >= -1e-9)
    assert fixed_size.profile(np.array([0.0]), mu, rate)[0] == pytest.approx(
        rate * math.erf(mu / math.sqrt(8))
    )


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_one_round_on_the_grid_equals_the_formula(rate):
    mu = 1.5
    law = losses.Loss(fixed_size.pmf(mu, rate, 1e-3))
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        wanted = fixed_size.profile(np.array([epsilon]), mu, rate)[0]
        assert law.get_delta_for_epsilon(epsilon) == pytest.approx(wanted, rel=1e-8)
