import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as library
from scipy.stats import binom

from tacit.account import losses
from tacit.account.claim import Adjacency
from tacit.account.events import (
    FixedSize,
    Gaussian,
    Laplace,
    Poisson,
    PureLocal,
    RandomisedResponse,
    Sampled,
    Skellam,
)
from tacit.account.gaussian import epsilon_of

AR, RO = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


@pytest.mark.parametrize("clip", [1.0, 0.25, 30.0])
@pytest.mark.parametrize("adjacency", [AR, RO])
@pytest.mark.parametrize("ratio", [1.0, 2.0, 7.0])
def test_gaussian_without_sampling_is_the_analytic_curve(ratio, adjacency, clip):
    found = losses.epsilon({Gaussian(ratio * clip, clip): 1}, 1e-6, adjacency)
    assert found == pytest.approx(epsilon_of(adjacency.reach / ratio, 1e-6), rel=1e-4)


def test_the_two_numbers_that_conventions_confuse():
    assert losses.epsilon({Gaussian(2.0, 1.0): 1}, 1e-6, AR) == pytest.approx(2.254, abs=1e-3)
    assert losses.epsilon({Gaussian(2.0, 1.0): 1}, 1e-6, RO) == pytest.approx(4.887, abs=1e-3)


@pytest.mark.parametrize("adjacency", [AR, RO])
@pytest.mark.parametrize(("ratio", "rate", "rounds"), [(0.8, 0.01, 100), (1.5, 0.1, 300), (3.0, 0.5, 50)])
def test_sampled_gaussians_agree_with_the_library_s_accountant(ratio, rate, rounds, adjacency):
    relation = {
        AR: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
        RO: dp_accounting.NeighboringRelation.REPLACE_ONE,
    }[adjacency]
    accountant = dp_accounting.pld.PLDAccountant(relation)
    round_ = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(ratio))
    accountant.compose(round_, rounds)
    counts = {Sampled(Gaussian(ratio * 5, 5.0), Poisson(rate)): rounds}
    for delta in (1e-8, 1e-5):
        found = losses.epsilon(counts, delta, adjacency)
        assert found == pytest.approx(accountant.get_epsilon(delta), rel=1e-3)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_scalar_laplace_agrees_with_the_library(scale):
    exact = (
        library.from_laplace_mechanism(scale, sensitivity=2.0).self_compose(20).get_epsilon_for_delta(1e-6)
    )
    assert losses.epsilon({Laplace(scale, 1.0): 20}, 1e-6, RO) == pytest.approx(exact, rel=1e-3)
    assert losses.epsilon({Laplace(scale, 2.0): 20}, 1e-6, AR) == pytest.approx(exact, rel=1e-3)


def binary_delta(epsilon, local, bits):
    """The hockey-stick divergence of so many randomised bits, all flipped between neighbours."""
    k = np.arange(bits + 1)
    truth = 1 / (1 + math.exp(-local))
    upper, lower = binom.pmf(k, bits, truth), binom.pmf(k, bits, 1 - truth)
    return np.maximum(0.0, upper - math.exp(epsilon) * lower).sum()


@pytest.mark.parametrize(("local", "bits"), [(0.5, 10), (2.0, 7), (0.1, 400)])
def test_randomised_bits_are_a_binomial(local, bits):
    for event in ({RandomisedResponse(local, bits): 1}, {PureLocal(local): bits}):
        found = losses.epsilon(event, 1e-4, RO)
        assert binary_delta(found, local, bits) <= 1e-4 * (1 + 1e-6)
        assert binary_delta(found - 2e-3 * bits * local, local, bits) > 1e-4


def test_thousands_of_reports_stay_below_their_sum():
    found = losses.epsilon({PureLocal(2.5): 2000}, 1e-6, RO)
    mean = 5000 * math.tanh(1.25)
    assert mean < found < 5000


def test_atoms_keep_their_mass_under_both_distributions():
    values, masses = np.array([-0.73, 0.0, 0.011, 2.4999]), np.array([0.2, 0.3, 0.1, 0.4])
    law = losses.pmf_of_atoms(values, masses, 0.01)
    assert law.get_delta_for_epsilon(-200.0) == pytest.approx(1.0)
    lower = 1 - law.get_delta_for_epsilon(-5.0)  # below every loss: 1 - delta = e^-5 times the lower mass
    assert lower / math.exp(-5.0) == pytest.approx(np.sum(masses * np.exp(-values)))
    for epsilon in (-0.7, 0.0, 0.3, 2.0):
        exact = np.sum(masses * np.maximum(0.0, -np.expm1(epsilon - values)))
        assert exact - 1e-12 <= law.get_delta_for_epsilon(epsilon) <= exact + 1e-3


def test_a_finer_grid_never_says_more():
    counts = {Sampled(Gaussian(1.0, 1.0), FixedSize(10, 100)): 50}
    found = [losses.epsilon(counts, 1e-6, RO, step) for step in (1e-2, 2e-3, 4e-4)]
    assert found[0] > found[1] > found[2]
    assert found[1] == pytest.approx(found[2], rel=1e-3)


def test_what_has_no_loss_distribution_says_so():
    assert not losses.supported(Skellam(1.0, 1.0, 1.0), AR)
    assert not losses.supported(Sampled(Skellam(1.0, 1.0, 1.0), Poisson(0.1)), AR)
    assert losses.supported(Sampled(PureLocal(1.0), Poisson(0.1)), AR)
