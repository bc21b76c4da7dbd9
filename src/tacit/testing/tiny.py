"""Federations small enough to check by hand or by slow loops."""

import numpy as np
from numpy.typing import NDArray

from tacit.data.interactions import Features, Scale
from tacit.federation.federation import Federation


def tiny_federation(users: int = 12, items: int = 15, seed: int = 0, *, silent: int = 0) -> Federation:
    """Random whole-star ratings and features; the last ``silent`` users have no ratings.

    Example:
        >>> len(tiny_federation(5, 6).people)
        5
    """
    generator = np.random.default_rng(seed)
    lists = [_some(generator, items, people=u < users - silent) for u in range(users)]
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum([len(mine) for mine in lists])])
    flat = np.concatenate(lists).astype(np.int32)
    ratings = generator.integers(1, 6, len(flat)).astype(np.float32)
    return Federation(offsets, flat, ratings, items, Scale(1, 5, 1), *_features(generator, users, items))


def _some(generator: np.random.Generator, items: int, *, people: bool) -> NDArray[np.int64]:
    return np.sort(generator.permutation(items)[: generator.integers(1, items // 2 + 1) if people else 0])


def _features(generator: np.random.Generator, users: int, items: int) -> tuple[Features, Features]:
    of_users = Features(
        categories={"gender": generator.integers(0, 2, users).astype(np.int32)},
        numbers={"age": generator.integers(18, 60, users).astype(np.float32)},
        labels={"gender": ("F", "M")},
    )
    of_items = Features(
        flags={"genres": generator.integers(0, 2, (items, 3)).astype(np.uint8)},
        numbers={"year": generator.integers(1950, 2000, items).astype(np.float32)},
        texts={"title": np.array([f"Film {i}" for i in range(items)])},
        labels={"genres": ("Comedy", "Drama", "War")},
    )
    return of_users, of_items
