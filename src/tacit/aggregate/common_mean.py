"""The mean rating of everybody, from sums and counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.aggregate.aggregator import Aggregator
from tacit.types import Array, Arrays, Delivers, Floats, RoundFacts


@dataclass(frozen=True)
class CommonMean(Aggregator):
    """Adds ``told`` (a sum and a count per client) up; the total is the quotient.

    Example:
        >>> mean = CommonMean()
        >>> tally = mean.start({})
        >>> mean.add(tally, {"told": np.array([[9.0, 2.0], [6.0, 3.0]])})
        >>> mean.normalised(mean.total(tally), RoundFacts(0, "mean", 2, 2, 2))["mean"].tolist()
        [3.0]
    """

    accepts: ClassVar[frozenset[Delivers]] = frozenset(Delivers)

    def start(self, shared: Mapping[str, Array]) -> list[Any]:
        """Nothing told yet."""
        del shared
        return [np.zeros(2)]

    def add(self, tally: list[Any], arrays: Arrays) -> None:
        """Take some clients' two numbers in; whole numbers below 2^53 add exactly."""
        told: Floats = arrays["told"]  # type: ignore[assignment]
        tally[0] = tally[0] + told.sum(axis=0, dtype=np.float64)

    def total(self, tally: list[Any]) -> dict[str, Array]:
        """The two sums."""
        return {"told": tally[0]}

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """Their quotient."""
        del facts
        told: Floats = total["told"]
        return {"mean": told[:1] / max(1.0, float(told[1]))}
