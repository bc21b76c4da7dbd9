"""Errors of predicted ratings, clipped to the scale ratings are given on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Interactions, Scale
from tacit.errors import TacitError
from tacit.evaluate.scorer import Rater
from tacit.types import Index, Long

_BLOCK = 1 << 20


@dataclass(frozen=True)
class RatingErrors:
    """Sums of errors per user, from which means, per-user values and standard errors follow.

    Example:
        >>> errors = RatingErrors(
        ...     np.array([0, 1], "i4"), np.array([2, 1]), np.array([2.0, 1.0]), np.array([2.0, 1.0])
        ... )
        >>> errors.rmse, errors.mae, errors.rmse_per_user.tolist()
        (1.0, 1.0, [1.0, 1.0])
    """

    users: Index
    counts: Long
    squared: NDArray[np.float64]
    absolute: NDArray[np.float64]

    @property
    def rmse(self) -> float:
        """The root of the mean squared error over ratings."""
        return float(np.sqrt(self.squared.sum() / self.counts.sum()))

    @property
    def mae(self) -> float:
        """The mean absolute error over ratings."""
        return float(self.absolute.sum() / self.counts.sum())

    @property
    def rmse_per_user(self) -> NDArray[np.float64]:
        """The root of each user's mean squared error."""
        return np.sqrt(self.squared / self.counts)

    @property
    def mae_per_user(self) -> NDArray[np.float64]:
        """Each user's mean absolute error."""
        return self.absolute / self.counts

    @property
    def rmse_error(self) -> float:
        """The standard error of the RMSE when users, not ratings, are the independent draws."""
        return 0.0 if self.rmse == 0 else self._ratio_error(self.squared) / (2 * self.rmse)

    @property
    def mae_error(self) -> float:
        """The standard error of the MAE when users, not ratings, are the independent draws."""
        return self._ratio_error(self.absolute)

    def _ratio_error(self, sums: NDArray[np.float64]) -> float:
        # A mean over ratings is a ratio of two sums over users; this is its linearised variance.
        users = len(self.counts)
        if users < 2:
            return float("nan")
        residuals = sums - self.counts * (sums.sum() / self.counts.sum())
        return float(np.sqrt(users / (users - 1) * (residuals**2).sum()) / self.counts.sum())


def rating_errors(model: Rater, test: Interactions, scale: Scale) -> RatingErrors:
    """Compare predicted with given ratings.

    Args:
        model: Predicts ratings.
        test: Ratings it has not seen.
        scale: Predictions are clipped to it, as a rating outside cannot be given.

    Returns:
        Error sums per user with test ratings.

    Example:
        >>> class Five:
        ...     def predict(self, users, items):
        ...         return np.full(len(users), 5.5, "f4")
        >>> test = Interactions(np.array([0, 0], "i4"), np.array([1, 2], "i4"), np.array([5, 3], "f4"))
        >>> round(rating_errors(Five(), test, Scale(1, 5, 1)).rmse, 4)
        1.4142
    """
    if not len(test):
        raise TacitError("no test ratings to predict", "choose a split with a test part")
    users, rows = np.unique(test.users, return_inverse=True)
    squared, absolute = np.zeros(len(users)), np.zeros(len(users))
    for start in range(0, len(test), _BLOCK):
        part = slice(start, start + _BLOCK)
        difference = _predicted(model, test.users[part], test.items[part], scale) - test.values[part]
        squared += np.bincount(rows[part], difference**2, len(users))
        absolute += np.bincount(rows[part], np.abs(difference), len(users))
    return RatingErrors(users, np.bincount(rows).astype(np.int64), squared, absolute)


def _predicted(model: Rater, users: Index, items: Index, scale: Scale) -> NDArray[np.float64]:
    predictions = np.asarray(model.predict(users, items), dtype=np.float64)
    if predictions.shape != users.shape:
        raise TacitError(
            f"predictions of shape {predictions.shape} for {len(users)} pairs", "return one rating per pair"
        )
    if not np.isfinite(predictions).all():
        bad = int(users[int(np.argmin(np.isfinite(predictions)))])
        raise TacitError(
            f"the predictions for user {bad} are not finite",
            "the model has diverged: lower its rate, clip its updates or add less noise",
        )
    return np.clip(predictions, scale.low, scale.high)
