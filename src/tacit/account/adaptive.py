"""How adaptive clipping shares its noise between the update and the bit that steers the clip norm.

Clients send ``b - 1/2`` with ``b`` in {0, 1}, a vector of norm one half, so the bit is a Gaussian event with
``clip=0.5`` under both adjacencies, and in clip norms (Andrew et al. 2021, Theorem 1)

    1 / noise^2 = 1 / update_noise^2 + 1 / (2 bit_std)^2.

All deviations are of noise on the **sum**; ``noise`` and ``update_noise`` count in clip norms. The usual
replace-one form, ``1/z^2 - 1/bit_std^2`` with ``z`` in sensitivities of two clip norms, is the same equation.
"""

import math
from dataclasses import dataclass

from tacit.account.events import Composed, Gaussian
from tacit.account.gaussian import check_noise
from tacit.errors import TacitError


@dataclass(frozen=True)
class NoiseSplit:
    """Noise on the sum of updates, in clip norms, and on the sum of centred bits.

    Example:
        >>> NoiseSplit(update_noise=1.06, bit_std=1.5).event(clip=2.0).events[0]
        Gaussian(noise_std=2.12, clip=2.0)
    """

    update_noise: float
    bit_std: float

    def __post_init__(self) -> None:
        for name, value in (("update_noise", self.update_noise), ("bit_std", self.bit_std)):
            if not (math.isfinite(value) and value > 0):
                raise TacitError(f"{name} is {value}", "give a finite number above zero")

    @property
    def total(self) -> float:
        """The noise, in clip norms, of one release that would cost as much as both."""
        return (self.update_noise**-2 + (2 * self.bit_std) ** -2) ** -0.5

    def event(self, clip: float) -> Composed:
        """What one round releases: the noisy sum of updates clipped at ``clip`` and the noisy sum of bits."""
        return Composed((Gaussian(self.update_noise * clip, clip), Gaussian(self.bit_std, 0.5)))


def default_bit_std(noise: float, cohort: int) -> float:
    """A twentieth of the cohort, and never so little that the update would need much more noise.

    Example:
        >>> default_bit_std(1.0, cohort=200), default_bit_std(1.0, cohort=10)
        (10.0, 1.0)
    """
    if cohort < 1:
        raise TacitError(f"the cohort is {cohort}", "give at least one client")
    return max(cohort / 20, noise)


def split_noise(noise: float, bit_std: float) -> NoiseSplit:
    """Keep the cost of ``noise`` clip norms in total, with this deviation on the sum of bits.

    Example:
        >>> round(split_noise(1.0, bit_std=1.5).update_noise, 3)
        1.061
        >>> split_noise(1.0, bit_std=0.5)
        Traceback (most recent call last):
        tacit.errors.TacitError: noise of 0.5 on the bits costs more than 1.0 in all; raise it above 0.5
    """
    check_noise(noise)
    if not bit_std > 0:
        raise TacitError(f"noise of {noise} and {bit_std} on the bits", "give both above zero")
    if 2 * bit_std <= noise:
        raise TacitError(
            f"noise of {bit_std} on the bits costs more than {noise} in all",
            f"raise it above {noise / 2}",
        )
    return NoiseSplit((noise**-2 - (2 * bit_std) ** -2) ** -0.5, bit_std)


def published_split(z: float, h: float) -> NoiseSplit:
    """DP-PrivRec's split (Algorithm 2, lines 8 and 10): share ``h`` of the budget buys the clip norm.

    Its ``z`` counts in sensitivities of two clip norms, and its bits have sensitivity 2 where 1 is true, so
    they carry twice the noise they need. Kept to reproduce the paper.

    Example:
        >>> published = published_split(1.0, 0.7)
        >>> round(published.update_noise / 2, 3), round(published.bit_std, 2)
        (1.826, 2.39)
    """
    check_noise(z)
    if not 0 < h < 1:
        raise TacitError(f"z = {z}, h = {h}", "give z above zero and h between 0 and 1")
    return NoiseSplit(2 * z / math.sqrt(1 - h), 2 * z / math.sqrt(h))
