"""From PrivUnit's reports to an unbiased estimate of the mean gradient."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.aggregate.aggregator import Aggregator
from tacit.aggregate.report_mean import ReportTally
from tacit.kernels.rotation import padded_shape, rotated_back
from tacit.kernels.seeded import PER_UNIT, add_packed
from tacit.types import Array, Arrays, Delivers, Floats, Long, RoundFacts


@dataclass(frozen=True)
class VectorReportMean(Aggregator):
    """The mean of what reports say of each rotated entry, turned back.

    ``unit`` is what one unit of a sent number is worth: the length a truth was clipped to, over the mean gain
    of the randomiser, over the scale.
    """

    accepts: ClassVar[frozenset[Delivers]] = frozenset({Delivers.REPORTS, Delivers.SHUFFLED})
    reports: int
    coordinates: int
    unit: float
    clip: float = 1.0
    table: str = "items"

    def start(self, shared: Mapping[str, Array]) -> ReportTally:
        """No report yet, one place per rotated entry."""
        shape = shared[self.table].shape
        return ReportTally(shape, np.zeros(padded_shape(*shape), dtype=np.int64))

    def add(self, tally: ReportTally, arrays: Arrays) -> None:
        """Add some reports."""
        words: NDArray[np.uint32] = arrays["reports"]  # type: ignore[assignment]
        add_packed(tally.net.reshape(-1), words.reshape(-1, words.shape[-1]))

    def total(self, tally: ReportTally) -> dict[str, Array]:
        """The sum at each entry, and the shape of the table it belongs to."""
        return {self.table: tally.net, f"{self.table}.shape": np.array(tally.shape)}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """The estimate of the mean gradient."""
        net: Long = total[self.table]
        numbers = max(1, facts.answered) * self.reports * self.coordinates
        estimate: Floats = net * (net.size * self.unit / (PER_UNIT * numbers))
        catalogue, dim = total[f"{self.table}.shape"].tolist()
        return {self.table: self.clip * rotated_back(estimate, catalogue, dim, facts.round)}
