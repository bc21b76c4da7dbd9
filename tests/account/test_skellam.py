import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account.accountant import epsilon
from tacit.account.claim import Adjacency
from tacit.account.gaussian import epsilon_of
from tacit.account.skellam import LUCK, plan_sum, rounded_norm, scale_for, skellam_event
from tacit.errors import TacitError


@pytest.mark.parametrize(
    ("dimension", "clients", "noise", "scale", "share_std", "bits"),
    [
        (16_384, 30, 2.0, 697, 254, 14),
        (65_536, 30, 0.85, 1336, 207, 14),
        (65_536, 100, 2.0, 1336, 268, 15),
        (65_536, 1000, 2.0, 1336, 84, 16),
        (65_536, 10_000, 2.0, 1336, 27, 19),
    ],
)
def test_plans_match_the_table(dimension, clients, noise, scale, share_std, bits):
    plan = plan_sum(noise, 1.0, dimension, clients, clients)
    assert plan.scale == pytest.approx(scale, abs=0.6)
    assert math.sqrt(plan.share_variance) == pytest.approx(share_std, abs=1.0)
    assert plan.bits == bits
    assert plan.norm == pytest.approx(plan.scale * math.sqrt(1.01), rel=1e-9)


@given(st.floats(0.01, 100.0), st.integers(1, 10**7), st.floats(1e-4, 1.0))
def test_the_scale_spends_exactly_the_overhead(clip, dimension, overhead):
    scale = scale_for(clip, dimension, overhead)
    assert rounded_norm(clip, scale, dimension) <= scale * clip * math.sqrt(1 + overhead) * (1 + 1e-9)


def test_random_rounding_keeps_within_the_norm_as_often_as_promised():
    generator = np.random.default_rng(5)
    vector = generator.normal(size=400)
    vector *= 30.0 / np.linalg.norm(vector)
    rounded = np.floor(vector + generator.random((4000, 400)))
    kept = np.mean(np.linalg.norm(rounded, axis=1) <= rounded_norm(1.0, 30.0, 400))
    assert kept >= 1 - LUCK - 0.03


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=30).filter(any))
def test_the_l1_bound_covers_every_integer_vector(values):
    vector = np.array(values)
    event = skellam_event(1.0, 1, float(np.linalg.norm(vector)), len(values))
    assert np.abs(vector).sum() <= event.clip_l1 * (1 + 1e-9)


def test_a_fine_scale_costs_almost_what_the_gaussian_costs():
    plan = plan_sum(2.0, 1.0, 65_536, 100, 100)
    spent = epsilon([plan.event], 1e-6, Adjacency.ADD_REMOVE).value
    gaussian = epsilon_of(0.5, 1e-6)
    assert gaussian < spent < 1.1 * gaussian


def test_more_survivors_add_more_noise():
    few, many = (skellam_event(4.0, honest, 10.0, 50).variance for honest in (20, 30))
    assert (few, many) == (80.0, 120.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rounded_norm(0.0, 1.0, 1),
        lambda: rounded_norm(1.0, math.inf, 1),
        lambda: rounded_norm(1.0, 1.0, 0),
        lambda: rounded_norm(1.0, 1.0, 1, luck=1.0),
        lambda: scale_for(1.0, 5, overhead=0.0),
        lambda: skellam_event(0.0, 1, 1.0, 1),
        lambda: skellam_event(1.0, 0, 1.0, 1),
        lambda: plan_sum(1.0, 1.0, 10, honest=5, clients=4),
        lambda: plan_sum(0.0, 1.0, 10, honest=5, clients=5),
    ],
)
def test_impossible_plans_are_refused(make):
    with pytest.raises(TacitError):
        make()
