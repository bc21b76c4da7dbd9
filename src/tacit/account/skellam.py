"""Noise that survives modular arithmetic: integer updates, Skellam shares, and their bookkeeping.

A client clips to ``clip``, rotates, multiplies by ``scale``, rounds at random until the norm is within
:func:`rounded_norm`, and adds the difference of two Poisson draws. Skellam variables add up to Skellam
variables, so the sum carries exactly the shares of those who answered. Rounding lengthens vectors; the
claim uses the lengthened norm.
"""

import math
from dataclasses import dataclass

from tacit.account.events import Skellam
from tacit.errors import TacitError

LUCK = math.exp(-0.5)
"""Rounding repeats until the norm is within its bound; one attempt fails at most this often."""


def rounded_norm(clip: float, scale: float, dimension: int, luck: float = LUCK) -> float:
    """The longest integer vector a client may send (Kairouz, Liu and Steinke 2021, Section 4.2).

    Example:
        >>> round(rounded_norm(1.0, 1336.0, 65_536) / 1336.0, 4)
        1.005
    """
    _check(clip, scale, dimension)
    if not 0 < luck < 1:
        raise TacitError(f"luck is {luck}", "give a probability between 0 and 1")
    long, root = scale * clip, math.sqrt(dimension)
    likely = long**2 + dimension / 4 + math.sqrt(2 * math.log(1 / luck)) * (long + root / 2)
    return math.sqrt(min(likely, (long + root) ** 2))


def scale_for(clip: float, dimension: int, overhead: float = 0.01, luck: float = LUCK) -> float:
    """The smallest scale at which rounding adds at most this share to the squared norm.

    Example:
        >>> round(scale_for(1.0, 65_536)), round(scale_for(1.0, 16_384))
        (1336, 697)
    """
    _check(clip, 1.0, dimension)
    if not overhead > 0:
        raise TacitError(f"a rounding overhead of {overhead}", "give a share above zero, such as 0.01")
    slope = math.sqrt(2 * math.log(1 / luck))
    constant = dimension / 4 + slope * math.sqrt(dimension) / 2
    return (slope + math.sqrt(slope**2 + 4 * overhead * constant)) / (2 * overhead) / clip


def skellam_event(share_variance: float, honest: int, norm: float, dimension: int) -> Skellam:
    """What the sum of integer vectors of at most ``norm`` shows when ``honest`` clients added their share.

    Count only clients that surely answered and do not collude: those beyond the threshold are a bonus that
    nobody can verify.

    Example:
        >>> skellam_event(4.0, honest=25, norm=10.0, dimension=16)
        Skellam(variance=100.0, clip=10.0, clip_l1=40.0)
    """
    _check(norm, 1.0, dimension)
    if honest < 1 or not share_variance > 0:
        raise TacitError(
            f"{honest} honest clients with shares of variance {share_variance}", "both must be above zero"
        )
    # For integers |x| <= x^2, so the L1 norm is also at most the squared L2 norm.
    return Skellam(share_variance * honest, norm, min(math.sqrt(dimension) * norm, norm**2))


@dataclass(frozen=True)
class SumPlan:
    """How to send one noisy sum through integers: clients scale, add their share, and use so many bits."""

    scale: float
    norm: float
    share_variance: float
    bits: int
    event: Skellam


def plan_sum(
    noise: float, clip: float, dimension: int, honest: int, clients: int, overhead: float = 0.01
) -> SumPlan:
    """Integers for a sum whose noise is ``noise`` clip norms once ``honest`` clients have answered.

    ``bits`` keeps 4.5 deviations of the rotated sum and its noise within the modulus.

    Example:
        >>> plan = plan_sum(2.0, clip=1.0, dimension=65_536, honest=100, clients=100)
        >>> round(plan.share_variance**0.5), plan.bits
        (267, 15)
    """
    if clients < honest:
        raise TacitError(f"{honest} honest clients among {clients}", "count at most all of them")
    if not noise > 0:
        raise TacitError(f"the noise is {noise}", "give a number above zero")
    scale = scale_for(clip, dimension, overhead)
    norm = rounded_norm(clip, scale, dimension)
    share = (noise * scale * clip) ** 2 / honest
    spread = math.hypot(clients * scale * clip / math.sqrt(dimension), math.sqrt(share * clients))
    bits = math.ceil(math.log2(2 * 4.5 * spread))
    return SumPlan(scale, norm, share, bits, skellam_event(share, honest, norm, dimension))


def _check(size: float, scale: float, dimension: int) -> None:
    if not (math.isfinite(size) and size > 0 and math.isfinite(scale) and scale > 0 and dimension >= 1):
        raise TacitError(
            f"clip {size}, scale {scale}, dimension {dimension}", "give finite numbers above zero"
        )
