"""What a recommender model is: where its numbers live, how it starts, how it scores."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np

from tacit.errors import TacitError
from tacit.rng import Keys
from tacit.types import Array, Cohort, Floats, Index

MOST_MEMORY = 4.0
"""Gigabytes that one process may hold of what each device would keep for itself."""


def require_memory(what: str, people: int, numbers: int, remedy: str) -> None:
    """Refuse to simulate so many devices, each with so many numbers of its own.

    Example:
        >>> require_memory("scores", 100_000, 20_000, "take fewer people")
        Traceback (most recent call last):
        tacit.errors.TacitError: scores of 100000 simulated devices would take 8.0 GB; take fewer people
    """
    size = 4e-9 * people * numbers
    if size > MOST_MEMORY:
        raise TacitError(f"{what} of {people} simulated devices would take {size:.1f} GB", remedy)


def kept_back(people: int, shapes: Mapping[str, tuple[int, ...]], remedy: str) -> dict[str, Array]:
    """Room on each device for what it has not sent yet (deep gradient compression), with its velocity.

    Example:
        >>> sorted(kept_back(3, {"w": (2, 5)}, "take fewer"))
        ['unsent/w', 'velocity/w']
    """
    kinds = ("velocity", "unsent")
    each = len(kinds) * sum(math.prod(shape) for shape in shapes.values())
    require_memory("what is not sent yet", people, each, remedy)
    return {
        f"{kind}/{name}": np.zeros((people, *shape), dtype=np.float32)
        for name, shape in shapes.items()
        for kind in kinds
    }


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
