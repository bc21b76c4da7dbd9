"""FedMMF as loops over users and items, from the paper's equations, in double precision."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
History = Sequence[tuple[int, float]]


def ridge(features: Matrix, ratings: Matrix, reg: float) -> tuple[float, Matrix]:
    """Bias and weights that minimise ``sum (r - b - w . x)^2 + reg |w|^2``: normal equations, bias free."""
    count, width = features.shape
    design = np.hstack([np.ones((count, 1)), features])
    penalty = reg * np.eye(width + 1)
    penalty[0, 0] = 0.0
    found = np.asarray(np.linalg.solve(design.T @ design + penalty, design.T @ ratings), dtype=np.float64)
    return float(found[0]), found[1:]


def masked(rated: History, features: Matrix, reg: float) -> tuple[History, Matrix]:
    """Algorithm 2, lines 6 and 7 (order one): ratings less a linear model of their owner's; and the model."""
    items = [item for item, _ in rated]
    bias, weights = ridge(features[items], np.array([rating for _, rating in rated]), reg)
    mask = bias + features @ weights
    return [(item, rating - mask[item]) for item, rating in rated], mask


def round_of(
    users: Matrix, items: Matrix, over: Sequence[History], rate: float, reg: float
) -> tuple[Matrix, Matrix]:
    """Algorithm 2, lines 11 to 15: each its vector, then gradients with it; the server their sum."""
    new_users, total = users.copy(), np.zeros_like(items)
    for user, mine in enumerate(over):
        p = users[user]
        slope = np.zeros_like(p)
        for item, rating in mine:
            slope += reg * p - (rating - items[item] @ p) * items[item]  # Eq. 7, with the sign of Eq. 4
        p = new_users[user] = p - rate * slope
        for item, rating in mine:
            total[item] += reg * items[item] - (rating - items[item] @ p) * p  # Eq. 6
    return new_users, items - rate * total
