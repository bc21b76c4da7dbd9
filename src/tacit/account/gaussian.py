"""The privacy curve of the Gaussian mechanism in closed form (Balle and Wang 2018, Theorem 8).

``mu`` is the distance between neighbouring sums in noise deviations; ``mu``-Gaussian DP means this curve.
"""

import math
from functools import cache
from typing import Any, cast

from tacit.errors import TacitError


@cache
def _log_normal_cdf() -> Any:
    from scipy.special import log_ndtr  # not at the top: scipy would slow `import tacit` down

    return log_ndtr


def check_delta(delta: float) -> float:
    """Return ``delta`` if it is a probability strictly between 0 and 1 that doubles can resolve.

    Example:
        >>> check_delta(1e-6)
        1e-06
    """
    if not 0 < delta < 1:
        raise TacitError(f"delta is {delta}", "give a probability between 0 and 1, well below 1 / users")
    if delta < 1e-12:
        raise TacitError(f"delta is {delta}, finer than floating point can account for", "use at least 1e-12")
    return delta


def check_epsilon(epsilon: float) -> float:
    """Return ``epsilon`` if it is finite and above zero.

    Example:
        >>> check_epsilon(2.0)
        2.0
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise TacitError(f"epsilon is {epsilon}", "give a finite number above zero")
    return epsilon


LEAST_NOISE, MOST_NOISE = 1e-12, 1e6


def check_noise(noise: float) -> float:
    """Return a noise in clip norms if it is one that means something and can be accounted for.

    Example:
        >>> check_noise(1.2)
        1.2
    """
    if not LEAST_NOISE <= noise <= MOST_NOISE:
        raise TacitError(
            f"noise of {noise:g} clip norms",
            f"give a finite number above zero: {LEAST_NOISE:g} to {MOST_NOISE:g}",
        )
    return noise


def delta_of(epsilon: float, mu: float) -> float:
    """The smallest delta at ``epsilon``.

    Example:
        >>> round(delta_of(1.0, 1.0), 4)
        0.1269
    """
    log_cdf = _log_normal_cdf()
    upper = math.exp(log_cdf(mu / 2 - epsilon / mu))
    return max(0.0, upper - math.exp(min(0.0, epsilon + log_cdf(-mu / 2 - epsilon / mu))))


def epsilon_of(mu: float, delta: float) -> float:
    """The smallest epsilon at ``delta``.

    Example:
        >>> round(epsilon_of(0.5, 1e-6), 3), round(epsilon_of(1.0, 1e-6), 3)
        (2.254, 4.887)
    """
    from scipy.optimize import brentq

    check_delta(delta)
    if delta_of(0.0, mu) <= delta:
        return 0.0
    top = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))  # from the tail of the privacy loss alone
    return cast("float", brentq(lambda epsilon: delta_of(epsilon, mu) - delta, 0.0, top + 1e-9, xtol=1e-12))


def mu_of(epsilon: float, delta: float) -> float:
    """The largest ``mu`` whose curve passes below ``(epsilon, delta)``.

    Example:
        >>> round(mu_of(4.887, 1e-6), 3)
        1.0
    """
    from scipy.optimize import brentq

    check_epsilon(epsilon)
    check_delta(delta)
    high = 1.0
    while delta_of(epsilon, high) < delta:
        high *= 2
    return cast("float", brentq(lambda mu: delta_of(epsilon, mu) - delta, 1e-12, high, xtol=1e-14))
