"""Randomised response on a vector of bits: Warner's coin for each of them."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.account.claim import Adjacency, Bound, Claim, Observer, Unit
from tacit.account.local import lies_below, randomised_bits
from tacit.errors import TacitError
from tacit.protect.protection import Draws, Form, Protection
from tacit.types import Arrays, RoundFacts


@dataclass(frozen=True)
class RandomisedBits(Protection):
    """Every bit of ``bits`` (0 or 1, one row per person) kept with odds ``e^epsilon``, else flipped.

    Sent as one report per person, 32 bits to a word. All bits of a person stay together, so shuffling adds
    nothing that is claimed here.

    Formal guarantees:
        ``epsilon``-local privacy for one item being there or not, ``2 epsilon`` for one item being another
        one, ``bits * epsilon`` for a person's whole history.
    """

    epsilon: float
    bits: int

    def __post_init__(self) -> None:
        if self.epsilon <= 0 or self.bits < 1:
            raise TacitError(
                f"{self.bits} bits with epsilon={self.epsilon}", "give at least 1 bit and epsilon above 0"
            )

    @property
    def leaves(self) -> Form:
        """Reports."""
        return Form.REPORTS

    def noised(self, update: Arrays, bound: Bound | None, state: Any, draws: Draws) -> Arrays:
        """Flip each bit by a coin of its own, then pack."""
        del bound, state
        bits: Any = update["bits"]
        limit = np.uint64(2**64 - lies_below(self.epsilon))
        kept = draws.words(bits.shape[1]) < limit
        return {"reports": packed_bits(np.where(kept, bits, 1 - bits).astype(np.uint8))}

    def event(self, claim: Claim, state: Any, facts: RoundFacts) -> Claim:
        """One draw of all bits."""
        del state, facts
        claim = replace(claim, adjacency=Adjacency.REPLACE_ONE)
        answer = randomised_bits(self.epsilon, self.bits, Unit.USER, claim.adjacency)
        return claim.with_event(Observer.SERVER, answer).with_event(Observer.RELEASE, answer)


def packed_bits(bits: Any) -> Any:
    """Rows of bits as reports of 32-bit words.

    Example:
        >>> packed_bits(np.array([[1, 0, 1]], dtype=np.uint8))
        array([[[5]]], dtype=uint32)
    """
    words = math.ceil(bits.shape[1] / 32)
    padded = np.zeros((len(bits), 32 * words), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    octets = np.packbits(padded, axis=1, bitorder="little")
    return octets.view("<u4")[:, np.newaxis]
