"""How sure a mean over people is: bootstrap intervals, with people as the independent draws."""

from dataclasses import dataclass

import numpy as np

from tacit.errors import TacitError
from tacit.rng import Keys
from tacit.types import Floats

RESAMPLES = 2000
_CELLS = 1 << 21


@dataclass(frozen=True)
class Interval:
    """A value and the interval that holds 95 % of what other draws of as many people would have given.

    Example:
        >>> Interval(0.5, 0.4, 0.6).low
        0.4
    """

    value: float
    low: float
    high: float


def bootstrap(
    values: Floats, *, keys: Keys, weights: Floats | None = None, squared: bool = False, level: float = 0.95
) -> Interval:
    """Percentiles of the metric over resampled people.

    Args:
        values: One value per person.
        keys: Draw the resamples; equal keys give equal intervals.
        weights: How many ratings are behind each person's value, where the metric is a mean over ratings.
        squared: The metric is a root of a mean of squares (RMSE).
        level: The share of the resamples inside.

    Returns:
        The metric over everybody, with its interval.

    Example:
        >>> from tacit.rng import SeededKeys
        >>> found = bootstrap(np.array([0.0, 1.0] * 50), keys=SeededKeys(0))
        >>> found.value, bool(0.39 < found.low < 0.42 and 0.58 < found.high < 0.61)
        (0.5, True)
    """
    people = len(values)
    if not people:
        raise TacitError("an interval over nobody", "give one value per evaluated person")
    if not 0 < level < 1:
        raise TacitError(f"a level of {level}", "give a share between 0 and 1, such as 0.95")
    own = np.asarray(values, dtype=np.float64) ** (2 if squared else 1)
    each = np.ones(people) if weights is None else np.asarray(weights, dtype=np.float64)
    total = own * each
    draw = keys.generator("bootstrap over people")
    found = np.empty(RESAMPLES)
    step = max(1, _CELLS // people)
    for start in range(0, RESAMPLES, step):
        size = min(step, RESAMPLES - start)
        chosen = draw.integers(0, people, (size, people))
        found[start : start + size] = total[chosen].sum(axis=1) / each[chosen].sum(axis=1)
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    numbers = np.array([total.sum() / each.sum(), low, high])
    value, low, high = (np.sqrt(numbers) if squared else numbers).tolist()
    return Interval(value, low, high)


def linearised(values: Floats, *, weights: Floats | None = None, squared: bool = False) -> Floats:
    """One number per person whose mean is the metric and whose spread over people is the metric's own.

    A mean over people is that already. A mean over ratings is a ratio of two sums over people, and RMSE its
    root: both are followed to the first order (the delta method), so that paired tests of people's numbers
    are tests of the metric that is reported.

    Args:
        values: One value per person.
        weights: How many ratings are behind each person's value, where the metric is a mean over ratings.
        squared: The metric is a root of a mean of squares (RMSE).

    Example:
        >>> own, ratings = np.array([0.5, 1.5]), np.array([1.0, 3.0])
        >>> bool(np.isclose(linearised(own, weights=ratings).mean(), (0.5 + 3 * 1.5) / 4))
        True
    """
    own = np.asarray(values, dtype=np.float64) ** (2 if squared else 1)
    each = np.ones(len(own)) if weights is None else np.asarray(weights, dtype=np.float64)
    whole = float((each * own).sum() / each.sum())
    around = each * (own - whole) / each.mean()
    if not squared:
        return whole + around
    root = float(np.sqrt(whole))
    return root + (around / (2 * root) if root else around)
