"""Baselines that know nothing of people: chance and popularity."""

from dataclasses import dataclass

import numpy as np

from tacit.models.baselines.fitted import Known, Scores
from tacit.rng import Keyed, Keys, mixed
from tacit.types import Index

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TO_UNIT = np.float32(2.0**-24)


@dataclass(frozen=True)
class RandomOrder:
    """A score drawn once per user and item: the same in every call, however users are grouped.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> fitted = RandomOrder(SeededKeys(1), items=4)
        >>> both = fitted.scores(np.array([0, 1], "i4"))
        >>> bool((fitted.scores(np.array([1], "i4"))[0] == both[1]).all())
        True
    """

    keys: Keys
    items: int

    def scores(self, users: Index) -> Scores:
        """Uniform on [0, 1)."""
        keys: Keyed = self.keys.users(users, "baseline/random")
        with np.errstate(over="ignore"):
            steps = (np.arange(self.items, dtype=np.uint64) + np.uint64(1)) * _GOLDEN
            words = mixed(keys[:, None] + steps[None, :])
        return (words >> np.uint64(40)).astype(np.float32) * _TO_UNIT


@dataclass(frozen=True)
class Popularity:
    """The number of training interactions of each item, for everybody.

    Example:
        >>> Popularity(np.array([3, 0, 1], "f4")).scores(np.array([5, 6], "i4"))[1].tolist()
        [3.0, 0.0, 1.0]
    """

    counts: Scores

    def scores(self, users: Index) -> Scores:
        """The same row for every user."""
        return np.broadcast_to(self.counts, (len(users), len(self.counts)))


def random_order(known: Known) -> RandomOrder:
    """Rank at random: what chance achieves.

    Example:
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> log = Interactions(np.zeros(1, "i4"), np.zeros(1, "i4"), np.ones(1, "f4"))
        >>> random_order(Known(log, users=1, items=3, keys=SeededKeys(0))).items
        3
    """
    return RandomOrder(known.keys, known.items)


def popularity(known: Known) -> Popularity:
    """Rank by the number of training interactions.

    Example:
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> log = Interactions(np.arange(3, dtype="i4"), np.array([1, 1, 0], "i4"), np.ones(3, "f4"))
        >>> popularity(Known(log, users=3, items=3, keys=SeededKeys(0))).counts.tolist()
        [1.0, 2.0, 0.0]
    """
    return Popularity(np.bincount(known.train.items, minlength=known.items).astype(np.float32))
