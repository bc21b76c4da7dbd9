import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from tacit.account.gaussian import check_delta, check_epsilon, delta_of, epsilon_of, mu_of
from tacit.errors import TacitError


@pytest.mark.parametrize(("epsilon", "mu"), [(0.0, 0.3), (0.5, 1.0), (2.0, 0.7), (5.0, 2.0)])
def test_delta_is_the_hockey_stick_divergence_of_two_normals(epsilon, mu):
    start = epsilon / mu + mu / 2  # where the densities' ratio reaches exp(epsilon)
    area, _ = quad(
        lambda x: norm.pdf(x - mu) - math.exp(epsilon) * norm.pdf(x), start, start + 40, epsabs=1e-14
    )
    assert delta_of(epsilon, mu) == pytest.approx(area, rel=1e-6, abs=1e-13)


@given(st.floats(0.01, 30.0), st.floats(1e-11, 0.4))
def test_epsilon_and_mu_invert_each_other(mu, delta):
    epsilon = epsilon_of(mu, delta)
    if epsilon > 1e-6:
        assert delta_of(epsilon, mu) == pytest.approx(delta, rel=1e-6)
        assert mu_of(epsilon, delta) == pytest.approx(mu, rel=1e-6)
    else:
        assert delta_of(1e-6, mu) <= delta


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, 2.0, math.nan, 1e-13])
def test_impossible_deltas_are_refused(delta):
    with pytest.raises(TacitError):
        check_delta(delta)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_impossible_epsilons_are_refused(epsilon):
    with pytest.raises(TacitError):
        check_epsilon(epsilon)
