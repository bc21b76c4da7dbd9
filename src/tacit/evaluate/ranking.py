"""Metrics of a ranking, one value per user; a reported metric is their mean.

Where a user's held-out items share one list (the full protocol), the usual definitions hold. Where each was
ranked alone, each is a query with one relevant item, and a user's value is the mean over these queries.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.evaluate.ranks import Ranks

PerUser = NDArray[np.float64]
Metric = Callable[[Ranks, int], PerUser]


def hit_rate(ranks: Ranks, k: int) -> PerUser:
    """Whether at least one held-out item is among the first k (ranked alone: the share that is).

    Example:
        >>> from tacit.evaluate.ranks import Ranks
        >>> at = np.array([[2, 5]], "i4")
        >>> shown = np.empty((1, 0), "i4")
        >>> both = np.tile(at, (2, 1))
        >>> two = Ranks(at[0], np.array([0, 2]), at[0], at[0], both, at[0], shown, False, 9)
        >>> hit_rate(two, 3).tolist()
        [1.0]
    """
    hits = _within(ranks, k)
    return _mean(ranks, hits) if ranks.alone else (_sum(ranks, hits) > 0).astype(np.float64)


def recall(ranks: Ranks, k: int) -> PerUser:
    """The share of a user's held-out items among the first k: hits / items, not hits / min(k, items).

    Example:
        >>> from tacit.evaluate.ranks import Ranks
        >>> at = np.array([[2, 5]], "i4")
        >>> shown = np.empty((1, 0), "i4")
        >>> both = np.tile(at, (2, 1))
        >>> two = Ranks(at[0], np.array([0, 2]), at[0], at[0], both, at[0], shown, False, 9)
        >>> recall(two, 3).tolist()
        [0.5]
    """
    return _mean(ranks, _within(ranks, k))


def ndcg(ranks: Ranks, k: int) -> PerUser:
    """Discounted gain ``sum 1 / log2(rank + 1)`` over the first k, divided by the best attainable.

    With one held-out item, or each ranked alone, the best is 1 and a value is ``1 / log2(rank + 1)``.

    Example:
        >>> from tacit.evaluate.ranks import Ranks
        >>> at = np.array([[3]], "i4")
        >>> shown = np.empty((1, 0), "i4")
        >>> one = Ranks(at[0], np.array([0, 1]), at[0], at[0], np.tile(at, (2, 1)), at[0], shown, False, 9)
        >>> ndcg(one, 10).tolist()
        [0.5]
    """
    gains = _within(ranks, k) / np.log2(ranks.ranks + 1.0)
    if ranks.alone:
        return _mean(ranks, gains)
    best = np.cumsum(1 / np.log2(np.arange(min(k, ranks.catalogue)) + 2.0))
    return _sum(ranks, gains) / best[np.minimum(ranks.positives, len(best)) - 1]


def reciprocal_rank(ranks: Ranks, k: int | None = None) -> PerUser:
    """One over the rank of the first held-out item (ranked alone: the mean over items); 0 beyond k.

    Example:
        >>> from tacit.evaluate.ranks import Ranks
        >>> at = np.array([[4, 2]], "i4")
        >>> shown = np.empty((1, 0), "i4")
        >>> both = np.tile(at, (2, 1))
        >>> two = Ranks(at[0], np.array([0, 2]), at[0], at[0], both, at[0], shown, False, 9)
        >>> reciprocal_rank(two).tolist()
        [0.5]
    """
    inverse = 1.0 / ranks.ranks if k is None else _within(ranks, k) / ranks.ranks
    if ranks.alone:
        return _mean(ranks, inverse)
    return np.maximum.reduceat(inverse, ranks.offsets[:-1]) if len(ranks.users) else inverse


def _within(ranks: Ranks, k: int) -> PerUser:
    if k < 1:
        raise TacitError(f"a cut-off of {k}", "use at least 1, as in hr@10")
    return (ranks.ranks <= k).astype(np.float64)


def _sum(ranks: Ranks, values: PerUser) -> PerUser:
    return np.add.reduceat(values, ranks.offsets[:-1]) if len(ranks.users) else values


def _mean(ranks: Ranks, values: PerUser) -> PerUser:
    return _sum(ranks, values) / ranks.positives
