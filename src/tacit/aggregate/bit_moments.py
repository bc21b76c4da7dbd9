"""How often randomised bits, and pairs of them, are one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.aggregate.aggregator import Aggregator
from tacit.types import Array, Arrays, Delivers, Floats, RoundFacts

_BLOCK = 4096


@dataclass
class Moments:
    """Running sums over reports: how many, of each bit, of each pair."""

    single: Floats
    pairs: Floats
    reports: int = 0


@dataclass(frozen=True)
class BitMoments(Aggregator):
    """Sums of bits and of products of bits over reports of ``bits`` bits in 32-bit words.

    Bits that no randomiser packed (``bits``, a number each) are counted as they are.
    """

    accepts: ClassVar[frozenset[Delivers]] = frozenset({Delivers.REPORTS, Delivers.SHUFFLED})
    bits: int

    def start(self, shared: Mapping[str, Array]) -> Moments:
        """Nothing counted."""
        del shared
        return Moments(np.zeros(self.bits), np.zeros((self.bits, self.bits), dtype=np.float32))

    def add(self, tally: Moments, arrays: Arrays) -> None:
        """Count some reports; products of 0 and 1 are exact in single precision up to 2^24 of them."""
        words: Any = arrays["bits"] if "bits" in arrays else arrays["reports"]
        words = np.ascontiguousarray(words.reshape(-1, words.shape[-1]))
        for first in range(0, len(words), _BLOCK):
            rows = words[first : first + _BLOCK]
            if "bits" not in arrays:
                rows = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little", count=self.bits)
            rows = rows.astype(np.float32)
            tally.single += rows.sum(axis=0, dtype=np.float64)
            tally.pairs += rows.T @ rows
            tally.reports += len(rows)

    def total(self, tally: Moments) -> dict[str, Array]:
        """The sums."""
        return {"single": tally.single, "pairs": tally.pairs, "reports": np.array([tally.reports])}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """As they are: the server's step divides by the number of reports."""
        del facts
        return dict(total)
