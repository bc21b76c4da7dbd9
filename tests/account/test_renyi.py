import math

import dp_accounting
import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import norm

from tacit.account import renyi
from tacit.account.claim import Adjacency
from tacit.account.events import (
    Composed,
    DiscreteGaussian,
    FixedSize,
    Gaussian,
    Laplace,
    Poisson,
    PureLocal,
    RandomisedResponse,
    Repeated,
    Sampled,
    Shuffled,
    Skellam,
    UnsupportedEvent,
)

AR, RO = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
FEW = range(2, 12)


def divergence(upper, lower, order):
    """The Rényi divergence of two mass functions."""
    seen = (upper > 1e-280) & (lower > 1e-280)
    logs = order * np.log(upper[seen]) + (1.0 - order) * np.log(lower[seen])
    return float(np.logaddexp.reduce(logs)) / (order - 1)


@pytest.mark.parametrize("adjacency", [AR, RO])
@pytest.mark.parametrize("clip", [1.0, 12.0])
def test_gaussian_curve_doubles_the_clip_norm_under_replace_one(clip, adjacency):
    curve = renyi.curve(Gaussian(2 * clip, clip), adjacency)
    assert curve == pytest.approx(renyi.ORDERS * adjacency.reach**2 / 8)


def test_gaussian_epsilons_are_the_library_s_in_its_own_words():
    for adjacency, multiplier in (
        (AR, 2.0),
        (RO, 1.0),
    ):  # there the multiplier counts in replace-one distances
        accountant = dp_accounting.rdp.RdpAccountant(list(renyi.ORDERS[:255]))
        accountant.compose(dp_accounting.GaussianDpEvent(multiplier))
        found = renyi.epsilon({Gaussian(2.0, 1.0): 1}, 1e-6, adjacency)
        assert found == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-6)


@pytest.mark.parametrize(("ratio", "rate", "rounds"), [(1.0, 0.01, 1000), (2.0, 0.2, 100)])
def test_sampled_gaussian_is_the_library_s(ratio, rate, rounds):
    accountant = dp_accounting.rdp.RdpAccountant(list(range(2, 257)))
    accountant.compose(
        dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(ratio)), rounds
    )
    found = renyi.epsilon({Sampled(Gaussian(ratio, 1.0), Poisson(rate)): rounds}, 1e-6, AR)
    assert found == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-6)


@pytest.mark.parametrize(("variance", "shift"), [(20.0, 1), (50.0, 4), (400.0, 10)])
def test_skellam_bound_holds_and_is_close(variance, shift):
    k = np.arange(-400, 401)
    upper, lower = (ive(np.abs(k - move), variance) for move in (shift, 0))  # e^-v I_k(v), the Skellam mass
    bound = renyi.skellam(variance, shift, shift)
    for at, order in enumerate(FEW):
        exact = divergence(upper, lower, order)
        assert exact <= bound[at] <= 1.5 * exact


@pytest.mark.parametrize("shares", [1, 2, 5])
@pytest.mark.parametrize("std", [0.6, 1.5])
def test_discrete_gaussian_bound_holds(std, shares):
    k = np.arange(-60, 61)
    one = np.exp(-(k**2) / (2 * std**2))
    total = one / one.sum()
    for _ in range(shares - 1):
        total = np.convolve(total, one / one.sum())
    upper, lower = np.r_[0.0, 0.0, total], np.r_[total, 0.0, 0.0]
    bound = renyi.discrete_gaussian(DiscreteGaussian(std, shares, 1, 2.0), 2.0)
    plain = 4 / (2 * shares * std**2)
    for at, order in enumerate(FEW):
        assert divergence(upper, lower, order) <= bound[at] * (1 + 1e-9)
        if std > 1:
            assert bound[at] == pytest.approx(order * plain, rel=1e-3)


def test_too_narrow_shares_are_refused():
    with pytest.raises(UnsupportedEvent):
        renyi.curve(DiscreteGaussian(0.3, 10, 1, 1.0), AR)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_pure_curve_is_attained_by_randomised_response(epsilon):
    upper = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    for at, order in enumerate(FEW):
        assert renyi.pure(epsilon)[at] == pytest.approx(divergence(upper, upper[::-1], order))


@pytest.mark.parametrize("rate", [0.05, 0.5])
@pytest.mark.parametrize("epsilon", [0.2, 2.0])
def test_amplified_curves_cover_sampled_randomised_response(epsilon, rate):
    """A user whose bit is reported if sampled; otherwise (or without them) the bit of somebody else is."""
    there = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    mixed = rate * there + (1 - rate) * there[::-1]
    poisson, fixed = (make(rate, renyi.pure(epsilon)) for make in (renyi.poisson_any, renyi.fixed_size_any))
    for at, order in enumerate(FEW):
        worst = max(divergence(mixed, there[::-1], order), divergence(there[::-1], mixed, order))
        assert worst <= poisson[at] * (1 + 1e-9)
        assert worst <= fixed[at] * (1 + 1e-9)
    assert np.all(poisson[:255] <= 3 * renyi.pure(epsilon)[:255] + 3)


def test_general_poisson_bound_covers_the_gaussian_one():
    base = renyi.gaussian(0.7)
    assert np.all(renyi.poisson_gaussian(0.1, 0.7)[:255] <= renyi.poisson_any(0.1, base)[:255] + 1e-12)


def test_order_two_of_the_sampled_gaussian_by_integration():
    rate, mu, x = 0.3, 1.0, np.linspace(-12, 13, 200_001)
    mixed = (1 - rate) * norm.pdf(x) + rate * norm.pdf(x - mu)
    exact = math.log(np.sum(mixed**2 / norm.pdf(x)) * (x[1] - x[0]))
    assert renyi.poisson_gaussian(rate, mu)[0] == pytest.approx(exact, rel=1e-6)


def test_curves_add_up():
    parts = (Gaussian(1.0, 1.0), Skellam(9.0, 2.0, 4.0), RandomisedResponse(1.0, 3))
    whole = renyi.curve(Composed((parts[0], Repeated(parts[1], 4), parts[2])), AR)
    alone = [renyi.curve(part, AR) for part in parts]
    assert whole == pytest.approx(alone[0] + 4 * alone[1] + alone[2])
    assert alone[2] == pytest.approx(3 * renyi.pure(1.0))


@pytest.mark.parametrize(
    ("event", "adjacency"),
    [
        (Shuffled(1.0, 100), RO),
        (Sampled(Skellam(9.0, 2.0, 4.0), Poisson(0.1)), RO),
        (Sampled(Skellam(9.0, 2.0, 4.0), FixedSize(1, 10)), AR),
    ],
)
def test_unanalysed_events_are_refused(event, adjacency):
    with pytest.raises(UnsupportedEvent):
        renyi.curve(event, adjacency)


def test_laplace_uses_its_pure_guarantee():
    assert renyi.curve(Laplace(2.0, 1.0, 9), RO) == pytest.approx(renyi.curve(PureLocal(1.0), RO))
