"""Who is asked in a round."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tacit.errors import TacitError
from tacit.rng import Keys
from tacit.settings import head_count
from tacit.types import Index


class Sampling(ABC):
    """Draws the people of one part who are asked in a round.

    Sampling never helps against the server: it knows whom it asked.
    """

    @abstractmethod
    def draw(self, people: Index, round: int, keys: Keys) -> Index:
        """The people asked, in rising order."""


@dataclass(frozen=True)
class Everyone(Sampling):
    """All of them, every round."""

    def draw(self, people: Index, round: int, keys: Keys) -> Index:
        """Everybody."""
        del round, keys
        return people


@dataclass(frozen=True)
class FixedSize(Sampling):
    """A fresh draw of a fixed number (or share) of people in every round, without replacement.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> len(FixedSize(0.5).draw(np.arange(10, dtype="i4"), 0, SeededKeys(1)))
        5
    """

    amount: int | float

    def draw(self, people: Index, round: int, keys: Keys) -> Index:
        """That many people."""
        count = head_count(self.amount, len(people), "clients")
        if count == 0:
            raise TacitError(f"clients={self.amount} asks nobody", "give at least 1, or a share such as 0.2")
        if count == len(people):
            return people
        chosen = keys.generator("sampling", round).choice(len(people), count, replace=False)
        return people[np.sort(chosen)]
