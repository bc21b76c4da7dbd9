"""Folds over ratings: every rating belongs to exactly one of five equal parts."""

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Interactions


def fold_of_each(log: Interactions, folds: int, draw: np.random.Generator) -> NDArray[np.uint8]:
    """The fold of each row, at random; sizes differ by one at most. One byte per row is all it needs.

    Example:
        >>> log = Interactions(np.zeros(7, "i4"), np.arange(7, dtype="i4"), np.ones(7, "f4"))
        >>> np.bincount(fold_of_each(log, 3, np.random.default_rng(1))).tolist()
        [3, 2, 2]
    """
    fold = np.resize(np.arange(folds, dtype=np.uint8), len(log))
    draw.shuffle(fold)
    return fold


def random_share(log: Interactions, share: float, draw: np.random.Generator) -> NDArray[np.bool_]:
    """Mark this share of the rows, rounded to whole rows, at random.

    Example:
        >>> log = Interactions(np.zeros(8, "i4"), np.arange(8, dtype="i4"), np.ones(8, "f4"))
        >>> int(random_share(log, 0.25, np.random.default_rng(1)).sum())
        2
    """
    marked = np.zeros(len(log), dtype=np.bool_)
    marked[: round(share * len(log))] = True
    draw.shuffle(marked)
    return marked
