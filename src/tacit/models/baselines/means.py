"""Baselines that predict ratings from means: global, per user, and damped user and item biases.

They order the catalogue by the predicted rating. Where the prediction is the same for all items of a user
(both plain means), every candidate ties and the order is chance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.models.baselines.fitted import Known, Scores, within
from tacit.types import Index


@dataclass(frozen=True)
class Biases:
    """The prediction ``mean + user + item``; a user or item nobody knows has a bias of 0.

    Example:
        >>> fitted = Biases(3.5, np.array([0.5, 0.0], "f4"), np.array([0.0, -1.0], "f4"))
        >>> fitted.predict(np.array([0, 1], "i4"), np.array([1, 1], "i4")).tolist()
        [3.0, 2.5]
    """

    mean: float
    user: Scores
    item: Scores

    def predict(self, users: Index, items: Index) -> Scores:
        """One rating per pair, not clipped."""
        return np.float32(self.mean) + self.user[users] + self.item[items]

    def scores(self, users: Index) -> Scores:
        """The predicted rating of every item."""
        return np.float32(self.mean) + self.user[users][:, None] + self.item[None, :]


def global_mean(known: Known) -> Biases:
    """Predict the mean of all training ratings.

    Example:
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> log = Interactions(np.array([0, 1], "i4"), np.array([0, 1], "i4"), np.array([2, 4], "f4"))
        >>> global_mean(Known(log, users=2, items=2, keys=SeededKeys(0))).mean
        3.0
    """
    return Biases(_mean(known), np.zeros(known.users, np.float32), np.zeros(known.items, np.float32))


def user_mean(known: Known) -> Biases:
    """Predict the mean of the user's own ratings (training and support), the global mean for a stranger.

    Example:
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> log = Interactions(np.array([0, 1], "i4"), np.array([0, 1], "i4"), np.array([2, 4], "f4"))
        >>> user_mean(Known(log, users=3, items=2, keys=SeededKeys(0))).scores(np.arange(3, dtype="i4"))[:, 0]
        array([2., 4., 3.], dtype=float32)
    """
    mean = _mean(known)
    return Biases(
        mean, _user_bias(known, mean, np.zeros(known.items), 0.0), np.zeros(known.items, np.float32)
    )


def biases(known: Known, *, item_damping: float = 5.0, user_damping: float = 5.0) -> Biases:
    """Predict ``mean + b_u + b_i`` with shrunken biases, item first, then user (Koren 2010, section 2.1).

    ``b_i = sum_u (r - mean) / (item_damping + n_i)`` and
    ``b_u = sum_i (r - mean - b_i) / (user_damping + n_u)``.

    Args:
        known: Item biases come from training, user biases from training and support.
        item_damping: How many ratings at the mean are imagined for each item, 0 to 1000.
        user_damping: The same for users.

    Returns:
        The fitted biases.

    Example:
        >>> from tacit.data.interactions import Interactions
        >>> from tacit.rng import SeededKeys
        >>> log = Interactions(np.array([0, 1], "i4"), np.array([0, 1], "i4"), np.array([2, 4], "f4"))
        >>> fitted = biases(Known(log, users=2, items=2, keys=SeededKeys(0)), item_damping=1, user_damping=1)
        >>> fitted.item.tolist(), fitted.user.tolist()
        ([-0.5, 0.5], [-0.25, 0.25])
    """
    within("item_damping", item_damping, 0, 1000)
    within("user_damping", user_damping, 0, 1000)
    mean = _mean(known)
    train = known.train
    item = _damped_mean(train.items, train.values - mean, known.items, item_damping)
    return Biases(mean, _user_bias(known, mean, item, user_damping), item.astype(np.float32))


def _mean(known: Known) -> float:
    return float(known.train.values.mean(dtype=np.float64))


def _user_bias(known: Known, mean: float, item: NDArray[np.float64], damping: float) -> Scores:
    users = np.concatenate([part.users for part in known.parts])
    residuals = np.concatenate([part.values - mean - item[part.items] for part in known.parts])
    return _damped_mean(users, residuals, known.users, damping).astype(np.float32)


def _damped_mean(
    groups: Index, values: NDArray[np.floating], size: int, damping: float
) -> NDArray[np.float64]:
    counts = np.bincount(groups, minlength=size)
    return np.bincount(groups, values, size) / np.maximum(counts + damping, np.finfo(float).tiny)
