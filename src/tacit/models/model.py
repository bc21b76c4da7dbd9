"""What a recommender model is: where its numbers live, how it starts, how it scores."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, Index


class Scorer(Protocol):
    """A trained model, ready to rank."""

    def scores(self, users: Index) -> Floats:
        """One row of scores over the whole catalogue per user."""
        ...

    def predict(self, users: Index, items: Index) -> Floats:
        """One number per pair."""
        ...


class Model(ABC):
    """Shared arrays live on the server; private ones never leave a device.

    ``adapts`` says that each device adapts the model to its owner before using it; ``folded_in`` does so.
    """

    adapts: ClassVar[bool] = False

    @abstractmethod
    def shared(self, catalogue: int, keys: Keys) -> dict[str, Array]:
        """The server's arrays before the first round."""

    @abstractmethod
    def private(self, users: Index, keys: Keys) -> dict[str, Array]:
        """Each person's own arrays before the first round, from that person's key."""

    @abstractmethod
    def folded_in(self, shared: Mapping[str, Array], cohort: Cohort) -> dict[str, Array]:
        """Private arrays for newcomers, computed on their devices from their histories alone."""

    @abstractmethod
    def scorer(self, shared: Mapping[str, Array], private: Mapping[str, Array]) -> Scorer:
        """A scorer for the people whose private arrays these are (row by row)."""
