"""The mean of randomised vectors, and of their products, over reports of 16-bit numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.aggregate.aggregator import Aggregator
from tacit.kernels.seeded import PER_UNIT, whole
from tacit.types import Array, Arrays, Delivers, Floats, RoundFacts

_BLOCK = 2048


@dataclass
class VectorTally:
    """Running sums over reports, in steps of the numbers: how many, of each number, of each pair."""

    single: Floats
    pairs: Floats | None
    reports: int = 0


@dataclass(frozen=True)
class VectorMoments(Aggregator):
    """Sums of reports as long as the shared array ``like``; with ``second`` also of their products."""

    accepts: ClassVar[frozenset[Delivers]] = frozenset({Delivers.REPORTS, Delivers.SHUFFLED})
    like: str
    second: bool = False

    def start(self, shared: Mapping[str, Array]) -> VectorTally:
        """Nothing summed."""
        length = len(shared[self.like])
        pairs = np.zeros((length, length)) if self.second else None
        return VectorTally(np.zeros(length), pairs)

    def add(self, tally: VectorTally, arrays: Arrays) -> None:
        """Add some reports: whole numbers, exact in any order up to 2^23 reports of the largest."""
        words: Any = arrays["reports"]
        words = words.reshape(-1, words.shape[-1])
        for first in range(0, len(words), _BLOCK):
            steps = whole(words[first : first + _BLOCK], len(tally.single)).astype(np.float64)
            tally.single += steps.sum(axis=0)
            tally.reports += len(steps)
            if tally.pairs is not None:
                tally.pairs += steps.T @ steps

    def total(self, tally: VectorTally) -> dict[str, Array]:
        """The sums."""
        sums: dict[str, Array] = {"single": tally.single, "reports": np.array([tally.reports])}
        return sums if tally.pairs is None else {**sums, "pairs": tally.pairs}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """The means, in the units of the numbers sent."""
        del facts
        reports: Any = total["reports"]
        count = max(1, int(reports[0]))
        means: dict[str, Any] = {"single": total["single"] / (count * PER_UNIT)}
        if "pairs" in total:
            means["pairs"] = total["pairs"] / (count * PER_UNIT**2)
        return {**means, "reports": reports}
