"""Rényi curves: for what has no privacy loss distribution here, and as a second opinion where it has.

A curve gives one number per integer order of :data:`ORDERS`; composing adds curves. Replacing one unit
moves a sum by two clip norms, which the formulas below see as the distance between neighbours.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from tacit.account.atoms import Counts, pure_epsilon
from tacit.account.claim import Adjacency
from tacit.account.events import (
    Composed,
    DiscreteGaussian,
    Event,
    FixedSize,
    Gaussian,
    Poisson,
    Repeated,
    Sampled,
    Skellam,
    UnsupportedEvent,
)

Reals = NDArray[np.float64]
DENSE = 256
"""Every integer order up to this one is tracked; amplification needs them all."""
ORDERS: Reals = np.array(
    [*range(2, DENSE + 1), *np.unique(np.geomspace(DENSE + 1, 2**20, 120).round())], float
)


def to_epsilon(curve: Reals, delta: float) -> float:
    """The best epsilon a curve gives at ``delta`` (Canonne, Kamath and Steinke 2020).

    Example:
        >>> round(to_epsilon(ORDERS / 8, 1e-6), 2)  # Gaussian noise of two clip norms, one release
        2.42
    """
    bounds = curve + np.log1p(-1 / ORDERS) - np.log(delta * ORDERS) / (ORDERS - 1)
    return max(0.0, float(np.nanmin(bounds)))


def to_epsilon_classic(curve: Reals, delta: float) -> float:
    """Mironov's original conversion ``curve + log(1 / delta) / (order - 1)``, as older papers use it.

    Example:
        >>> round(to_epsilon_classic(ORDERS / 8, 1e-6), 2)
        2.76
    """
    return float(np.nanmin(curve + math.log(1 / delta) / (ORDERS - 1)))


def gaussian(mu: float) -> Reals:
    """A Gaussian mechanism whose neighbours lie ``mu`` deviations apart.

    Example:
        >>> gaussian(1.0)[:3]
        array([1. , 1.5, 2. ])
    """
    return ORDERS * mu * mu / 2


def pure(epsilon: float) -> Reals:
    """Any mechanism with this epsilon at delta zero; randomised response attains it.

    Example:
        >>> pure(1.0)[:2].round(4)
        array([0.7353, 0.8467])
    """
    odds = np.logaddexp(ORDERS * epsilon, (1 - ORDERS) * epsilon) - np.logaddexp(0.0, epsilon)
    return odds / (ORDERS - 1)


def skellam(variance: float, distance: float, distance_l1: float) -> Reals:
    """Skellam noise on integer sums whose neighbours lie this far apart (Agarwal et al. 2021).

    Example:
        >>> skellam(400.0, distance=10.0, distance_l1=10.0)[:2].round(4)
        array([0.2506, 0.3759])
    """
    small = ((2 * ORDERS - 1) * distance**2 + 6 * distance_l1) / (4 * variance**2)
    return ORDERS * distance**2 / (2 * variance) + np.minimum(small, 3 * distance_l1 / (2 * variance))


def discrete_gaussian(event: DiscreteGaussian, distance: float) -> Reals:
    """A sum of discrete Gaussian shares, nearly one itself (Kairouz, Liu and Steinke 2021).

    Example:
        >>> discrete_gaussian(DiscreteGaussian(4.0, 25, 20, 10.0), distance=10.0)[:2].round(4)
        array([0.25 , 0.375])
    """
    share = event.share_std**2
    if share < 0.25:
        raise UnsupportedEvent(
            f"discrete Gaussian shares of deviation {event.share_std}", "use at least 0.5 (scale up)"
        )
    later = np.arange(1, min(event.shares, 10_000))
    gap = 10 * float(np.exp(-2 * math.pi**2 * share * later / (later + 1)).sum())
    gap *= max(
        1.0, (event.shares - 1) / max(1, len(later))
    )  # the terms fall, so the mean of the first is enough
    plain = distance / math.sqrt(event.shares * share)
    epsilon = min(math.sqrt(plain**2 + gap * event.dimension / 2), plain + gap * math.sqrt(event.dimension))
    return ORDERS * epsilon**2 / 2


def _log_binomials(order: int) -> Reals:
    k = np.arange(order + 1)
    return gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)


def _amplified_curve(terms: Callable[[int], Reals]) -> Reals:
    """One amplified value per dense order; infinity above, where nothing was computed."""
    curve = np.full(len(ORDERS), math.inf)
    for at in range(DENSE - 1):
        order = at + 2
        curve[at] = max(0.0, float(np.logaddexp.reduce(terms(order)))) / (order - 1)
    return curve


def poisson_gaussian(rate: float, mu: float) -> Reals:
    """Poisson sampling, add-remove, Gaussian noise (Mironov, Talwar and Zhang 2019, Section 3.3).

    Example:
        >>> poisson_gaussian(0.1, 1.0)[:2].round(4)
        array([0.017 , 0.0317])
    """

    def terms(order: int) -> Reals:
        k = np.arange(order + 1)
        weights = _log_binomials(order) + k * math.log(rate) + (order - k) * math.log1p(-rate)
        return weights + k * (k - 1) * mu * mu / 2

    return _amplified_curve(terms)


def poisson_any(rate: float, base: Reals) -> Reals:
    """Poisson sampling, add-remove, any mechanism (Zhu and Wang 2019, Theorem 5).

    Example:
        >>> poisson_any(0.1, gaussian(1.0))[:2].round(4)
        array([0.017 , 0.0502])
    """

    def terms(order: int) -> Reals:
        k = np.arange(3, order + 1)
        stay, go = math.log1p(-rate), math.log(rate)
        binomials = _log_binomials(order)
        first = (order - 1) * stay + math.log1p((order - 1) * rate)
        second = binomials[2] + 2 * go + (order - 2) * stay + base[0]
        rest = math.log(3) + binomials[3:] + (order - k) * stay + k * go + (k - 1) * base[k - 2]
        return np.concatenate([[first, second], rest])

    return _amplified_curve(terms)


def fixed_size_any(rate: float, base: Reals) -> Reals:
    """Sampling without replacement, replace-one, any mechanism.

    Theorem 9 of Wang, Balle and Kasiviswanathan (2019), general bound.

    The paper's sharper terms need a finite loss at order infinity; here it is taken as infinite.

    Example:
        >>> fixed_size_any(0.1, gaussian(1.0))[:2].round(4)
        array([0.0529, 0.0925])
    """
    # min(4 (e^x - 1), 2 e^x), in logarithms
    pair = min(math.log(4) + float(np.log(np.expm1(min(base[0], 50.0)))), math.log(2) + float(base[0]))

    def terms(order: int) -> Reals:
        k = np.arange(3, order + 1)
        binomials = _log_binomials(order)
        second = binomials[2] + 2 * math.log(rate) + pair
        rest = math.log(2) + binomials[3:] + k * math.log(rate) + (k - 1) * base[k - 2]
        return np.concatenate([[0.0, second], rest])

    return _amplified_curve(terms)


def curve(event: Event, adjacency: Adjacency) -> Reals:
    """The Rényi curve of an event, or :class:`UnsupportedEvent`.

    Example:
        >>> curve(Gaussian(2.0, 1.0), Adjacency.REPLACE_ONE)[:2]
        array([1. , 1.5])
    """
    reach = adjacency.reach
    match event:
        case Gaussian(noise_std, clip):
            return gaussian(reach * clip / noise_std)
        case Skellam(variance, clip, clip_l1):
            return skellam(variance, reach * clip, reach * clip_l1)
        case DiscreteGaussian():
            return discrete_gaussian(event, reach * event.clip)
        case Composed(events):
            return np.sum([curve(part, adjacency) for part in events], axis=0)
        case Repeated(inner, times):
            return times * curve(inner, adjacency)
        case Sampled(inner, sampling):
            return _amplified(inner, sampling, adjacency)
        case _:
            return _from_pure(event, adjacency)


def _from_pure(event: Event, adjacency: Adjacency) -> Reals:
    epsilon = pure_epsilon(event, adjacency)
    if not math.isfinite(epsilon) or event.kind == "shuffled":
        raise UnsupportedEvent(f"a {event.kind} event has no Rényi curve here", "account it on its own")
    flips = getattr(event, "flips", 1)
    return flips * pure(epsilon / flips)


def _amplified(inner: Event, sampling: Poisson | FixedSize, adjacency: Adjacency) -> Reals:
    if isinstance(sampling, FixedSize) and adjacency is Adjacency.REPLACE_ONE:
        return fixed_size_any(sampling.rate, curve(inner, adjacency))
    if isinstance(sampling, Poisson) and adjacency is Adjacency.ADD_REMOVE:
        if isinstance(inner, Gaussian):
            return poisson_gaussian(sampling.rate, inner.clip / inner.noise_std)
        return poisson_any(sampling.rate, curve(inner, adjacency))
    raise UnsupportedEvent(
        f"{sampling.kind} sampling of {inner.kind} under {adjacency.value} has no Rényi analysis here",
        "use poisson with add-remove, or fixed with replace-one",
    )


def composed(counts: Counts, adjacency: Adjacency) -> Reals:
    """The curve of everything in ``counts``.

    Example:
        >>> composed({Gaussian(2.0, 1.0): 4}, Adjacency.ADD_REMOVE)[:2]
        array([1. , 1.5])
    """
    return np.sum([times * curve(event, adjacency) for event, times in counts.items()], axis=0)


def epsilon(counts: Counts, delta: float, adjacency: Adjacency) -> float:
    """The epsilon of everything in ``counts``.

    Example:
        >>> round(epsilon({Skellam(16.0, 4.0, 8.0): 1}, 1e-6, Adjacency.ADD_REMOVE), 2)
        5.44
    """
    return to_epsilon(composed(counts, adjacency), delta)
