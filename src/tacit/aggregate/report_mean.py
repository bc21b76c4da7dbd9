"""From randomised reports to an unbiased estimate of the mean gradient."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.aggregate.aggregator import Aggregator
from tacit.kernels.reports import add_reports
from tacit.kernels.rotation import padded_shape, rotated_back
from tacit.types import Array, Arrays, Delivers, Floats, Long, RoundFacts


@dataclass
class ReportTally:
    """The sum of the bits about each entry, as plus or minus one, and how many reports named no entry."""

    shape: tuple[int, ...]
    net: Long
    refused: int = 0


@dataclass(frozen=True)
class ReportMean(Aggregator):
    """``B / (scale N k)`` times the sum of the bits (as plus or minus one) about each entry.

    ``B = (e^eps + 1) / (e^eps - 1)`` times the number of entries makes one report unbiased. ``divide=False``
    leaves out the ``1 / k``, as published: that estimates ``k`` times the gradient. ``rotated`` reports are
    turned back. Sums are of whole numbers: exact, and the same in any order. Words that name no entry are
    not counted.
    """

    accepts: ClassVar[frozenset[Delivers]] = frozenset({Delivers.REPORTS, Delivers.SHUFFLED})
    epsilon: float
    reports: int
    scale: float = 1.0
    divide: bool = True
    rotated: bool = False
    clip: float = 1.0
    table: str = "items"

    def start(self, shared: Mapping[str, Array]) -> ReportTally:
        """No report yet, one place per entry."""
        shape = shared[self.table].shape
        return ReportTally(shape, np.zeros(padded_shape(*shape) if self.rotated else shape, dtype=np.int64))

    def add(self, tally: ReportTally, arrays: Arrays) -> None:
        """Add some reports."""
        words: NDArray[np.uint32] = arrays["reports"]  # type: ignore[assignment]
        tally.refused += add_reports(tally.net.reshape(-1), words)

    def total(self, tally: ReportTally) -> dict[str, Array]:
        """The net count of each entry, and the shape of the table it belongs to."""
        return {self.table: tally.net, f"{self.table}.shape": np.array(tally.shape)}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """The estimate of the mean gradient."""
        net: Long = total[self.table]
        reports = max(1, facts.answered) * (self.reports if self.divide else 1)
        estimate: Floats = net * (net.size / (math.tanh(self.epsilon / 2) * self.scale * reports))
        if self.rotated:
            catalogue, dim = total[f"{self.table}.shape"].tolist()
            estimate = self.clip * rotated_back(estimate, catalogue, dim, facts.round)
        return {self.table: estimate}
