import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as library
from scipy.stats import binom

from tacit.account import losses
from tacit.account.accountant import epsilon
from tacit.account.claim import Adjacency
from tacit.account.events import (
    FixedSize,
    Gaussian,
    Laplace,
    Poisson,
    PureLocal,
    RandomisedResponse,
    Repeated,
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


RELATION = {
    AR: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    RO: dp_accounting.NeighboringRelation.REPLACE_ONE,
}
RATES, RATIOS, ROUNDS = (1.0, 0.4, 0.05, 0.005), (0.7, 1.0, 2.0, 6.0), (1, 30, 1000)
GRID = [
    (ratio, rate, rounds)
    for ratio in RATIOS
    for rate in RATES
    for rounds in ROUNDS
    if rounds * (rate / ratio) ** 2 < 60  # beyond, epsilon is in the hundreds
]


def theirs(ratio, rate, rounds, adjacency, deltas):
    """The library's own accountant, which takes the noise in clip norms under both relations."""
    accountant = dp_accounting.pld.PLDAccountant(RELATION[adjacency])
    round_ = dp_accounting.GaussianDpEvent(ratio)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, round_), rounds)
    return [accountant.get_epsilon(delta) for delta in deltas]


@pytest.mark.parametrize("adjacency", [AR, RO])
@pytest.mark.parametrize(("ratio", "rate", "rounds"), [(0.8, 0.01, 100), (1.5, 0.1, 300), (3.0, 0.5, 50)])
def test_sampled_gaussians_agree_with_the_library_s_accountant(ratio, rate, rounds, adjacency):
    counts, deltas = {Sampled(Gaussian(ratio * 5, 5.0), Poisson(rate)): rounds}, (1e-8, 1e-5)
    for delta, wanted in zip(deltas, theirs(ratio, rate, rounds, adjacency, deltas), strict=True):
        assert losses.epsilon(counts, delta, adjacency) == pytest.approx(wanted, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", [AR, RO])
@pytest.mark.parametrize(("ratio", "rate", "rounds"), GRID)
def test_a_grid_of_runs_agrees_with_the_library_s_accountant(ratio, rate, rounds, adjacency):
    """Within 1e-3 of epsilon, or of 1 where that is more: the library works on a fixed grid of 1e-4."""
    round_, deltas = Sampled(Gaussian(ratio * 0.3, 0.3), Poisson(rate)), (1e-8, 1e-6, 1e-4)
    for delta, wanted in zip(deltas, theirs(ratio, rate, rounds, adjacency, deltas), strict=True):
        found = epsilon([Repeated(round_, rounds)], delta, adjacency).value
        assert found == pytest.approx(wanted, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_scalar_laplace_agrees_with_the_library(scale):
    exact = (
        library.from_laplace_mechanism(scale, sensitivity=2.0).self_compose(20).get_epsilon_for_delta(1e-6)
    )
    assert losses.epsilon({Laplace(scale, 1.0): 20}, 1e-6, RO) == pytest.approx(exact, rel=1e-3)
    assert losses.epsilon({Laplace(scale, 2.0): 20}, 1e-6, AR) == pytest.approx(exact, rel=1e-3)


def binary_delta(at, local, bits):
    """The hockey-stick divergence of so many randomised bits, all flipped between neighbours."""
    k = np.arange(bits + 1)
    truth = 1 / (1 + math.exp(-local))
    upper, lower = binom.pmf(k, bits, truth), binom.pmf(k, bits, 1 - truth)
    return np.maximum(0.0, upper - math.exp(at) * lower).sum()


@pytest.mark.parametrize(("local", "bits"), [(0.5, 10), (2.0, 7), (0.1, 400)])
def test_randomised_bits_are_a_binomial(local, bits):
    for event in ({RandomisedResponse(local, bits): 1}, {PureLocal(local): bits}):
        found = losses.epsilon(event, 1e-4, RO)
        assert binary_delta(found, local, bits) <= 1e-4 * (1 + 1e-6)
        assert binary_delta(found - 2e-3 * bits * local, local, bits) > 1e-4


@pytest.mark.parametrize("bits", [280, 300, 320, 600])
def test_epsilons_that_doubles_cannot_exponentiate_are_found_too(bits):
    """Between 650 and 1410; the exact delta in logarithms."""
    found = losses.epsilon({RandomisedResponse(2.5, bits): 1}, 1e-6, RO)
    k = np.arange(bits + 1)
    worth, chances = 2.5 * (2 * k - bits), binom.logpmf(k, bits, 1 / (1 + math.exp(-2.5)))

    def exact(at):
        return np.sum(np.exp(chances) * -np.expm1(np.minimum(0.0, at - worth)))

    assert exact(found) <= 1e-6 < exact(found * (1 - 2e-3))


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
    for at in (-0.7, 0.0, 0.3, 2.0):
        exact = np.sum(masses * np.maximum(0.0, -np.expm1(at - values)))
        assert exact - 1e-12 <= law.get_delta_for_epsilon(at) <= exact + 1e-3


def test_a_finer_grid_never_says_more():
    counts = {Sampled(Gaussian(1.0, 1.0), FixedSize(10, 100)): 50}
    found = [losses.epsilon(counts, 1e-6, RO, step) for step in (1e-2, 2e-3, 4e-4)]
    assert found[0] > found[1] > found[2]
    assert found[1] == pytest.approx(found[2], rel=1e-3)


def test_what_has_no_loss_distribution_says_so():
    assert not losses.supported(Skellam(1.0, 1.0, 1.0), AR)
    assert not losses.supported(Sampled(Skellam(1.0, 1.0, 1.0), Poisson(0.1)), AR)
    assert losses.supported(Sampled(PureLocal(1.0), Poisson(0.1)), AR)
