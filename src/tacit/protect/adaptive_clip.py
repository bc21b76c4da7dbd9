"""A clip norm that follows a quantile of the updates' norms, through one noisy bit per person.

Each device divides its clipped update by the current norm S, so what it sends has norm at most one whatever
S is, and adds one number: ``weight`` times b - 1/2, where b says whether its update was within S. Update and
bit are one vector of norm at most ``sqrt(1 + weight^2 / 4)``. Any noise that follows covers both, and with
``weight = update_noise / bit_std`` it is exactly the split of Andrew et al. (2021): ``1/z^2 = 1/z_update^2 +
1/(2 bit_std)^2``.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from tacit.account.claim import Bound, Claim
from tacit.errors import TacitError
from tacit.protect.clip import norms, scaled, shrunk
from tacit.protect.protection import Form, Protection
from tacit.rng import Keyed, Keys
from tacit.settings import Between, CountOrShare, Positive, checked, head_count
from tacit.types import Arrays, RoundFacts

BIT = "clip.bit"
FASTEST = 10.0
"""One step may change the clip norm by ``exp`` of this at most."""


@dataclass(frozen=True)
class AdaptiveClip(Protection):
    """Clip at a norm S that the server moves towards the ``quantile`` of the norms.

    ``rule="geometric"``: ``S <- S exp(-rate (share - quantile))``, positive by construction; the share is
    noisy and divided by the public expected number of people (``clients``, or what the method's sampling asks
    on average). ``rule="arithmetic"`` and ``bits="clipped"``
    are DP-PrivRec's Algorithm 2 to the letter: line 11 subtracts, and line 23 compares the norm after
    line 22 has clipped it, so every bit is one and S only falls; a run in which S reaches zero is stopped.

    Formal guarantees:
        A static bound on what one person sends, bit included. Noise has to follow.

    ===========================  ====================================================
    edge case                    what happens
    ===========================  ====================================================
    an update that is not finite zeros are sent, the quantile as bit: it moves S neither way
    nobody was asked             S moves by the noise alone, as it must
    a total that is not finite   S stays
    ===========================  ====================================================

    Example:
        >>> AdaptiveClip(start=1.0, clients=10).bound(None).size == (1 + 1 / 4) ** 0.5
        True
    """

    start: float
    clients: int | float | None = None
    quantile: float = 0.5
    rate: float = 0.2
    weight: float = 1.0
    rule: Literal["geometric", "arithmetic"] = "geometric"
    bits: Literal["before", "clipped"] = "before"

    def __post_init__(self) -> None:
        for name, value in (("first clip norm", self.start), ("rate", self.rate), ("weight", self.weight)):
            if not (math.isfinite(value) and value > 0):
                raise TacitError(f"a {name} of {value}", "give a finite number above zero")
        if self.rate > FASTEST:
            raise TacitError(
                f"a rate of {self.rate:g} for the clip norm", f"give at most {FASTEST:g}, as 0.2"
            )
        if not 0 < self.quantile < 1:
            raise TacitError(f"a quantile of {self.quantile}", "give a number between 0 and 1, such as 0.5")

    @property
    def reads(self) -> frozenset[Form]:
        """Numbers, wherever they are."""
        return frozenset({Form.CHOSEN})

    @property
    def beside(self) -> tuple[str, ...]:
        """The bit."""
        return (BIT,)

    def init(self) -> float:
        """The first clip norm; it is public."""
        return self.start

    def bound(self, incoming: Bound | None) -> Bound:
        """Update and bit together; the same in every round."""
        del incoming
        return Bound(2, math.sqrt(1 + self.weight**2 / 4))

    def on_client(self, update: Arrays, bound: Bound | None, state: Any, keys: Keyed) -> Arrays:
        """Clip at the current norm, in units of it, and add the bit."""
        del bound
        lengths = norms(update) if update else np.zeros(len(keys))
        factors = shrunk(lengths, state)
        within = lengths <= state if self.bits == "before" else np.isfinite(lengths)
        centred = np.where(np.isfinite(lengths), within - 0.5, self.quantile - 0.5)
        bits = (self.weight * centred).astype(np.float32)[:, np.newaxis]
        return {**scaled(update, factors / state), BIT: bits}

    def on_server(
        self, total: Arrays, bound: Bound | None, state: Any, facts: RoundFacts, keys: Keys
    ) -> tuple[Arrays, Any]:
        """Back to the updates' own scale, and the next clip norm."""
        del bound, keys
        expected = facts.expected
        if self.clients is not None:
            expected = head_count(self.clients, facts.population, "clients")
        share = float(np.ravel(total[BIT])[0]) / self.weight / expected + 0.5  # type: ignore[arg-type]
        rest = {name: array * state for name, array in total.items() if name != BIT}
        return rest, self.moved(state, share)

    def moved(self, size: float, share: float) -> float:
        """The next clip norm after this (noisy) share of updates was within the last one.

        Example:
            >>> AdaptiveClip(start=1.0, clients=10).moved(1.0, share=0.5)
            1.0
        """
        if not math.isfinite(share):
            return size
        if self.rule == "geometric":
            return size * math.exp(-self.rate * (min(1.0, max(0.0, share)) - self.quantile))
        after = size - self.rate * (share - self.quantile)
        if after <= 0:
            raise TacitError(
                f"the clip norm fell to {after:.3g}: below zero it would turn updates round and stop noise",
                "use rule=geometric, as mode=corrected does",
            )
        return after

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """Nothing is promised yet, but contributions are bounded."""
        del state, facts
        return claim.with_bound(self.bound(claim.bound))


@checked
def adaptive_clip(
    *,
    start: Positive = 1.0,
    clients: CountOrShare | None = None,
    quantile: Annotated[float, Between(0, 1, open_low=True)] = 0.5,
    rate: Annotated[float, Between(0, FASTEST, open_low=True)] = 0.2,
    weight: Positive = 1.0,
) -> AdaptiveClip:
    """Clip at a norm that follows a quantile of the updates' norms, in units of that norm.

    Example:
        >>> adaptive_clip(start=0.5, clients=100).moved(0.5, share=1.0) < 0.5
        True
    """
    return AdaptiveClip(start, clients, quantile, rate, weight)


PROTECTIONS = {"adaptive-clip": adaptive_clip}
