"""From deliveries to one total."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from tacit.errors import TacitError
from tacit.types import Array, Arrays, Delivers, RoundFacts


class Aggregator(ABC):
    """Sums what arrives, then says what one step should see.

    Protections act on the sum between ``total`` and ``normalised``: noise belongs on the sum.
    """

    accepts: ClassVar[frozenset[Delivers]]

    @property
    def linear(self) -> bool:
        """Whether the total is the sum of what is sent, so that an upload moves it by its own length."""
        return True

    def carrying(self, beside: tuple[str, ...]) -> "Aggregator":
        """The same with these numbers in its total, which a protection sends beside the update."""
        if beside:
            raise TacitError(
                f"{', '.join(beside)} beside an update that is summed item by item or as reports",
                "leave adaptive-clip out; clip:SIZE works with every method that sends numbers",
            )
        return self

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
