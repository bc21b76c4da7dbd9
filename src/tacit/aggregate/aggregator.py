"""From deliveries to one total."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from tacit.types import Array, Arrays, Delivers, RoundFacts


class Aggregator(ABC):
    """Sums what arrives, then says what one step should see.

    Protections act on the sum between ``total`` and ``normalised``: noise belongs on the sum.
    """

    accepts: ClassVar[frozenset[Delivers]]

    @abstractmethod
    def start(self, shared: Mapping[str, Array]) -> Any:
        """An empty tally; the only thing here that changes."""

    @abstractmethod
    def add(self, tally: Any, arrays: Arrays) -> None:
        """Take one delivery into the tally."""

    @abstractmethod
    def total(self, tally: Any) -> dict[str, Array]:
        """The sum of everything."""

    @abstractmethod
    def normalised(self, total: Mapping[str, Array], facts: RoundFacts) -> dict[str, Array]:
        """The sum divided as the method says."""
