"""The mean of whole updates over the number of people that was to be expected."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tacit.aggregate.aggregator import Aggregator
from tacit.errors import TacitError
from tacit.settings import head_count
from tacit.types import Array, Arrays, Delivers, RoundFacts, Rows


@dataclass(frozen=True)
class Mean(Aggregator):
    """``sum / expected cohort`` for every shared array.

    ``clients`` is the public number (or share) of people asked on average. The number who really answered
    depends on people's coins and data, so dividing by it would publish something no noise covers.
    ``beside`` names numbers that travel beside the shared arrays (a clipping bit).

    Example:
        >>> mean = Mean(clients=4)
        >>> tally = mean.start({"w": np.zeros(2, "f4")})
        >>> mean.add(tally, {"w": np.array([[1.0, 2.0], [3.0, 4.0]], "f4")})
        >>> mean.normalised(mean.total(tally), RoundFacts(0, "train", 10, 2, 2))["w"]
        array([1. , 1.5])
    """

    accepts: ClassVar[frozenset[Delivers]] = frozenset(Delivers)
    clients: int | float
    beside: tuple[str, ...] = ()

    def carrying(self, beside: tuple[str, ...]) -> "Mean":
        """These as well, a number each."""
        return replace(self, beside=beside)

    def start(self, shared: Mapping[str, Array]) -> dict[str, Any]:
        """Zeros of every shape, so that a round in which nobody came is a round like any other."""
        sums: dict[str, Any] = {name: np.zeros(array.shape) for name, array in shared.items()}
        return sums | {name: np.zeros(1) for name in self.beside}

    def add(self, tally: dict[str, Any], arrays: Arrays) -> None:
        """Add some clients' updates, in double precision or as whole numbers."""
        for name, array in arrays.items():
            if isinstance(array, Rows):
                raise TacitError(f"sparse rows of {name!r} in a mean of whole tables", "send dense updates")
            whole = np.issubdtype(array.dtype, np.integer)
            part = array.sum(axis=0, dtype=np.int64 if whole else np.float64)
            if whole and tally[name].dtype != np.int64:
                tally[name] = tally[name].astype(np.int64)
            tally[name] += part

    def total(self, tally: dict[str, Any]) -> dict[str, Array]:
        """The sums."""
        return dict(tally)

    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """Divided by the expected number of people."""
        expected = max(1, head_count(self.clients, facts.population, "clients"))
        return {name: array / expected for name, array in total.items()}
