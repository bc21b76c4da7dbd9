"""What a shuffler adds to local privacy: the clones reduction as a privacy loss distribution.

Every other user's report looks, with probability ``clone``, like a fair draw from the two distributions
that could be the victim's (Feldman, McMillan and Talwar). For one shuffle of ``n`` reports the pair to tell
apart is, with ``C ~ Bin(n - 1, clone)``, ``A ~ Bin(C, 1/2)`` and ``D ~ Bernoulli(e^eps / (1 + e^eps))``,

    (A + D, C - A + 1 - D)  against  (A + 1 - D, C - A + D).

``clone`` is ``e^-eps`` for any randomiser (2021). The 2023 paper's ``2 / (e^eps + 1)`` was restricted by its
erratum: it holds only for some randomisers, among them one bit about a uniformly chosen coordinate.
Different shuffles of the same users compose, so the rounds multiply up.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tacit.account.events import Shuffled
from tacit.errors import TacitError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TAIL = 1e-18


def clone_probability(event: Shuffled) -> float:
    """How likely another user's report is a clone of the victim's.

    Example:
        >>> round(clone_probability(Shuffled(2.5, 1000)), 4)
        0.0821
        >>> round(clone_probability(Shuffled(2.5, 1000, one_bit=True)), 4)
        0.1517
    """
    rare = math.exp(-event.local_epsilon)
    return 2 * rare / (1 + rare) if event.one_bit else rare


@lru_cache(maxsize=2)
def losses(event: Shuffled) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Privacy losses of one shuffle and their probabilities; less than ``4e-18`` lies beyond.

    Given ``C = c``, seeing ``x`` in the first place has probability proportional to
    ``binom(c + 1, x) (a x + (1 - a)(c + 1 - x))`` in the upper distribution, ``a`` swapped in the lower.

    Example:
        >>> values, masses = losses(Shuffled(2.0, reports=1))
        >>> values[masses > 0.1].round(6).tolist(), masses[masses > 0.1].round(3).tolist()
        ([-2.0, 2.0], [0.119, 0.881])
    """
    import numpy as np
    from scipy.special import gammaln
    from scipy.stats import binom

    clone, rare = clone_probability(event), math.exp(-event.local_epsilon)
    keep, turn = 1 / (1 + rare), rare / (1 + rare)  # one minus the other would have no digits left
    others, tail = event.reports - 1, math.log(2 / _TAIL)
    spread = math.sqrt(2 * tail * others * clone * (1 - clone)) + tail  # Bernstein, for the number of clones
    centre = others * clone
    clones = np.arange(max(0, math.floor(centre - spread)), min(others, math.ceil(centre + spread)) + 1)
    widths = np.ceil(np.sqrt(clones * tail / 2)).astype(np.int64) + 2  # Hoeffding, for the fair coins
    starts = np.maximum(0, (clones + 1) // 2 - widths)
    stops = np.minimum(clones + 1, (clones + 2) // 2 + widths)
    total = np.repeat(clones + 1, stops - starts + 1).astype(np.float64)
    first = np.repeat(starts - np.cumsum(np.r_[0, (stops - starts + 1)[:-1]]), stops - starts + 1)
    x = (np.arange(len(total)) + first).astype(np.float64)
    upper, lower = keep * x + turn * (total - x), turn * x + keep * (total - x)
    log_mass = gammaln(total + 1) - gammaln(x + 1) - gammaln(total - x + 1) - (total - 1) * math.log(2)
    log_mass += np.repeat(binom.logpmf(clones, others, clone), stops - starts + 1) - np.log(total)
    masses = upper * np.exp(log_mass)
    # Log-gammas of large numbers are good to 1e-11 only; the mass really cut off is bounded by the tails.
    masses /= masses.sum()
    values = np.log(upper) - np.log(lower)
    for shared in (values, masses):
        shared.flags.writeable = False
    return values, masses


def pmf(event: Shuffled, step: float) -> Any:
    """One shuffle as a pessimistic privacy loss distribution on multiples of ``step``.

    Example:
        >>> round(pmf(Shuffled(4.0, 100_000), step=1e-4).get_epsilon_for_delta(1e-6), 4)
        0.1698
    """
    from tacit.account.losses import pmf_of_atoms

    values, masses = losses(event)
    return pmf_of_atoms(values, masses, step, beyond=4 * _TAIL)


def gaussian_mu(event: Shuffled, times: int) -> float:
    """The closed form for many shuffles: nearly Gaussian DP with this ``mu``.

    The difference of the two counts moves by ``2 (2a - 1)`` against a variance of about ``n clone``. It is
    an approximation, for planning and for checking the exact numbers, never a claim.

    Example:
        >>> round(gaussian_mu(Shuffled(2.5, 75_040, one_bit=True), 2000), 3)
        0.711
    """
    if times < 1:
        raise TacitError(f"{times} shuffles", "give at least 1")
    advantage = math.tanh(event.local_epsilon / 2)
    return 2 * advantage * math.sqrt(times / (event.reports * clone_probability(event)))
