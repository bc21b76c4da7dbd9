"""What is really so, for scoring only, and what everybody knows anyway: the attacks' prior."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tacit.data.interactions import Scale
from tacit.federation.federation import Federation
from tacit.types import Array, Floats, Index


@dataclass(frozen=True)
class Truth:
    """Everybody's real history; ``vectors`` holds everybody's private vector at the start of some rounds.

    ``asked`` names who was asked in a round; ``senders``, for a round and a recipient, who wrote the letters
    in the order in which they lie there.
    """

    federation: Federation
    vectors: Mapping[int, Array] = field(default_factory=dict)
    asked: Mapping[int, Index] = field(default_factory=dict)
    senders: Mapping[tuple[int, int], Index] = field(default_factory=dict)

    def items(self, user: int) -> Index:
        """What a person has met, rising."""
        return self.federation.items[self._mine(user)]

    def ratings(self, user: int) -> Floats:
        """The ratings, in the same order."""
        return self.federation.values[self._mine(user)].astype(np.float64)

    def _mine(self, user: int) -> slice:
        return slice(int(self.federation.offsets[user]), int(self.federation.offsets[user + 1]))


@dataclass(frozen=True)
class Prior:
    """What is public before anybody is attacked: the scale, and how popular and how liked each item is.

    Everything about a person is left out of the prior that the person is attacked with.
    """

    truth: Truth

    @property
    def scale(self) -> Scale | None:
        """The values a rating may take."""
        return self.truth.federation.scale

    @cached_property
    def _counts(self) -> Floats:
        federation = self.truth.federation
        return np.bincount(federation.items, minlength=federation.catalogue).astype(np.float64)

    @cached_property
    def _sums(self) -> Floats:
        federation = self.truth.federation
        sums = np.bincount(federation.items, weights=federation.values, minlength=federation.catalogue)
        return sums.astype(np.float64)

    def popularity(self, user: int) -> Floats:
        """For each item the share of the other people who have met it."""
        counts = self._counts.copy()
        counts[self.truth.items(user)] -= 1
        return counts / max(1, len(self.truth.federation.people) - 1)

    def overall(self, user: int) -> float:
        """The mean of all other people's ratings."""
        mine = self.truth.ratings(user)
        return float((self._sums.sum() - mine.sum()) / max(1.0, self._counts.sum() - len(mine)))

    def means(self, user: int) -> Floats:
        """Each item's mean rating by the others; the mean of all where nobody rated it."""
        sums, counts = self._sums.copy(), self._counts.copy()
        mine = self.truth.items(user)
        sums[mine] -= self.truth.ratings(user)
        counts[mine] -= 1
        return np.where(counts > 0, sums / np.maximum(counts, 1), self.overall(user))

    @cached_property
    def size(self) -> float:
        """How many items a person has met on average."""
        return float(self._counts.sum() / max(1, len(self.truth.federation.people)))


def agreement(guess: Index, truth: Index) -> tuple[float, float, bool]:
    """Precision, recall, and whether a guessed set is exactly the true one.

    Example:
        >>> agreement(np.array([1, 2, 3], "i4"), np.array([2, 3], "i4"))
        (0.6666666666666666, 1.0, False)
    """
    right = len(np.intersect1d(guess, truth))
    precision, recall = right / max(1, len(guess)), right / max(1, len(truth))
    return precision, recall, right == len(guess) == len(truth)
