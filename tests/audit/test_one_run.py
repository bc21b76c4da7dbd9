"""The certified bound against sums written out, published figures, and mechanisms whose noise is broken."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

from tacit.account.calibrate import Schedule, noise_for
from tacit.account.gaussian import delta_of, epsilon_of
from tacit.audit.one_run import Curve, advantage, certified, chance_of, fitted, found_at, lower_bound
from tacit.errors import TacitError
from tacit.federation.sampling import Poisson
from tacit.protect.clip import Clip
from tacit.protect.noise import GaussianNoise
from tacit.protect.protection import chain
from tacit.rng import SeededKeys
from tacit.testing.mechanism import measured


@pytest.mark.parametrize(("right", "guesses", "people"), [(7, 10, 30), (50, 60, 200), (0, 4, 4), (4, 4, 4)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-3), (1.3, 1e-4), (3.0, 0.0)])
def test_the_chance_is_theorem_5_2_written_out(right, guesses, people, epsilon, delta):
    odds = math.exp(epsilon) / (1 + math.exp(epsilon))

    def reached(v):
        return sum(
            math.comb(guesses, k) * odds**k * (1 - odds) ** (guesses - k)
            for k in range(max(v, 0), guesses + 1)
        )

    slack = max(((reached(right - i) - reached(right)) / i for i in range(1, right + 1)), default=0.0)
    expected = min(1.0, reached(right) + 2 * people * delta * slack)
    assert chance_of(right, guesses, people, epsilon, delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("guesses", "epsilon"), [(50, 2.78), (100, 3.49), (300, 4.60), (1000, 5.81), (10000, 8.11)]
)
def test_the_most_that_can_be_certified(guesses, epsilon):
    # All right at 95 %: (e^eps / (1 + e^eps))^r = .05 has a closed form.
    closed = -math.log(0.05 ** (-1 / guesses) - 1)
    found = certified(guesses, guesses, guesses, 0.0)
    assert found == pytest.approx(closed, abs=2e-4)
    assert found == pytest.approx(epsilon, abs=0.006)


def test_a_coin_certifies_nothing_more_often_than_it_may():
    draw = np.random.default_rng(3)
    wrong = 0
    for _ in range(200):
        there = draw.random(200) < 0.5
        wrong += lower_bound(draw.random(200), there, 1e-6) > 0
    assert wrong <= stats.binom.isf(1e-6, 200, 0.05)


def test_the_fit_finds_the_epsilon_of_a_gaussian():
    draw = np.random.default_rng(0)
    there = draw.random(40_000) < 0.5
    scores = draw.normal(0, 2, 40_000) + 1.2 * there
    assert fitted(scores, there, 1e-5) == pytest.approx(epsilon_of(0.6, 1e-5), rel=0.06)
    assert fitted(-scores, there, 1e-5) == 0.0


def test_shares_and_advantage_by_hand():
    there = np.array([True, True, True, False, False, False])
    scores = np.array([9.0, 5.0, 1.0, 6.0, 3.0, 2.0])
    assert found_at(scores, there, 0.0) == pytest.approx(1 / 3)
    assert found_at(scores, there, 0.34) == pytest.approx(2 / 3)
    assert advantage(scores, there) == pytest.approx(1 / 3)
    assert advantage(np.zeros(6), there) == 0.0


def test_the_accountants_curve_is_the_gaussians_own():
    # For a Gaussian at distance mu the best advantage is 2 Phi(mu/2) - 1, the best share Phi(Phi^-1(f) + mu).
    mu = 0.7
    pairs = tuple((eps, delta_of(eps, mu)) for eps in np.linspace(0, 4, 200).tolist())
    curve = Curve(pairs)
    assert curve.advantage() == pytest.approx(2 * stats.norm.cdf(mu / 2) - 1, abs=1e-3)
    assert curve.found_at(0.01) == pytest.approx(stats.norm.cdf(stats.norm.ppf(0.01) + mu), rel=0.01)
    assert Curve(()).advantage() == 1.0


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(TacitError, match="count again"):
        chance_of(5, 4, 10, 1.0, 0.0)
    with pytest.raises(TacitError, match="different people"):
        lower_bound(np.zeros(3), np.ones(2, dtype=bool), 1e-6)


@dataclass(frozen=True)
class Weak(GaussianNoise):
    """Claims its noise and adds a fraction of it: what an audit is for."""

    fraction: float = 1.0

    def on_server(self, total, bound, state, facts, keys):
        """Less noise than was claimed."""
        honest = GaussianNoise(self.noise * self.fraction, self.where)
        return honest.on_server(total, bound, state, facts, keys)


RUN = Schedule(users=2000, cohort=100, rounds=150, delta=1e-6)
NOISE = noise_for(2.0, RUN)


def audit_of(fraction, seed=1, size=1.0):
    guard = chain(Clip(size), Weak(NOISE, fraction=fraction))
    return measured(
        guard, Poisson(RUN.cohort), people=RUN.users, canaries=1000, rounds=RUN.rounds, delta=RUN.delta,
        keys=SeededKeys(seed),
    )  # fmt: skip


def test_correct_noise_stays_below_its_claim_and_the_fit_is_near():
    found = audit_of(1.0)
    assert found.claimed == pytest.approx(2.0, abs=0.01)
    assert not found.refuted
    assert 0.5 < found.fitted < 3.0


def test_a_third_of_the_noise_is_clear_in_the_fit():
    found = audit_of(1 / 3)
    assert found.fitted > 2 * found.claimed
    assert found.certified > 1.0


def test_a_tenth_of_the_noise_is_refuted_for_certain():
    found = audit_of(1 / 10)
    assert found.refuted
    assert found.fitted > 5 * found.claimed


def test_a_clip_four_times_too_wide_is_refuted():
    @dataclass(frozen=True)
    class Loose(Clip):
        """Bounds by its size and clips at four times that."""

        def on_client(self, update, bound, state, keys):
            """Too long."""
            return replace(Clip(4 * self.size)).on_client(update, bound, state, keys)

    guard = chain(Loose(1.0), GaussianNoise(NOISE))
    found = measured(
        guard, Poisson(RUN.cohort), people=RUN.users, canaries=1000, rounds=RUN.rounds, delta=RUN.delta,
        keys=SeededKeys(1),
    )  # fmt: skip
    assert found.fitted > 2 * found.claimed
