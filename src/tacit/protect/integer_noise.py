"""Exact draws of whole-number noise: a word of 64 random bits against a table of thresholds.

No floating-point number takes part in a draw, so there are none of the gaps that give continuous noise away.
A table leaves out tails of a probability below ``2**-64``; its thresholds are right to about twelve digits.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.errors import TacitError
from tacit.kernels.integers import guide_of, looked_up
from tacit.rng import Keyed
from tacit.types import Long

_LARGE = 2.0**28
"""From here on the Bessel function by Debye's expansion for large arguments: SciPy's ends at ``2**30``."""


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """A symmetric distribution over whole numbers as thresholds for 64-bit words.

    Example:
        >>> words = np.random.default_rng(1).integers(0, 2**64, (1, 20000), dtype=np.uint64)
        >>> drawn = skellam(100.0).drawn(words)
        >>> bool(abs(drawn.mean()) < 0.4 and abs(drawn.var() - 100) < 5)
        True
    """

    thresholds: Keyed
    guide: Long
    low: int

    def drawn(self, words: Keyed) -> Long:
        """One draw per word."""
        return looked_up(words, self.thresholds, self.guide) + self.low


def _table(chances: np.ndarray) -> NoiseTable:
    """From the probabilities of ``0, 1, 2, ...``, upwards of half the distribution."""
    whole = 2 * chances.sum() - chances[0]
    above = np.cumsum(chances[::-1])[::-1] / whole  # P(X >= k), summed from the small end
    top = int(np.flatnonzero(above >= 2.0**-64)[-1])
    below = [int(tail * 2.0**64) for tail in above[top:0:-1]]  # P(X <= -k) for k = top .. 1
    thresholds = [*below, *(2**64 - count for count in reversed(below))]
    table = np.array(thresholds, dtype=np.uint64)
    return NoiseTable(table, guide_of(table), -top)


@lru_cache(maxsize=16)
def skellam(variance: float) -> NoiseTable:
    """The difference of two Poisson numbers; the sum of many is one of the summed variance.

    Example:
        >>> skellam(4.0).low < -15
        True
    """
    whole = np.arange(_reach(variance))
    if variance < _LARGE:
        from scipy.special import ive  # loads on first use

        return _table(ive(whole, variance))
    squares = np.square(whole.astype(np.float64))
    near = squares / variance  # below 14**2, so that what the expansion leaves out is below 1e-15
    shape = -near / 2 + near**2 / (24 * variance) - near**3 / (80 * variance**2)
    length = np.sqrt(squares + variance**2)
    return _table(np.exp(shape) / np.sqrt(2 * np.pi * length) * (1 + 1 / (8 * length)))


@lru_cache(maxsize=16)
def discrete_gaussian(variance: float) -> NoiseTable:
    """Probabilities proportional to ``exp(-k**2 / (2 variance))`` on the whole numbers.

    Example:
        >>> discrete_gaussian(4.0).low
        -18
    """
    return _table(np.exp(-np.square(np.arange(_reach(variance), dtype=np.float64)) / (2 * variance)))


def _reach(variance: float) -> int:
    require_drawable(variance)
    return 64 + math.ceil(14 * math.sqrt(variance))


def require_drawable(variance: float) -> None:
    """Refuse noise that no table is made for.

    Example:
        >>> require_drawable(1e12)
        Traceback (most recent call last):
        tacit.errors.TacitError: whole-number noise of variance 1e+12; choose steps so that it lies ...
    """
    if not 1e-6 <= variance <= 1e11:
        raise TacitError(
            f"whole-number noise of variance {variance:g}",
            "choose steps so that it lies between 1e-6 and 1e11",
        )
