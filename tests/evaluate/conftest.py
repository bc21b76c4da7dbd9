"""Small made-up splits and models, shared by the tests of this room."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tacit.data.interactions import Interactions


@dataclass(frozen=True)
class Parts:
    train: Interactions
    test: Interactions
    support: Interactions | None = None


@dataclass(frozen=True)
class Table:
    """A model that is a table of scores; its rows may also pass for predicted ratings."""

    table: np.ndarray

    def scores(self, users):
        return self.table[users]

    def predict(self, users, items):
        return self.table[users, items]


@dataclass(frozen=True)
class OrderOnly:
    table: np.ndarray

    def scores(self, users):
        return self.table[users]


def log_of(pairs, values=None) -> Interactions:
    columns = np.array(list(pairs), dtype=np.int32).reshape(-1, 2).T
    ratings = np.ones(columns.shape[1]) if values is None else values
    return Interactions(columns[0], columns[1], np.asarray(ratings, dtype=np.float32))


def parts_of(train, test, support=None) -> Parts:
    return Parts(log_of(train), log_of(test), None if support is None else log_of(support))


@pytest.fixture(scope="session")
def parts() -> Callable[..., Parts]:
    """Build a split from pairs (user, item)."""
    return parts_of


@pytest.fixture(scope="session")
def log() -> Callable[..., Interactions]:
    """Build a log from pairs (user, item) and ratings."""
    return log_of


@pytest.fixture(scope="session")
def table() -> type[Table]:
    return Table


@pytest.fixture(scope="session")
def order_only() -> type[OrderOnly]:
    return OrderOnly


@pytest.fixture(scope="session")
def random_parts() -> Callable[..., Parts]:
    """Each user meets some items in training and some others in the test; maybe some in support."""

    def build(seed: int, users: int, items: int, *, test_share: float = 0.2, support: bool = False) -> Parts:
        generator = np.random.default_rng(seed)
        place = generator.random((users, items))
        kind = np.digitize(place, [0.4, 0.4 + test_share, 0.5 + test_share])
        shown = np.argwhere(kind == 2) if support else None
        return parts_of(np.argwhere(kind == 0), np.argwhere(kind == 1), shown)

    return build
