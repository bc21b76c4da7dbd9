"""Vector operations against NumPy, row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.kernels.compiled import kernel, span
from tacit.kernels.emitter import lanes, pieces
from tacit.kernels.vectors import block_errors, highest, padded, weighted_sum


@kernel
def errors_of_a_block(shape, table, ids, vector, told, out):
    block_errors(shape, table, ids, 0, vector, told, 0, out, 0)


@kernel
def sum_of_rows(shape, table, ids, weights, total):
    weighted_sum(shape, table, ids, 0, len(ids), weights, 0, total)


@kernel
def highest_of(shape, ids, at, count):
    return highest(shape, ids, at, count)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "dim"), [(1, 1), (7, 20), (3, 16), (0, 5)])
def test_padded_rows_are_whole_lines_with_zeros(dtype, rows, dim):
    table = np.random.default_rng(0).normal(size=(rows, dim)).astype(dtype)
    wide = padded(table)
    assert rows == 0 or wide.ctypes.data % 64 == 0
    assert (wide.shape[1] * wide.itemsize) % 64 == 0
    assert wide.shape[1] - dim < lanes(wide.itemsize)
    assert wide.dtype == dtype
    assert (wide[:, :dim] == table).all()
    assert (wide[:, dim:] == 0).all()


@given(dim=st.integers(1, 300), count=st.sampled_from([8, 16]))
def test_pieces_tile_a_row_with_powers_of_two(dim, count):
    at = 0
    for offset, length in pieces(dim, count):
        assert offset == at
        assert length in {1, 2, 4, 8, 16}
        assert length <= count
        at += length
    assert at == dim


@pytest.mark.parametrize(("dtype", "dim"), [(np.float32, 20), (np.float64, 20), (np.float32, 1)])
def test_a_rows_dot_product_has_the_same_bits_in_every_lane(dtype, dim):
    rng = np.random.default_rng(1)
    count = lanes(np.dtype(dtype).itemsize)
    table, vector = (
        padded(rng.normal(size=(count, dim)).astype(dtype)),
        padded(rng.normal(size=(1, dim)).astype(dtype))[0],
    )
    told = np.zeros(count, dtype)
    seen = []
    for turn in range(count):
        ids = np.roll(np.arange(count), turn).astype(np.int32)
        out = np.empty(count, dtype)
        errors_of_a_block(span(dim), table, ids, vector, told, out)
        seen.append(np.roll(out, -turn).tobytes())
        np.testing.assert_allclose(np.roll(out, -turn), table @ vector, rtol=1e-4, atol=1e-6)
    assert len(set(seen)) == 1


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-12)])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_weighted_sums(dtype, tolerance, count):
    rng = np.random.default_rng(2)
    table, weights = padded(rng.normal(size=(50, 20)).astype(dtype)), rng.normal(size=count).astype(dtype)
    ids = rng.integers(0, 50, count).astype(np.int32)
    total = np.ones(table.shape[1], dtype)
    sum_of_rows(span(20), table, ids, weights, total)
    np.testing.assert_allclose(total, 1 + weights @ table[ids], rtol=tolerance, atol=tolerance)


@given(data=st.data())
def test_the_highest_name_is_the_unsigned_maximum_of_whole_blocks(data):
    count = data.draw(st.integers(0, 40))
    at = data.draw(st.integers(0, 5))
    names = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-3, 1000, 64).astype(np.int32)
    names[at + count :] = 0
    names[:at] = 2000
    assert highest_of(span(4), names, at, count) == names[at:].view(np.uint32).max(initial=0)
