"""Small random cohorts for the tests of this room."""

from dataclasses import dataclass

import numpy as np
import pytest

from tacit.kernels.sampling import draw_fillers


@dataclass(frozen=True)
class Tiny:
    """A cohort with ratings, fillers, vectors and a table."""

    offsets: np.ndarray
    items: np.ndarray
    values: np.ndarray
    fillers: object
    factors: np.ndarray
    table: np.ndarray


def _tiny(*, clients=9, catalogue=70, dim=5, dtype=np.float64, rho=1.0, seed=0, most=40):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, most, clients)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    picks = [np.sort(rng.choice(catalogue, size, replace=False)) for size in sizes]
    items = np.concatenate([*picks, []]).astype(np.int32)
    values = rng.integers(1, 6, len(items)).astype(np.float32)
    keys = rng.integers(0, 2**63, clients).astype(np.uint64)
    return Tiny(
        offsets,
        items,
        values,
        draw_fillers(offsets, items, keys, rho, catalogue),
        rng.normal(0, 0.4, (clients, dim)).astype(dtype),
        rng.normal(0, 0.4, (catalogue, dim)).astype(dtype),
    )


@pytest.fixture(scope="session")
def tiny():
    """A function that makes a cohort."""
    return _tiny
