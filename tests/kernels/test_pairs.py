"""Predictions for pairs equal the sum of products."""

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.kernels.pairs import predict_pairs
from tacit.kernels.vectors import padded


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-13)])
@pytest.mark.parametrize("dim", [1, 20, 130])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 1003])
def test_each_pair_is_a_dot_product(dtype, tolerance, dim, count):
    rng = np.random.default_rng(0)
    factors, table = (rng.normal(size=(rows, dim)).astype(dtype) for rows in (30, 50))
    users, items = (rng.integers(0, rows, count).astype(np.int32) for rows in (30, 50))
    meant = (factors.astype(np.float64)[users] * table.astype(np.float64)[items]).sum(1)
    for wide in (table, padded(table)):
        found = predict_pairs(factors, wide, users, items, dim)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, meant, rtol=tolerance, atol=tolerance)


def test_positions_outside_are_refused():
    one = np.zeros((1, 2), np.float32)
    with pytest.raises(TacitError, match="outside the 1"):
        predict_pairs(one, one, np.array([1], np.int32), np.array([0], np.int32), 2)
    with pytest.raises(TacitError, match="one item per user"):
        predict_pairs(one, one, np.array([0], np.int32), np.array([], np.int32), 2)
