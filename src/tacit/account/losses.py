"""Events as privacy loss distributions, on Google's ``dp_accounting``.

This is the only place that speaks that library's dialect. Its Gaussian takes the deviation and the clip norm
apart; under replace-one its loss distribution doubles the clip norm by itself, while its Rényi accountant
expects the doubled norm from the caller. We hand it deviations, clip norms and a relation, nothing relative.
Distributions live on multiples of ``step`` and err on the side of more epsilon.
"""

import math
from functools import reduce

import numpy as np
from dp_accounting import NeighboringRelation
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as library
from numpy.typing import NDArray

from tacit.account import fixed_size, shuffle
from tacit.account.atoms import Counts, pure_epsilon
from tacit.account.claim import Adjacency
from tacit.account.events import (
    Event,
    FixedSize,
    Gaussian,
    Laplace,
    Poisson,
    RandomisedResponse,
    Sampled,
    Shuffled,
)

Loss = library.PrivacyLossDistribution
_RELATION = {
    Adjacency.ADD_REMOVE: NeighboringRelation.ADD_OR_REMOVE_ONE,
    Adjacency.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
}
POINTS = 5_000
"""Grid points between zero and the answer of a thousand rounds."""
FAR = 600.0
"""Epsilons from which on the library's own search loses digits."""


def supported(event: Event, adjacency: Adjacency) -> bool:
    """Whether this irreducible event has a privacy loss distribution here.

    Example:
        >>> supported(Sampled(Gaussian(1.0, 1.0), Poisson(0.1)), Adjacency.ADD_REMOVE)
        True
    """
    if isinstance(event, Gaussian | Shuffled) or math.isfinite(pure_epsilon(event, adjacency)):
        return True
    return isinstance(event, Sampled) and isinstance(event.event, Gaussian)


def pmf_of_atoms(
    losses: NDArray[np.float64], masses: NDArray[np.float64], step: float, beyond: float = 0.0
) -> pld_pmf.DensePLDPmf:
    """Point masses moved to the grid; ``beyond`` is the mass of an infinite loss.

    Each point is split between its two neighbours so that its mass keeps its sum under both distributions:
    connect the dots (Doroshenko et al. 2022), for a discrete distribution.

    Example:
        >>> coin = pmf_of_atoms(np.array([-1.0, 1.0]), np.array([0.26894142, 0.73105858]), 0.25)
        >>> round(float(coin.get_delta_for_epsilon(0.0)), 4)
        0.4621
    """
    cells = np.floor(losses / step).astype(np.int64)
    upper = masses * np.clip(np.expm1(cells * step - losses) / np.expm1(-step), 0.0, 1.0)
    lowest = int(cells.min())
    size = int(cells.max()) - lowest + 2
    probabilities = np.bincount(cells - lowest, masses - upper, size)
    probabilities += np.bincount(cells - lowest + 1, upper, size)
    return pld_pmf.DensePLDPmf(step, lowest, probabilities, beyond, pessimistic_estimate=True)


def _pure(epsilon: float, step: float) -> Loss:
    """The worst mechanism with this epsilon at delta zero: randomised response."""
    likely = 1 / (1 + math.exp(-epsilon))
    return Loss(pmf_of_atoms(np.array([-epsilon, epsilon]), np.array([1 - likely, likely]), step))


def one(event: Event, adjacency: Adjacency, step: float) -> Loss:
    """The loss distribution of a supported event seen once.

    Example:
        >>> once = one(Gaussian(2.0, 1.0), Adjacency.REPLACE_ONE, 1e-3)
        >>> round(once.get_epsilon_for_delta(1e-6), 2)
        4.89
    """
    match event:
        case Gaussian(noise_std, clip):
            return _gaussian(noise_std, clip, 1.0, adjacency, step)
        case Sampled(Gaussian(noise_std, clip), Poisson(rate)):
            return _gaussian(noise_std, clip, rate, adjacency, step)
        case Sampled(Gaussian(noise_std, clip), FixedSize() as sampling):
            return Loss(fixed_size.pmf(adjacency.reach * clip / noise_std, sampling.rate, step))
        case Laplace(scale, clip, 1):
            return library.from_laplace_mechanism(
                scale, sensitivity=adjacency.reach * clip, value_discretization_interval=step
            )
        case RandomisedResponse(epsilon, flips):
            return _pure(epsilon, step).self_compose(flips)
        case Shuffled():
            return Loss(shuffle.pmf(event, step))
        case _:
            return _pure(pure_epsilon(event, adjacency), step)


def _gaussian(noise_std: float, clip: float, rate: float, adjacency: Adjacency, step: float) -> Loss:
    return library.from_gaussian_mechanism(
        noise_std,
        sensitivity=clip,
        value_discretization_interval=step,
        sampling_prob=rate,
        neighboring_relation=_RELATION[adjacency],
    )


def composed(counts: Counts, adjacency: Adjacency, step: float) -> Loss:
    """The loss distribution of everything in ``counts`` seen in any order, even chosen adaptively.

    Example:
        >>> whole = composed({Gaussian(20.0, 1.0): 100}, Adjacency.ADD_REMOVE, 1e-3)
        >>> round(whole.get_epsilon_for_delta(1e-6), 2)
        2.25
    """
    parts = (
        one(event, adjacency, step) if times == 1 else one(event, adjacency, step).self_compose(times)
        for event, times in counts.items()
    )
    return reduce(lambda left, right: left.compose(right), parts)


def epsilon_at(law: Loss, delta: float) -> float:
    """The epsilon of a loss distribution at ``delta``.

    The library divides by ``exp(-epsilon)``, which doubles lose above about 700. From :data:`FAR` on the same
    number is found by halving, from its deltas, which stay exact.

    Example:
        >>> bits = _pure(2.5, 1e-2).self_compose(300)
        >>> round(epsilon_at(bits, 1e-6))
        725
    """
    with np.errstate(over="ignore"):
        found = float(law.get_epsilon_for_delta(delta))
    if found < FAR:
        return found
    low, high = FAR / 2, FAR
    while law.get_delta_for_epsilon(high) > delta:
        low, high = high, 2 * high
        if high > 1e9:
            return math.inf  # what has an infinite loss weighs more than delta
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if law.get_delta_for_epsilon(middle) > delta else (low, middle)
    return high


def _width(event: Event, adjacency: Adjacency) -> float:
    """About the largest loss one event can show."""
    match event:
        case Gaussian(noise_std, clip) | Sampled(Gaussian(noise_std, clip), _):
            mu = adjacency.reach * clip / noise_std
            return mu * mu / 2 + fixed_size.TAIL * mu
        case RandomisedResponse(epsilon, _):
            return epsilon
        case _:
            return pure_epsilon(event, adjacency)


def step_for(counts: Counts, adjacency: Adjacency, expected: float, points: int = POINTS) -> float:
    """A grid step for an answer of about ``expected``.

    Connecting the dots adds at most a quarter step squared of variance, and an eighth of mean, per
    composition, so the grid becomes finer with the square root of their number; and no distribution may need
    millions of points.

    Example:
        >>> step_for({Sampled(Gaussian(2.0, 1.0), Poisson(0.1)): 1000}, Adjacency.ADD_REMOVE, expected=1.0)
        0.0002
    """
    widest = max(_width(event, adjacency) for event in counts)
    rounds = sum(times * getattr(event, "flips", 1) for event, times in counts.items())
    fine = expected / points / max(1.0, math.sqrt(rounds / 1000))
    return max(min(fine, math.sqrt(4 * expected / points / rounds)), widest / (40 * points), 1e-8)


def epsilon(counts: Counts, delta: float, adjacency: Adjacency, step: float | None = None) -> float:
    """The epsilon of everything in ``counts``; without a ``step`` one is chosen for about four digits.

    Example:
        >>> round(
        ...     epsilon({Sampled(Gaussian(2.0, 1.0), Poisson(30 / 4800)): 1000}, 1e-6, Adjacency.ADD_REMOVE),
        ...     3,
        ... )
        0.436
    """
    if step is not None:
        return epsilon_at(composed(counts, adjacency, step), delta)
    expected = 10.0
    for points in (POINTS // 10, POINTS // 10, POINTS):
        rough = epsilon(counts, delta, adjacency, step_for(counts, adjacency, expected, points))
        if not math.isfinite(rough):
            break
        expected = rough
    return rough
