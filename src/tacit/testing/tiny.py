"""Federations small enough to check by hand or by slow loops."""

import numpy as np

from tacit.data.interactions import Scale
from tacit.federation.federation import Federation


def tiny_federation(users: int = 12, items: int = 15, seed: int = 0, *, silent: int = 0) -> Federation:
    """Random whole-star ratings; the last ``silent`` users have none.

    Example:
        >>> len(tiny_federation(5, 6).people)
        5
    """
    generator = np.random.default_rng(seed)
    lists = [
        np.sort(
            generator.permutation(items)[
                : 0 if u >= users - silent else generator.integers(1, items // 2 + 1)
            ]
        )
        for u in range(users)
    ]
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum([len(mine) for mine in lists])])
    flat = np.concatenate(lists).astype(np.int32)
    return Federation(
        offsets, flat, generator.integers(1, 6, len(flat)).astype(np.float32), items, Scale(1, 5, 1)
    )
