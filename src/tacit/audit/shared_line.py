"""Which items a person has met, from what an upload says of each, whatever the method's formula.

In one person's upload the rows of all items lie (nearly) along one line, the person's own vector: items met
are pulled one way, the others pushed the other way or left alone. Which end is which, popularity tells.
"""

from collections.abc import Sequence

import numpy as np

from tacit.types import Floats

CLEAR = 0.7
"""The share of the spread that two groups must explain; parting a normal distribution in two explains .64."""


def along(rows: Floats, hint: Floats) -> tuple[Floats, float]:
    """Where each row lies along the rows' first direction, scaled to spread one, and how straight they are.

    ``hint`` is higher for items that are likelier met: the sign follows the mean hint of the two groups that
    the rows part into. (Not item by item: what is popular and was not met is often pushed hardest.)

    Example:
        >>> rows = np.array([[2.0, 4.0], [-1.0, -2.0], [-1.0, -2.0]])
        >>> places, straight = along(rows, hint=np.array([0.1, 0.9, 0.5]))
        >>> places.round(3).tolist(), round(straight, 6)
        ([-1.414, 0.707, 0.707], 1.0)
    """
    rows = rows.astype(np.float64)
    if not len(rows) or not rows.any() or not np.isfinite(rows).all():
        return np.zeros(len(rows)), 0.0
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    places = rows @ directions[0]
    spread = float(places.std())
    if spread == 0:
        return np.zeros(len(rows)), 0.0
    places = (places - places.mean()) / spread
    falling = np.argsort(-places, kind="stable")
    upper, lower = np.split(hint[falling], [parted(places)[0]])
    turned = -1.0 if upper.mean() < lower.mean() else 1.0
    return turned * places, float(sizes[0] ** 2 / np.square(sizes).sum())


def parted(scores: Floats) -> tuple[int, float]:
    """How many of the highest scores make up one of two groups, and how much of the spread the two explain.

    Example:
        >>> count, clear = parted(np.array([0.1, 5.0, 0.2, 4.9, 0.0]))
        >>> count, clear > 0.99
        (2, True)
    """
    falling = np.sort(scores)[::-1] - scores.mean()
    total = float(np.square(falling).sum())
    if len(falling) < 2 or total == 0:
        return len(falling), 0.0
    above = np.arange(1, len(falling))
    between = np.square(np.cumsum(falling)[:-1]) * len(falling) / (above * (len(falling) - above))
    best = int(np.argmax(between))
    return best + 1, float(between[best]) / total


def met_scores(tables: Sequence[tuple[np.ndarray, Floats]], popularity: Floats) -> tuple[Floats, np.ndarray]:
    """One score per item of the catalogue from all tables, straight ones counting most, and which were named.

    Example:
        >>> items, rows = np.array([0, 2]), np.array([[1.0], [-1.0]])
        >>> scores, named = met_scores([(items, rows)], np.array([0.2, 0.1, 0.7]))
        >>> scores.tolist(), named.tolist()
        ([-1.0, 0.0, 1.0], [True, False, True])
    """
    scores, named = np.zeros(len(popularity)), np.zeros(len(popularity), dtype=bool)
    for items, rows in tables:
        places, straight = along(rows, popularity[items])
        scores[items] += straight * places
        named[items] |= rows.any(axis=1)
    return scores, named
