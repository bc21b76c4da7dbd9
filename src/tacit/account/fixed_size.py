"""Gaussian noise on the sum of a cohort of fixed size, drawn without replacement: replace-one accounting.

One round's privacy profile follows from the joint convexity of the hockey-stick divergence (Balle, Barthe
and Gaboardi 2018, Theorem 10): with rate ``q = cohort / population`` and ``mu = 2 clip / noise_std``,

    delta(epsilon)  = q * delta_Gauss(log(1 + (exp(epsilon) - 1) / q); mu)                for epsilon >= 0
    delta(-epsilon) = 1 - exp(-epsilon) + exp(-epsilon) delta(epsilon)

A profile with a dominating pair composes adaptively (Zhu, Dong and Wang 2022), so the rounds multiply up as
a privacy loss distribution. The result is an upper bound; what :func:`attained` returns belongs to a pair of
neighbours that really occurs, so the truth lies between the two.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from tacit.account.events import FixedSize, Gaussian, Poisson, Sampled

Reals = NDArray[np.float64]
TAIL = 10.0
"""Normal deviations after which what is left (under 1e-22) counts as an infinite loss."""


def gaussian_profile(epsilons: Reals, mu: float) -> Reals:
    """The smallest deltas of a Gaussian mechanism at these epsilons.

    Example:
        >>> gaussian_profile(np.array([1.0]), 1.0).round(4)
        array([0.1269])
    """
    upper = np.exp(log_ndtr(mu / 2 - epsilons / mu))
    lower = np.exp(np.minimum(0.0, epsilons + log_ndtr(-mu / 2 - epsilons / mu)))
    return np.maximum(0.0, upper - lower)


def profile(epsilons: Reals, mu: float, rate: float) -> Reals:
    """The deltas of one round at any real epsilons.

    Example:
        >>> profile(np.array([0.0, 1.0]), 1.0, 0.1).round(5)
        array([0.03829, 0.00021])
    """
    size = np.abs(epsilons)
    near = np.log1p(np.expm1(np.minimum(size, 30.0)) / rate)
    far = size - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(size, 30.0)))
    positive = rate * gaussian_profile(np.where(size < 30, near, far), mu)
    return np.where(epsilons >= 0, positive, -np.expm1(-size) + np.exp(-size) * positive)


def pmf(mu: float, rate: float, step: float) -> Any:
    """One round as a pessimistic privacy loss distribution on multiples of ``step`` (connect the dots).

    Example:
        >>> round(pmf(mu=1.0, rate=0.1, step=1e-3).get_epsilon_for_delta(1e-6), 2)
        2.18
    """
    from dp_accounting.pld import pld_pmf

    far = mu * mu / 2 + TAIL * mu
    top = math.log(rate) + far if far > 600 else math.log1p(rate * math.expm1(far))
    last = max(1, math.ceil(top / step))
    deltas = profile(np.arange(-last, last + 1, dtype=np.float64) * step, mu, rate)
    return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(step, -last, last, deltas)


def attained(noise_std: float, clip: float, sampling: FixedSize) -> Sampled:
    """An event whose add-remove cost no analysis of the fixed-size, replace-one mechanism can go below.

    Let everybody sit at ``-clip`` along one direction and one user move to ``+clip``: the sums of these two
    neighbours are distributed like a Poisson sample's under add-remove with sensitivity ``2 clip``.

    Example:
        >>> attained(2.0, 1.0, FixedSize(30, 4800))
        Sampled(event=Gaussian(noise_std=2.0, clip=2.0), sampling=Poisson(rate=0.00625))
    """
    return Sampled(Gaussian(noise_std, 2 * clip), Poisson(sampling.rate))
