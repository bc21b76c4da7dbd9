"""The rotation keeps every length, comes back, spreads what stands out, and is the same for everybody."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

from tacit.kernels.integers import walsh_hadamard
from tacit.protect.rotation import rotate, rotate_back


@given(st.integers(0, 7))
def test_the_transform_is_the_hadamard_matrix(power):
    size = 2**power
    rows = np.eye(size)
    walsh_hadamard(rows)
    np.testing.assert_allclose(rows, hadamard(size) / np.sqrt(size), atol=1e-12)


@given(st.integers(1, 300), st.integers(0, 1000))
def test_it_is_a_rotation_and_comes_back(length, seed):
    rows = np.random.default_rng(seed).normal(size=(3, length))
    turned = rows.copy()
    rotate(turned, "round 1")
    np.testing.assert_allclose(turned @ turned.T, rows @ rows.T, atol=1e-9)
    rotate_back(turned, "round 1")
    np.testing.assert_allclose(turned, rows, atol=1e-9)


def test_it_is_linear_so_sums_come_back_too():
    rows = np.random.default_rng(1).normal(size=(5, 37))
    turned = rows.copy()
    rotate(turned, "r")
    total = turned.sum(axis=0, keepdims=True)
    rotate_back(total, "r")
    np.testing.assert_allclose(total[0], rows.sum(axis=0), atol=1e-9)


def test_no_entry_stands_out_afterwards():
    """One entry of length 1 among 1,000 numbers: no entry keeps more than a block's share."""
    rows = np.eye(1000)
    rotate(rows, "r")
    assert np.abs(rows).max() < 6.5 / np.sqrt(500)


def test_another_round_turns_another_way():
    one, other = np.ones((1, 64)), np.ones((1, 64))
    rotate(one, "1")
    rotate(other, "2")
    assert not np.allclose(one, other)
