"""A rotation keeps lengths and has an inverse; its entries need no rotation of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

from tacit.errors import TacitError
from tacit.kernels.rotation import rotated, rotated_back, rotated_table, rotated_values, transformed
from tacit.testing.tiny import tiny_federation


@pytest.mark.parametrize("length", [1, 2, 8, 64])
def test_the_transform_is_the_hadamard_matrix(length):
    table = np.random.default_rng(0).normal(size=(length, 3))
    np.testing.assert_allclose(transformed(table), hadamard(length) @ table, atol=1e-12)


@given(rows=st.integers(1, 40), columns=st.integers(1, 9), round=st.integers(-1, 5))
@settings(max_examples=40, deadline=None)
def test_lengths_are_kept_and_nothing_is_lost(rows, columns, round):
    table = np.random.default_rng(rows).normal(size=(rows, columns))
    wide = rotated(table, round)
    assert np.linalg.norm(wide) ** 2 / wide.size == pytest.approx(np.linalg.norm(table) ** 2)
    np.testing.assert_allclose(rotated_back(wide, rows, columns, round), table, atol=1e-10)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 999),
    dim=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 2.0]),
    asked=st.sampled_from([3, 400]),
    round=st.integers(0, 3),
)
def test_entries_equal_those_of_the_rotated_gradient(seed, dim, alpha, asked, round):
    """Few entries take the signed sums, many the transform of the whole: both are the same numbers."""
    federation = tiny_federation(6, 21, seed, silent=1)
    generator = np.random.default_rng(seed)
    table = generator.normal(0, 0.5, (21, dim)).astype(np.float32)
    x = generator.normal(0, 1, (6, dim)).astype(np.float32)
    size = rotated(table, 0).size
    entries = generator.integers(0, size, (6, asked)).astype(np.uint32)
    scales = generator.uniform(0.1, 2, 6).astype(np.float32)
    offsets, items = federation.offsets, federation.items
    found = rotated_values(
        offsets, items, entries, x, table, rotated_table(table, round), scales, round, alpha=alpha
    )
    for person in range(6):
        p = np.zeros(21)
        p[items[offsets[person] : offsets[person + 1]]] = 1
        whole = -2 * np.outer((1 + alpha * p) * (p - table @ x[person]), x[person])
        expected = scales[person] * rotated(whole, round).ravel()[entries[person]]
        np.testing.assert_allclose(found[person], expected, rtol=2e-3, atol=2e-3)


def test_only_powers_of_two_are_transformed():
    with pytest.raises(TacitError, match="power of two"):
        transformed(np.zeros((3, 1)))
